import Testing

/// A micro:bit that no longer offers a property.
@Suite struct PropertyTests {

  @Test("A micro:bit has what its program offers, and nothing of the program before")
  func programs() async throws {
    var plan = Plan(period: 1000)
    plan.simulator = ["--services", "temperature,led"]
    try await withFixture(plan) { fixture in
      let id = try await fixture.id()
      let document = "homeassistant/device/ble_\(id)/config"
      func entities(after mark: Int, _ has: String, _ lacks: String) async throws {
        _ = try await fixture.observer.message(document, after: mark, within: Fixture.patience) {
          guard let entities = try? $0.json()["cmps"] else { return false }
          return entities[has]?["name"] != nil && entities[lacks]?["name"] == nil
        }
      }
      try await entities(after: 0, "led_text", "button_a")
      try await fixture.message("\(id)/info") {
        (try? $0.json())?["properties"]?.array?.map(\.string) == ["temperature", "period", "led_text"]
      }
      try await fixture.message("\(id)/period", "1000")
      var mark = try fixture.observer.mark
      try await fixture.killSimulator()
      try await fixture.startSimulator(["--services", "buttons,accelerometer"])
      try await entities(after: mark, "accelerometer_x", "temperature")
      try await fixture.message("\(id)/temperature", "", after: mark)
      try await fixture.message("\(id)/period", "", after: mark)
      try await fixture.message("\(id)/accelerometer", after: mark) { !$0.payload.isEmpty }
      // The desired period is not lost.
      mark = try fixture.observer.mark
      try await fixture.killSimulator()
      try await fixture.startSimulator(["--services", "temperature"])
      try await entities(after: mark, "temperature", "accelerometer_x")
      try await fixture.message("\(id)/accelerometer", "", after: mark)
    }
  }

  @Test("A property that disappears is unavailable in Home Assistant, not removed, also after a restart")
  func missingLater() async throws {
    var plan = Plan()
    plan.entries = #"{"match":{"name_prefix":"BBC micro:bit"},"properties":["temperature","period"]}"#
    try await withFixture(plan) { fixture in
      let id = try await fixture.id()
      let topic = "homeassistant/device/ble_\(id)/config"
      func period(after mark: Int) async throws -> JSON? {
        let document = try await fixture.observer.message(topic, after: mark, within: Fixture.patience) {
          !$0.payload.isEmpty
        }
        return try document.json()["cmps"]?["period"]
      }
      let present = try await period(after: 0)
      #expect(present?["cmd_t"] != nil && present?["avty"] == nil)
      // Another program on the micro:bit.
      var mark = try fixture.observer.mark
      try await fixture.killSimulator()
      let temperatureAlone = #"""
        {"name":"BBC micro:bit [zugev]","address":"D0:5A:00:00:C0:DE","services":[
          {"uuid":"e95d6100-251d-470a-a062-fa1922dfa9a8","characteristics":[
            {"uuid":"e95d9250-251d-470a-a062-fa1922dfa9a8","flags":["read","notify"],"value":"15"}]}]}
        """#
      try fixture.folder.write(temperatureAlone, to: "other.json")
      try await fixture.startSimulator([
        "--devices", "0", "--peripheral", fixture.folder.path + "/other.json",
      ])
      let absent = try await period(after: mark)
      #expect(absent?["cmd_t"] != nil)
      #expect(absent?["avty"]?.array?.first?["t"]?.string == "homeassistant/device/ble_\(id)/removed")
      let refused = try await fixture.setPeriod(id, #"{"value":60,"transaction":"t"}"#)
      #expect(refused["status"]?.string == "failed" && refused["transaction"]?.string == "t")
      #expect(refused["reason"]?.string == "the device does not offer period")
      #expect(try await fixture.listed(id)?["desired"] == nil)
      // The properties that it once had are stored.
      _ = try await fixture.stopGateway()
      mark = try fixture.observer.mark
      try fixture.startGateway()
      #expect(try await period(after: mark)?["cmd_t"] != nil)
      mark = try fixture.observer.mark
      try await fixture.killSimulator()
      try await fixture.startSimulator()
      try await fixture.message("\(id)/period", "50", after: mark)
      #expect(try await fixture.setPeriod(id, "60")["status"]?.string == "applied")
    }
  }
}
