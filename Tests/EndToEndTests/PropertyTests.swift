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
      _ = try await house.stopGateway()
      #expect(try await house.check().contains(/period +80 ms +config.json/))
    }
  }

  @Test("A micro:bit that holds another value than was written: adjusted, and written once for each link")
  func adjusted() async throws {
    var plan = Plan(period: 200)
    plan.simulator = ["--least-period", "100"]
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
      // What was asked for stays wanted.
      let mark = try house.observer.mark
      try await house.simulator.control("reset", 0)
      let offline = try await house.offline(id, after: mark)
      try await house.message("\(id)/period", "100", after: offline.number)
      try await house.message("\(id)/info") { (try? $0.json())?["wanted"]?["period"]?.int == 70 }
      #expect(try await monitor.calls(of: "WriteValue") == 2)
      #expect(try await house.setPeriod(id, "120")["status"]?.string == "applied")
    }
  }
}
