import TestSupport
import Testing

/// Profiles of users that do not fit their peripherals: what is wrong is told, and what helps.
@Suite struct ProfileMistakesTests {
  private static func file(_ number: Int, _ keys: String) -> String {
    #"{"name":"Lab \#(number)","address":"E6:7A:00:00:00:0\#(number)",\#(keys)}"#
  }

  private static func property(_ characteristic: String, _ access: String, _ keys: String) -> String {
    #"{"service":"1111","characteristic":"\#(characteristic)","access":[\#(access)],\#(keys)}"#
  }

  /// Peripheral 0 is connected to, and lacks some properties; 1 lacks a service; 2 is only heard; 3 lacks all properties.
  private static func plan() -> Plan {
    var plan = Plan(devices: 0)
    plan.absent = [.simulator]
    let gauge = property("2223", #""read","write""#, #""type":"uint8","scale":10"#)
    let rx = property("2224", #""notify""#, #""type":"utf8","kind":"event","frame":"\n""#)
    let served = """
      "profile":{"properties":{"count":\(property("2222", #""notify""#, #""type":"uint8""#)),\
      "gauge":\(gauge),"rx":\(rx)}}
      """
    plan.files = [
      "0.json": file(1, served), "1.json": file(2, served),
      "2.json": file(3, #""manufacturer_data":{"0x004c":"02150102030405"}"#),
      "3.json": file(
        4,
        #""services":[{"uuid":"ffd5","characteristics":[{"uuid":"ffd9","flags":["write-without-response"]}]}]"#
      ),
    ]
    plan.profiles = """
      "lab":{"values":{"property":"rx"},"properties":{
        "count":\(property("2222", #""read""#, #""type":"uint8""#)),
        "level":\(property("2229", #""read""#, #""type":"uint8""#)),"gauge":\(gauge),"rx":\(rx)}},
      "strip":{"properties":{"power":{"service":"ffd5","characteristic":"ffd9","access":["write"],
        "kind":"event","type":"bytes"}}},
      "heart":{"requires":["0x180d"],"properties":{"gauge":\(gauge)}},
      "beacon":{"properties":{"major":{
        "source":{"manufacturer_data":"0x004c","prefix":"0215"},"type":"uint16"}}}
      """
    plan.entries = """
      {"match":{"name":"Lab 1"},"profile":"lab","id":"lab","values":{"columns":["temp"]}},
      {"match":{"name":"Lab 2"},"profile":"heart","id":"heart"},
      {"match":{"name":"Lab 4"},"profile":"strip","id":"strip"},
      {"match":{"manufacturer":"0x004c"},"profile":"beacon","id":"beacon"}
      """
    return plan
  }

  private static let lacks = [
    "count is not offered: its characteristic 2222 cannot be read",
    "level is not offered: its service 1111 has no characteristic 2229",
  ]

  @Test("What does not fit a profile is in the log once, in health, and in the answers to get and inspect")
  func mistakesAreTold() async throws {
    try await withFixture(Self.plan()) { fixture in
      try await fixture.startSimulator(
        (0...3).flatMap { ["--peripheral", "\(fixture.folder.path)/\($0).json"] })
      var mark = try fixture.observer.mark
      try await fixture.online("lab")
      for line in Self.lacks { try await fixture.logged(line) }
      try await fixture.logged(
        "ignoring a malformed value of major: expected 2 bytes, got 5: 01 02 03 04 05")
      // A new link with the same program is no news.
      try await fixture.simulator.control("disconnect", 0)
      let offline = try await fixture.offline("lab", after: mark)
      try await fixture.online("lab", after: offline.number)
      for line in Self.lacks { #expect(try fixture.lines(with: line).count == 1) }

      mark = try fixture.observer.mark
      try await fixture.observer.publish("microbit/lab/level/get", "{}")
      let result = try await fixture.message("lab/level/result", after: mark).json()
      #expect(
        result["reason"]?.string
          == "the device does not offer level: its service 1111 has no characteristic 2229", "\(result)")
      let inspected = try await fixture.perform("device/inspect", #"{"id":"lab"}"#)
      #expect(
        inspected["missing"]?["count"]?.string == "its characteristic 2222 cannot be read", "\(inspected)")

      // A value between two steps of its encoding.
      mark = try fixture.observer.mark
      try await fixture.observer.publish("microbit/lab/gauge/set", "505")
      let set = try await fixture.message("lab/gauge/result", after: mark).json()
      #expect(set["status"]?.string == "adjusted" && set["actual"]?.int == 510, "\(set)")

      // A number in a text without a name, as an ESP32 notifies it.
      for hex in ["32332e34", "32332e35"] {
        try await fixture.simulator.control("value", 0, #""characteristic":"2224","hex":"\#(hex)""#)
      }
      try await fixture.message("lab/values/temp", "23.5")

      try await fixture.logged("cannot be used: it lacks the service 180d, which the profile heart requires")
      let only = #"power (its characteristic ffd9 is written with "write": "command" only)"#
      try await fixture.logged(
        "cannot be used: it does not offer the properties of the profile strip: \(only)")
      let findings = try await fixture.perform("health")["findings"]?.array ?? []
      func finding(_ code: String) -> JSON? { findings.first { $0["code"]?.string == code } }
      #expect(finding("unsuitable")?["remedy"]?.string?.hasSuffix("microbit-gateway inspect heart") == true)
      #expect(finding("not_offered")?["device"]?.string == "lab")
      #expect(
        finding("misfit")?["reason"]?.string == "major: expected 2 bytes, got 5: 01 02 03 04 05",
        "\(findings)")

      #expect(finding("not_heard") == nil)

      // The gateway says what it does with each.
      let scan = try await fixture.command(["scan", "--timeout", "5"]).text
      for use in ["connect as lab", "connect as heart", "connect as strip", "hear as beacon"] {
        #expect(scan.contains(use), "\(scan)")
      }
      #expect(!scan.contains("ignored") && scan.contains("manufacturer 0x004c: 0215"), "\(scan)")
    }
  }
}
