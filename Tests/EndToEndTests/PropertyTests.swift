import TestSupport
import Testing

/// Micro:bits that do not do with the period what others do.
@Suite struct PropertyTests {
  @Test("A micro:bit without the property: the command fails with the reason, readings come")
  func missing() async throws {
    var plan = Plan()
    plan.entries = #"{"match":{"identifier":"D0:5A:00:00:C0:DE"},"id":"kitchen","period":80}"#
    plan.simulator = ["--no-period"]
    try await withHouse(plan) { house in
      try await house.online("kitchen")
      let result = try await house.setPeriod("kitchen", #"{"value":70,"transaction":"t"}"#)
      #expect(result["status"]?.string == "failed")
      #expect(result["reason"]?.string == "the device does not offer period")
      #expect(result["transaction"]?.string == "t")
      try await house.moreReadings("kitchen", 2)
      // One that waited for it fails on arrival, and is not kept.
      try await house.vanish(0, "kitchen")
      #expect(try await house.setPeriod("kitchen", "60")["status"]?.string == "pending")
      let mark = try house.observer.mark
      try await house.simulator.control("return", 0)
      let second = try await house.message("kitchen/period/result", after: mark).json()
      #expect(second["status"]?.string == "failed")
      #expect(second["requested"]?.int == 60)
      #expect(try house.observer.messages(on: "microbit/kitchen/period").isEmpty)
      // Nor is it told of anywhere.
      let document = try await house.observer.message(
        "homeassistant/device/ble_d05a0000c0de/config", within: House.patience
      ) { !$0.payload.isEmpty }
      #expect(
        try document.json()["cmps"]?.keys
          == ["temperature", "connectivity", "rssi", "firmware", "model", "reconnect"])
      #expect(try await house.listed("kitchen")?["desired"] == nil)
      #expect(try await house.retained(of: "kitchen")["kitchen/info"]?.json()["desired"] == nil)
      _ = try await house.stopGateway()
      #expect(try await house.check().contains(/period +80 ms +config.json/))
    }
  }

  @Test(
    "A property that is missing later is unavailable in Home Assistant, not removed; over a restart as well")
  func missingLater() async throws {
    try await withHouse { house in
      let id = try await house.id()
      let topic = "homeassistant/device/ble_\(id)/config"
      func period(after mark: Int) async throws -> JSON? {
        let document = try await house.observer.message(topic, after: mark, within: House.patience) {
          !$0.payload.isEmpty
        }
        return try document.json()["cmps"]?["period"]
      }
      let present = try await period(after: 0)
      #expect(present?["cmd_t"] != nil && present?["avty"] == nil)
      // Another program.
      var mark = try house.observer.mark
      try await house.killSimulator()
      try await house.startSimulator(["--no-period"])
      let absent = try await period(after: mark)
      #expect(absent?["cmd_t"] != nil)
      #expect(absent?["avty"]?.array?.first?["t"]?.string == "homeassistant/device/ble_\(id)/removed")
      #expect(try await house.setPeriod(id, "60")["status"]?.string == "failed")
      // What it once offered is remembered.
      _ = try await house.stopGateway()
      mark = try house.observer.mark
      try house.startGateway()
      #expect(try await period(after: mark)?["cmd_t"] != nil)
      mark = try house.observer.mark
      try await house.killSimulator()
      try await house.startSimulator()
      try await house.message("\(id)/period", "50", after: mark)
      #expect(try await house.setPeriod(id, "60")["status"]?.string == "applied")
    }
  }

  @Test("A micro:bit that holds another value than was written: adjusted, and written once for each link")
  func adjusted() async throws {
    var plan = Plan(period: 200)
    plan.simulator = ["--minimum-period", "100"]
    try await withHouse(plan) { house in
      let id = try await house.id()
      try await house.online(id)
      try await house.message("\(id)/period", "200")
      let monitor = try await BusMonitor(house.bus)
      let result = try await house.setPeriod(id, "70")
      #expect(result["status"]?.string == "adjusted")
      #expect(result["requested"]?.int == 70)
      #expect(result["actual"]?.int == 100)
      try await house.message("\(id)/period", "100")
      try await house.moreReadings(id, 5)
      #expect(try await monitor.calls(of: "WriteValue") == 1)
      // The requested value stays the desired one.
      let mark = try house.observer.mark
      try await house.simulator.control("reset", 0)
      let offline = try await house.offline(id, after: mark)
      try await house.message("\(id)/period", "100", after: offline.number)
      try await house.message("\(id)/info") { (try? $0.json())?["desired"]?["period"]?.int == 70 }
      #expect(try await monitor.calls(of: "WriteValue") == 2)
      #expect(try await house.setPeriod(id, "120")["status"]?.string == "applied")
    }
  }
}
