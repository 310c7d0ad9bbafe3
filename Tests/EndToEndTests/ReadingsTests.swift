import TestSupport
import Testing

/// The readings that arrive at the broker.
@Suite struct ReadingsTests {
  @Test("Every reading arrives once and in order")
  func onceAndInOrder() async throws {
    try await withFixture(Plan(devices: 3, period: 10)) { fixture in
      for index in 0..<3 {
        let id = try await fixture.id(index)
        _ = try await fixture.readings(id, upTo: 100)
        // It stops sending, so that there is a last reading to wait for.
        let sent = try await fixture.simulator.control("silent", index).sent
        // The first reading was read, all others were notified.
        let readings = try await fixture.readings(id, upTo: sent + 1)
        try #require(readings.map(\.sequence) == Array(1...(sent + 1)))
        try #require(Set(readings.map(\.run)).count == 1)
        try #require(readings.allSatisfy { !$0.isReplayed })
        let values = try fixture.observer.messages(on: "microbit/\(id)/temperature").map(\.text)
        try #require(values.last == readings.last.map { "\($0.value)" })
      }
    }
  }

  @Test("A reading has its value, unit, time and gateway", arguments: [21, 0, -5, 127, -128])
  func fields(celsius: Int) async throws {
    try await withFixture { fixture in
      let id = try await fixture.id()
      try await fixture.simulator.control("temp", 0, #""v":\#(celsius)"#)
      let reading = try await fixture.reading(id) { $0.value == celsius }
      let json = try reading.message.json()
      #expect(json.keys == ["property", "value", "unit", "time", "sequence", "run", "gateway"])
      #expect(json["property"]?.string == "temperature")
      #expect(json["unit"]?.string == "°C")
      #expect(json["gateway"]?.string == Fixture.gatewayID)
      #expect(isTimestamp(json["time"]?.string))
      #expect(reading.message.qos == .atLeastOnce)
      try await fixture.message("\(id)/temperature", "\(celsius)")
      try await fixture.online(id)
      let kept = try await fixture.retained()
      try #require(kept["\(id)/temperature"]?.text == "\(celsius)")
      try #require(kept["\(id)/temperature"]?.qos == .atLeastOnce)
      try #require(kept["\(id)/readings"] == nil)
    }
  }

  @Test("With readings turned off, values are still published")
  func withoutReadings() async throws {
    var plan = Plan()
    plan.mqtt = #""readings":false"#
    try await withFixture(plan) { fixture in
      let id = try await fixture.id()
      for celsius in [30, 31, 32] {
        try await fixture.simulator.control("temp", 0, #""v":\#(celsius)"#)
        try await fixture.message("\(id)/temperature", "\(celsius)")
      }
      try #require(try fixture.readings(id).isEmpty)
    }
  }

  @Test("With QoS 0, device topics are published at QoS 0")
  func qos0() async throws {
    var plan = Plan()
    plan.mqtt = #""qos":0"#
    try await withFixture(plan) { fixture in
      let id = try await fixture.id()
      _ = try await fixture.readings(id, upTo: 10)
      let result = try await fixture.setPeriod(id, "60")
      try #require(result["status"]?.string == "applied")
      let messages = try fixture.observer.messages.filter { $0.topic.hasPrefix("microbit/\(id)/") }
      for name in ["temperature", "period", "period/result", "availability", "readings", "info"] {
        try #require(messages.contains { $0.topic == "microbit/\(id)/\(name)" })
      }
      try #require(messages.allSatisfy { $0.qos == .atMostOnce || $0.topic.hasSuffix("/set") })
    }
  }

  @Test("Readings and commands work with MQTT 3.1.1")
  func mqtt311() async throws {
    var plan = Plan()
    plan.mqtt = #""protocol":"3.1.1""#
    try await withFixture(plan) { fixture in
      // mosquitto's name for 3.1.1 is p2, for 5 it is p5.
      try await fixture.broker.logLine { $0.contains(/as microbit-gateway-fixture-[a-z0-9]{4} \(p2/) }
      let id = try await fixture.id()
      let readings = try await fixture.readings(id, upTo: 10)
      try #require(readings.map(\.sequence) == Array(1...10))
      let result = try await fixture.setPeriod(id, #"{"value":60,"transaction":"old"}"#)
      try #require(result["status"]?.string == "applied")
      try #require(result["transaction"]?.string == "old")
    }
  }

  @Test("Topics begin with the configured base topic")
  func baseTopic() async throws {
    var plan = Plan()
    plan.mqtt = #""base_topic":"school/lab-1""#
    try await withFixture(plan) { fixture in
      let id = try await fixture.id()
      let observer = try fixture.observer
      for topic in ["\(id)/readings", "\(id)/availability", "bridge/\(Fixture.gatewayID)/info"] {
        _ = try await observer.message("school/lab-1/\(topic)", within: Fixture.patience) { _ in true }
      }
      try await observer.publish("school/lab-1/\(id)/period/set", "60")
      _ = try await observer.message("school/lab-1/\(id)/period", within: Fixture.patience) {
        $0.text == "60"
      }
      let others = observer.messages.filter { !$0.topic.hasPrefix("school/lab-1/") }
      try #require(others.allSatisfy { $0.topic.hasPrefix("homeassistant/") })
    }
  }
}
