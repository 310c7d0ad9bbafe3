import TestSupport
import Testing

/// Micro:bits without a period, or that change the written value.
@Suite struct PropertyTests {
  @Test("A command for a missing property fails with the reason, and readings continue")
  func missing() async throws {
    var plan = Plan()
    plan.entries = #"{"match":{"identifier":"D0:5A:00:00:C0:DE"},"id":"kitchen","period":80}"#
    plan.simulator = ["--no-period"]
    try await withFixture(plan) { fixture in
      try await fixture.online("kitchen")
      let result = try await fixture.setPeriod("kitchen", #"{"value":70,"transaction":"t"}"#)
      #expect(result["status"]?.string == "failed")
      #expect(result["reason"]?.string == "the device does not offer period")
      #expect(result["transaction"]?.string == "t")
      try await fixture.moreReadings("kitchen", 2)
      // A pending command fails when the micro:bit returns, and is discarded.
      try await fixture.vanish(0, "kitchen")
      #expect(try await fixture.setPeriod("kitchen", "60")["status"]?.string == "pending")
      let mark = try fixture.observer.mark
      try await fixture.simulator.control("return", 0)
      let second = try await fixture.message("kitchen/period/result", after: mark).json()
      #expect(second["status"]?.string == "failed")
      #expect(second["requested"]?.int == 60)
      #expect(try fixture.observer.messages(on: "microbit/kitchen/period").isEmpty)
      // The property is not announced, and there is no desired value.
      let document = try await fixture.observer.message(
        "homeassistant/device/ble_d05a0000c0de/config", within: Fixture.patience
      ) { !$0.payload.isEmpty }
      #expect(
        try document.json()["cmps"]?.keys
          == ["temperature", "connectivity", "rssi", "firmware", "model", "enabled", "reconnect"])
      #expect(try await fixture.listed("kitchen")?["desired"] == nil)
      #expect(try await fixture.retained(of: "kitchen")["kitchen/info"]?.json()["desired"] == nil)
      _ = try await fixture.stopGateway()
      #expect(try await fixture.check().contains(/period +80 ms +config.json/))
    }
  }

  @Test("A property that disappears is unavailable in Home Assistant, not removed, also after a restart")
  func missingLater() async throws {
    try await withFixture { fixture in
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
      try await fixture.startSimulator(["--no-period"])
      let absent = try await period(after: mark)
      #expect(absent?["cmd_t"] != nil)
      #expect(absent?["avty"]?.array?.first?["t"]?.string == "homeassistant/device/ble_\(id)/removed")
      #expect(try await fixture.setPeriod(id, "60")["status"]?.string == "failed")
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

  @Test("A written value that the micro:bit changes is reported as adjusted, and written once per link")
  func adjusted() async throws {
    var plan = Plan(period: 200)
    plan.simulator = ["--minimum-period", "100"]
    try await withFixture(plan) { fixture in
      let id = try await fixture.id()
      try await fixture.online(id)
      try await fixture.message("\(id)/period", "200")
      let monitor = try await BusMonitor(fixture.bus)
      let result = try await fixture.setPeriod(id, "70")
      #expect(result["status"]?.string == "adjusted")
      #expect(result["requested"]?.int == 70)
      #expect(result["actual"]?.int == 100)
      try await fixture.message("\(id)/period", "100")
      try await fixture.moreReadings(id, 5)
      #expect(try await monitor.calls(of: "WriteValue") == 1)
      // The requested value stays the desired one.
      let mark = try fixture.observer.mark
      try await fixture.simulator.control("reset", 0)
      let offline = try await fixture.offline(id, after: mark)
      try await fixture.message("\(id)/period", "100", after: offline.number)
      try await fixture.message("\(id)/info") { (try? $0.json())?["desired"]?["period"]?.int == 70 }
      #expect(try await monitor.calls(of: "WriteValue") == 2)
      #expect(try await fixture.setPeriod(id, "120")["status"]?.string == "applied")
    }
  }
}
