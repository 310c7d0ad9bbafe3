import TestSupport
import Testing

/// Peripherals other than micro:bits, with profiles in config.json.
@Suite struct ProfileTests {
  private static let heart = #"""
    {"requires":["180d"],"properties":{
      "heart_rate":{"service":"180d","characteristic":"2a37","access":["notify"],"fields":[
        {"name":"flags","type":"uint8","hidden":true},
        {"name":"bpm","type":"uint8","unless":"flags.0"},{"name":"bpm","type":"uint16","if":"flags.0"},
        {"name":"energy","type":"uint16","if":"flags.3"},
        {"name":"rr","type":"uint16","repeat":true,"if":"flags.4","scale":0.0009765625}]},
      "battery":{"service":"180f","characteristic":"2a19","access":["read"],"type":"uint8","unit":"%",
        "poll":3600}}}
    """#
  private static let counter = #"""
    {"requires":["1111"],"properties":{
      "add":{"service":"1111","characteristic":"2222","access":["write"],"write":"request","kind":"event",
        "type":"uint8"}}}
    """#

  /// Peripheral 0 is a heart-rate monitor, 1 a counter. The simulator has its own parser of profiles.
  private static func plan(counterMatch: String = #""service":"1111""#) -> Plan {
    var plan = Plan(devices: 0)
    plan.absent = [.simulator]
    plan.profiles = "\"heart\":\(heart),\"counter\":\(counter)"
    plan.entries = """
      {"match":{"service":"180d"},"profile":"heart","id":"pulse"},
      {"match":{\(counterMatch)},"profile":"counter","id":"counter"}
      """
    plan.files = [
      "heart.json":
        #"{"name":"Polar H7","address":"E6:7A:00:00:00:01","advertises":["180d"],"profile":\#(heart)}"#,
      "counter.json":
        #"{"name":"Counter","address":"E6:7A:00:00:00:02","advertises":["1111"],"profile":\#(counter)}"#,
    ]
    return plan
  }

  private static func startSimulator(_ fixture: Fixture) async throws {
    try await fixture.startSimulator(
      ["heart", "counter"].flatMap { ["--peripheral", "\(fixture.folder.path)/\($0).json"] })
  }

  @Test("After a restart, an absent device is matched by its stored advertisement and keeps its topics")
  func restart() async throws {
    try await withFixture(Self.plan()) { fixture in
      try await Self.startSimulator(fixture)
      try await fixture.online("pulse")
      try await fixture.simulator.control("value", 0, #""characteristic":"2a37","hex":"0048""#)
      try await fixture.message("pulse/heart_rate", #"{"bpm":72}"#)
      try await fixture.stored("0000180d-0000-1000-8000-00805f9b34fb")
      try await fixture.vanish(0, "pulse")
      let mark = try fixture.observer.mark
      try await fixture.restartGateway()
      #expect(try await fixture.listed("pulse")?["profile"]?.string == "heart")
      #expect(try fixture.observer.messages(on: "microbit/pulse/heart_rate", after: mark).isEmpty)
      try await fixture.simulator.control("return", 0)
      try await fixture.online("pulse", after: mark)
    }
  }

  @Test("A reload that changes a profile or min_rssi concerns its devices, and leaves the others online")
  func reload() async throws {
    try await withFixture(Self.plan(counterMatch: #""service":"1111","min_rssi":20"#)) { fixture in
      try await Self.startSimulator(fixture)
      try await fixture.online("pulse")
      // Its signal is weaker than min_rssi.
      let found = try await fixture.perform("scan", #"{"timeout":5}"#).array ?? []
      let counter = try #require(found.first { $0["identifier"]?.string == "E6:7A:00:00:00:02" })
      #expect(counter["device"] == nil)
      #expect(found.contains { $0["device"]?.string == "pulse" })
      #expect(try fixture.deviceIDs == ["pulse"])
      let start = try fixture.observer.mark
      try await fixture.reload(
        entries: #"""
          {"match":{"service":"180d"},"profile":"heart","id":"pulse"},
          {"match":{"service":"1111","min_rssi":-127},"profile":"counter","id":"counter"}
          """#)
      try await fixture.online("counter")

      let mark = try fixture.observer.mark
      let text = fixture.configuration(
        #"{"match":{"service":"180d"},"profile":"heart","id":"pulse"},"#
          + #"{"match":{"service":"1111"},"profile":"counter","id":"counter"}"#
      ).replacing(#""add":"#, with: #""plus":"#)
      try fixture.folder.write(text, to: "config.json")
      #expect(try await fixture.perform("reload")["restart_required"] == .array([]))
      try await fixture.online("counter", after: mark)
      try await fixture.observer.publish("microbit/counter/plus/set", "3")
      #expect(
        try await fixture.message("counter/plus/result", after: mark).json()["status"]?.string == "accepted")
      #expect(try fixture.stayedOnline("pulse", after: start))
      // An invalid file changes nothing.
      try fixture.folder.write(text.replacing(#""uint8"}"#, with: #""uint9"}"#), to: "config.json")
      #expect(try await fixture.refusal("reload").contains("type: expected"))
    }
  }

  @Test("A number as text is a number; what is written is compared as a number, however the device prints it")
  func decimal() async throws {
    let sensor = #"""
      {"requires":["91bad492-b950-4226-aa2b-4ede9fa42f59"],"properties":{
        "temperature":{"service":"91bad492-b950-4226-aa2b-4ede9fa42f59","characteristic":"2a01",
          "access":["read","notify"],"type":"decimal","unit":"°C","report":{"change":0.5}},
        "target":{"service":"91bad492-b950-4226-aa2b-4ede9fa42f59","characteristic":"2a02",
          "access":["read","write"],"type":"decimal","range":[5,30]}}}
      """#
    var plan = Plan(devices: 0)
    plan.absent = [.simulator]
    plan.profiles = "\"esp\":\(sensor)"
    plan.entries = """
      {"match":{"name":"ESP"},"profile":"esp","id":"esp","adjust":{"temperature":{"offset":-1}}}
      """
    plan.files = [
      "esp.json": #"""
      {"name":"ESP","services":[{"uuid":"91bad492-b950-4226-aa2b-4ede9fa42f59","characteristics":[
        {"uuid":"2a01","flags":["read","notify"],"value":"\#(hexadecimal(" 23.45"))"},
        {"uuid":"2a02","flags":["read","write"],"value":"\#(hexadecimal("18.00"))"}]}]}
      """#
    ]
    try await withFixture(plan) { fixture in
      try await fixture.startSimulator(["--peripheral", "\(fixture.folder.path)/esp.json"])
      try await fixture.online("esp")
      func hold(_ characteristic: String, _ text: String) async throws {
        try await fixture.simulator.control(
          "value", 0, #""characteristic":"\#(characteristic)","hex":"\#(hexadecimal(text))""#)
      }
      func writes() async throws -> JSON? {
        try await fixture.simulator.control(#"{"op":"writes","i":0,"characteristic":"2a02"}"#)["writes"]
      }
      try await fixture.message("esp/temperature", "22.45")
      try await fixture.message("esp/target", "18.0")
      // Too little for the topic.
      try await hold("2a01", "23.50")
      try await fixture.message("esp/readings") { $0.text.contains(#""value":22.5,"#) }
      try await hold("2a01", "nan")
      try await fixture.logged(#"not a number in plain digits: "nan""#)
      try await hold("2a01", "24.00\0")
      try await fixture.message("esp/temperature", "23.0")
      try await fixture.observer.publish("microbit/esp/temperature/get", "")
      try await fixture.message("esp/temperature/result") { $0.text.contains(#""actual":23.0"#) }

      var mark = try fixture.observer.mark
      try await fixture.observer.publish("microbit/esp/target/set", "30.5")
      #expect(try await fixture.message("esp/target/result", after: mark).text.contains("rejected"))
      mark = try fixture.observer.mark
      try await fixture.observer.publish("microbit/esp/target/set", "21.5")
      #expect(try await fixture.message("esp/target/result", after: mark).text.contains("applied"))
      try await fixture.message("esp/target", "21.5")
      #expect(try await writes() == .array([.string(hexadecimal("21.5"))]))
      // The same number needs no write on the next link, another one does.
      for (text, count) in [(" 21.50", 1), ("21.60", 2)] {
        try await hold("2a02", text)
        mark = try fixture.observer.mark
        try await fixture.simulator.control("disconnect", 0)
        try await fixture.online("esp", after: mark)
        if count > 1 { try await fixture.message("esp/target", "21.5", after: mark) }
        try await fixture.observer.publish("microbit/esp/target/get", "")
        try await fixture.message("esp/target/result", after: mark) { $0.text.contains(#""actual":21.5"#) }
        #expect(try await writes()?.array?.count == count)
      }
    }
  }

  private func hexadecimal(_ text: String) -> String {
    text.utf8.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }

  @Test(
    "What a profile wants written before reading is written first, on each visit and on a link that lasts",
    arguments: [#","connect":"on_demand","every":5"#, ""])
  func beforeReading(connect: String) async throws {
    let flower = #"""
      {"requires":["1204"],"properties":{
        "moisture":{"service":"1204","characteristic":"1a01","access":["read"],"type":"uint8"},
        "mode":{"service":"1204","characteristic":"1a00","access":["write"],"write":"request","type":"bytes",
          "initial":"a01f","before_reading":true}}}
      """#
    var plan = Plan(devices: 0)
    plan.absent = [.simulator]
    plan.profiles = "\"flower\":\(flower)"
    plan.entries = #"{"match":{"service":"1204"},"profile":"flower","id":"flower"\#(connect)}"#
    plan.files = ["flower.json": #"{"name":"Flower","advertises":["1204"],"profile":\#(flower)}"#]
    try await withFixture(plan) { fixture in
      let monitor = try await BusMonitor(fixture.bus)
      try await fixture.startSimulator(["--peripheral", "\(fixture.folder.path)/flower.json"])
      try await fixture.online("flower")
      let mark = try fixture.observer.mark
      try await fixture.simulator.control("value", 0, #""characteristic":"1a01","hex":"05""#)
      if connect.isEmpty { try await fixture.simulator.control("disconnect", 0) }
      try await fixture.message("flower/readings", after: mark) { $0.text.contains("moisture") }
      let calls = try await monitor.calls(of: ["Connect", "WriteValue", "ReadValue"])
      let links = calls.split(separator: "Connect").map(Array.init)
      #expect(links.count >= 2)
      for link in links {
        #expect(link.first == "WriteValue" && link.count { $0 == "WriteValue" } == 1, "\(calls)")
        #expect(link.contains("ReadValue"))
      }
    }
  }
}
