import Testing

/// Period commands.
@Suite struct PeriodTests {
  @Test("A command is applied, answered on both topics, and retained; the interval of readings changes")
  func applied() async throws {
    try await withFixture(Plan(period: 1000)) { fixture in
      let id = try await fixture.id()
      try await fixture.online(id)
      let json = try await fixture.setPeriod(id, "60")
      #expect(json.keys == ["status", "requested", "actual", "time"])
      #expect(json["status"]?.string == "applied")
      #expect(json["requested"]?.int == 60)
      #expect(json["actual"]?.int == 60)
      #expect(isTimestamp(json["time"]?.string))
      let mark = try fixture.observer.mark
      let payload = Array(#"{"value":40,"transaction":"Grüße \"\\ \n/+#"}"#.utf8)
      try await fixture.publish("microbit/\(id)/period/set", payload, correlation: "\0\u{1}ü")
      let reply = try await fixture.reply(to: "\0\u{1}ü")
      #expect(try reply.json()["actual"]?.int == 40)
      #expect(try reply.json()["transaction"]?.string == "Grüße \"\\ \n/+#")
      let result = try await fixture.message("\(id)/period/result", after: mark)
      #expect(result.payload == reply.payload)
      let state = try await fixture.message("\(id)/period", "40")
      #expect(state.qos == .atLeastOnce)
      try #require(try await fixture.simulator.device(0).period == 40)
      try await fixture.expectInterval(id, milliseconds: 40)
      let kept = try await fixture.retained()
      #expect(kept["\(id)/period"]?.text == "40")
      #expect(kept["\(id)/period/result"] == nil)
    }
  }

  /// Without a valid value, for a read-only property, and for one that does not exist.
  private static let invalid: [(property: String, payload: String, reason: String)] = [
    ("period", "", "empty"), ("period", "abc", "abc"),
    ("period", "19", "19 is below the smallest period, 20 ms"),
    ("period", #"{"value":100"#, "JSON"), ("period", "[100]", "[100]"),
    ("temperature", "1", "temperature"), ("colour", "1", "colour"),
    ("PERIOD", "60", #"has no property "PERIOD""#),
  ]

  @Test("An invalid command is rejected with a reason; nothing is written, and other devices are unaffected")
  func rejected() async throws {
    try await withFixture(Plan(devices: 2)) { fixture in
      let id = try await fixture.id(0)
      let other = try await fixture.id(1)
      try await fixture.online(id)
      try await fixture.online(other)
      try await fixture.message("\(id)/period", "50")
      let monitor = try await BusMonitor(fixture.bus)
      // No such devices, and no such property of a group.
      for topic in ["c5a1b2c3d4e5/period", "area/period", "bridge/period", "KITCHEN/period", "all/PERIOD"] {
        try await fixture.observer.publish("microbit/\(topic)/set", "60")
      }
      for (property, payload, reason) in Self.invalid {
        let name = "\(property) \(payload)"
        try await fixture.publish("microbit/\(id)/\(property)/set", Array(payload.utf8), correlation: name)
        let json = try await fixture.reply(to: name).json()
        try #require(json["status"]?.string == "rejected", "\(name)")
        let text = try #require(json["reason"]?.string)
        try #require(text.contains(reason) && (1...300).contains(text.count), "\(name): \(text)")
        try #require(json["actual"] == nil && json["requested"] == nil, "\(name)")
      }
      try await fixture.moreReadings(id, 3)
      try await fixture.moreReadings(other, 3)
      try #require(try await fixture.simulator.device(0).period == 50)
      try #require(try fixture.observer.messages(on: "microbit/\(id)/period").map(\.text) == ["50"])
      try #require(try await monitor.calls(of: "WriteValue") == 0)
      // Each rejection is also published on the result topic, once; the others are ignored.
      let results = try fixture.observer.messages.filter { $0.topic.hasSuffix("/result") }
      try #require(results.map(\.topic) == Self.invalid.map { "microbit/\(id)/\($0.property)/result" })
      try #require(try await fixture.setPeriod(id, "60")["status"]?.string == "applied")
    }
  }

  @Test("The last command of a burst wins, and each is answered once")
  func superseded() async throws {
    try await withFixture(Plan(devices: 2, simulator: ["--attribute-ms", "200"])) { fixture in
      let id = try await fixture.id()
      try await fixture.online(id)
      let commands = Array(1...30)
      for number in commands {
        try await fixture.observer.publish(
          "microbit/\(id)/period/set", #"{"value":\#(100 + number),"transaction":"t\#(number)"}"#)
      }
      let last = try await fixture.message("\(id)/period/result") { $0.text.contains(#""t30""#) }
      try #require(try last.json()["status"]?.string == "applied")
      // A separate command: when it is answered, no answer to the burst is outstanding.
      try await fixture.observer.publish("microbit/\(id)/period/set", #"{"value":99,"transaction":"end"}"#)
      try await fixture.message("\(id)/period/result") { $0.text.contains(#""end""#) }
      let results = try fixture.observer.messages(on: "microbit/\(id)/period/result").map { try $0.json() }
      var answers: [String: [String]] = [:]
      for result in results {
        answers[result["transaction"]?.string ?? "", default: []].append(result["status"]?.string ?? "")
      }
      try #require(answers.count == commands.count + 1)
      try #require(answers.values.allSatisfy { $0 == ["applied"] || $0 == ["superseded"] })
      try #require(answers.values.contains(["superseded"]))
      for result in results where result["status"]?.string == "applied" {
        try #require(result["requested"] == result["actual"])
      }
      try #require(try await fixture.simulator.device(0).period == 99)
      // The other micro:bit is unaffected.
      try #require(try await fixture.simulator.device(1).period == 50)
    }
  }

  @Test("A command whose link is lost is pending, and applied when the micro:bit returns")
  func linkLost() async throws {
    try await withFixture(Plan(simulator: ["--attribute-ms", "3000"])) { fixture in
      let id = try await fixture.id()
      try await fixture.online(id)
      try await fixture.message("\(id)/period")
      let monitor = try await BusMonitor(fixture.bus)
      try await fixture.publish("microbit/\(id)/period/set", Array("70".utf8), correlation: "c")
      try await monitor.called("WriteValue")
      try await fixture.simulator.control("vanish", 0)
      let first = try await fixture.reply(to: "c")
      try #require(try first.json()["status"]?.string == "pending")
      try await fixture.simulator.control("return", 0)
      let second = try await fixture.reply(to: "c", after: first.number)
      try #require(try second.json()["status"]?.string == "applied")
      try #require(try await fixture.simulator.device(0).period == 70)
      try #require(try fixture.observer.messages(on: "replies").count == 2)
    }
  }
}

extension Fixture {
  /// Fails unless the median interval of readings is about this, after the sample that was already due.
  fileprivate func expectInterval(_ id: String, milliseconds: Int) async throws {
    try await moreReadings(id, 2)
    let mark = try observer.mark
    try await moreReadings(id, 10)
    let times = try readings(id, after: mark).map(\.time)
    let gaps = zip(times.dropFirst(), times).map { $0.timeIntervalSince($1) * 1000 }.sorted()
    // At the default of 1000 ms it would be far longer.
    try #require(gaps[gaps.count / 2] < Double(10 * milliseconds), "\(gaps)")
  }
}
