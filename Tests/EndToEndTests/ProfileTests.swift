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

  /// The values that were written to the counter.
  private static func writes(_ fixture: Fixture) async throws -> JSON {
    try await fixture.simulator.control(#"{"op":"writes","i":1,"characteristic":"2222"}"#)
  }

  @Test("A heart-rate monitor: each notification is a JSON object with the fields given by its flags")
  func heartRate() async throws {
    try await withFixture(Self.plan()) { fixture in
      try await Self.startSimulator(fixture)
      try await fixture.online("pulse")
      try await fixture.message("pulse/info") { (try? $0.json())?["profile"]?.string == "heart" }
      for (bytes, payload) in [
        ("0048", #"{"bpm":72}"#),
        ("194b00e8030004f003", #"{"bpm":75,"energy":1000,"rr":[1.0,0.984375]}"#),
        // Only the contact bits, which the profile does not name; a wide rate; intervals without energy.
        ("0649", #"{"bpm":73}"#),
        ("012c01", #"{"bpm":300}"#),
        ("104a0002", #"{"bpm":74,"rr":[0.5]}"#),
      ] {
        let mark = try fixture.observer.mark
        try await fixture.simulator.control("value", 0, #""characteristic":"2a37","hex":"\#(bytes)""#)
        let state = try await fixture.message("pulse/heart_rate", payload, after: mark)
        let reading = try await fixture.message("pulse/readings", after: mark) {
          (try? $0.json())?["property"]?.string == "heart_rate"
        }
        #expect(try reading.json()["value"] == (try state.json()))
      }
      #expect(try await fixture.retained()["pulse/heart_rate"]?.text == #"{"bpm":74,"rr":[0.5]}"#)
      // Too short for its flags: ignored, and logged.
      let mark = try fixture.observer.mark
      try await fixture.simulator.control("value", 0, #""characteristic":"2a37","hex":"0848""#)
      try await fixture.logged("ignoring a malformed value of heart_rate")
      try await fixture.simulator.control("value", 0, #""characteristic":"2a19","hex":"5f""#)
      try await fixture.message("pulse/battery", "95", after: mark)
      #expect(try fixture.observer.messages(on: "microbit/pulse/heart_rate", after: mark).isEmpty)
    }
  }

  @Test("A counter: a command is written once; it fails if the device is absent, and is rejected if retained")
  func counter() async throws {
    try await withFixture(Self.plan()) { fixture in
      try await Self.startSimulator(fixture)
      try await fixture.online("counter")
      func result(after mark: Int) async throws -> JSON {
        try await fixture.message("counter/add/result", after: mark).json()
      }
      var mark = try fixture.observer.mark
      try await fixture.observer.publish("microbit/counter/add/set", #"{"value":5,"transaction":"t1"}"#)
      var answer = try await result(after: mark)
      #expect(answer["status"]?.string == "accepted" && answer["requested"]?.int == 5)
      #expect(answer["transaction"]?.string == "t1")
      #expect(
        try await Self.writes(fixture) == .object(["count": .int(1), "writes": .array([.string("05")])]))

      // Out of range of its type.
      mark = try fixture.observer.mark
      try await fixture.observer.publish("microbit/counter/add/set", "256")
      #expect(try await result(after: mark)["status"]?.string == "rejected")

      mark = try fixture.observer.mark
      try await fixture.observer.publish("microbit/counter/add/set", "7", retain: true)
      // It would be executed whenever the broker sends it.
      answer = try await result(after: mark)
      #expect(answer["status"]?.string == "rejected", "\(answer)")
      try await fixture.observer.publish("microbit/counter/add/set", "", retain: true)

      try await fixture.vanish(1, "counter")
      mark = try fixture.observer.mark
      try await fixture.observer.publish("microbit/counter/add/set", "9")
      answer = try await result(after: mark)
      #expect(answer["status"]?.string == "failed", "\(answer)")
      mark = try fixture.observer.mark
      try await fixture.simulator.control("return", 1)
      try await fixture.online("counter", after: mark)
      // A later command is written, but none of the failed or rejected ones.
      try await fixture.observer.publish("microbit/counter/add/set", "11")
      #expect(try await result(after: mark)["status"]?.string == "accepted")
      #expect(
        try await Self.writes(fixture)
          == .object(["count": .int(2), "writes": .array([.string("05"), .string("0b")])]))
      #expect(try fixture.observer.messages(on: "microbit/counter/add").isEmpty)
    }
  }

  @Test("A peripheral with a signal weaker than min_rssi is ignored until a reload lowers min_rssi")
  func weakSignal() async throws {
    try await withFixture(Self.plan(counterMatch: #""service":"1111","min_rssi":20"#)) { fixture in
      try await Self.startSimulator(fixture)
      try await fixture.online("pulse")
      let found = try await fixture.perform("scan", #"{"timeout":1}"#).array ?? []
      let counter = try #require(found.first { $0["identifier"]?.string == "E6:7A:00:00:00:02" })
      #expect(counter["device"] == nil)
      #expect(found.contains { $0["device"]?.string == "pulse" })
      #expect(try fixture.deviceIDs == ["pulse"])
      try await fixture.reload(
        entries: #"""
          {"match":{"service":"180d"},"profile":"heart","id":"pulse"},
          {"match":{"service":"1111","min_rssi":-127},"profile":"counter","id":"counter"}
          """#)
      try await fixture.online("counter")
    }
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

  @Test("A reload that changes a profile restarts its devices, and leaves the others online")
  func reload() async throws {
    try await withFixture(Self.plan()) { fixture in
      try await Self.startSimulator(fixture)
      try await fixture.online("pulse")
      try await fixture.online("counter")
      let mark = try fixture.observer.mark
      let text = fixture.configuration(fixture.plan.entries).replacing(#""add":"#, with: #""plus":"#)
      try fixture.folder.write(text, to: "config.json")
      #expect(try await fixture.perform("reload")["restart_required"] == .array([]))
      try await fixture.online("counter", after: mark)
      try await fixture.observer.publish("microbit/counter/plus/set", "3")
      #expect(
        try await fixture.message("counter/plus/result", after: mark).json()["status"]?.string == "accepted")
      #expect(try fixture.stayedOnline("pulse", after: mark))
      // An invalid file changes nothing.
      try fixture.folder.write(text.replacing(#""uint8"}"#, with: #""uint9"}"#), to: "config.json")
      #expect(try await fixture.refusal("reload").contains("type: expected"))
    }
  }

  @Test("check shows profile, properties and desired values of each entry")
  func check() async throws {
    var plan = Self.plan(counterMatch: #""name_contains":"ount","manufacturer":76,"min_rssi":-80"#)
    plan.entries +=
      #",{"match":{"identifier":"D0:5A:00:00:C0:DE"},"properties":["button_a"],"desired":{"period":5000}}"#
    plan.absent = [.simulator, .gateway, .observer]
    try await withFixture(plan) { fixture in
      let text = try await fixture.check()
      let lines = text.split(separator: "\n").map { $0.split(separator: " ").joined(separator: " ") }
      let expected = [
        "every device with the service 0000180d-0000-1000-8000-00805f9b34fb", "id pulse config.json",
        "profile heart config.json", "properties heart_rate, battery default",
        #"every device whose name contains "ount" and of the manufacturer 76 and received with -80 dBm or more"#,
        "D0:5A:00:00:C0:DE", "profile microbit default", "properties period, button_a config.json",
        "period 5000 ms config.json",
      ]
      // In this order, with others between them.
      var rest = lines[...]
      for line in expected {
        let found = try #require(rest.firstIndex(of: line), "\(line) is not in its place: \(text)")
        rest = rest[(found + 1)...]
      }
    }
  }
}
