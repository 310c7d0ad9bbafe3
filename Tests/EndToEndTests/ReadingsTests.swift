import Testing

/// The readings that arrive at the broker.
@Suite struct ReadingsTests {
  @Test("Every reading arrives once and in order, with its value, unit, time and gateway")
  func onceAndInOrder() async throws {
    try await withFixture(Plan(devices: 3, period: 10, absent: [.simulator])) { fixture in
      try await fixture.startSimulatorLast()
      let celsius = [21, -5, -128]
      // They stop sending, so that there is a last reading of each to wait for.
      var sent: [Int] = []
      for (index, celsius) in celsius.enumerated() {
        let id = try await fixture.id(index)
        _ = try await fixture.readings(id, upTo: 100)
        try await fixture.simulator.control("temp", index, #""v":\#(celsius)"#)
        try await fixture.reading(id) { $0.value == celsius }
        sent.append(try await fixture.simulator.control("silent", index).sent)
      }
      for (index, celsius) in celsius.enumerated() {
        let id = try await fixture.id(index)
        // The first reading was read, all others were notified.
        let readings = try await fixture.readings(id, upTo: sent[index] + 1)
        let json = try readings[readings.count - 1].message.json()
        #expect(json.keys == ["property", "value", "unit", "time", "sequence", "run", "gateway"])
        #expect(json["property"]?.string == "temperature")
        #expect(json["unit"]?.string == "°C")
        #expect(json["gateway"]?.string == Fixture.gatewayID)
        #expect(isTimestamp(json["time"]?.string))
        #expect(readings.allSatisfy { $0.message.qos == .atLeastOnce })
        try #require(readings.map(\.sequence) == Array(1...(sent[index] + 1)))
        try #require(Set(readings.map(\.run)).count == 1)
        try #require(readings.allSatisfy { !$0.isReplayed })
        let values = try fixture.observer.messages(on: "microbit/\(id)/temperature").map(\.text)
        try #require(values.last == "\(celsius)")
        let kept = try await fixture.retained()
        #expect(kept["\(id)/temperature"]?.text == "\(celsius)")
        #expect(kept["\(id)/temperature"]?.qos == .atLeastOnce)
        #expect(kept["\(id)/readings"] == nil)
      }
    }
  }

  @Test("Topics begin with the configured base topic, and are published with the configured QoS")
  func baseTopicAndQoS() async throws {
    try await withFixture(Plan(mqtt: #""base_topic":"school/lab-1","qos":0"#)) { fixture in
      let id = try await fixture.id()
      let observer = try fixture.observer
      let topics = ["readings", "temperature", "availability", "info"].map { "\(id)/\($0)" }
      for topic in topics + ["bridge/\(Fixture.gatewayID)/info"] {
        _ = try await observer.message("school/lab-1/\(topic)", within: Fixture.patience) { _ in true }
      }
      try await observer.publish("school/lab-1/\(id)/period/set", "60")
      _ = try await observer.message("school/lab-1/\(id)/period", within: Fixture.patience) {
        $0.text == "60"
      }
      _ = try await observer.message("school/lab-1/\(id)/period/result", within: Fixture.patience) { _ in
        true
      }
      let others = observer.messages.filter { !$0.topic.hasPrefix("school/lab-1/") }
      #expect(others.allSatisfy { $0.topic.hasPrefix("homeassistant/") })
      let messages = observer.messages.filter { $0.topic.hasPrefix("school/lab-1/\(id)/") }
      #expect(messages.allSatisfy { $0.qos == .atMostOnce || $0.topic.hasSuffix("/set") })
    }
  }
}
