import TestSupport
import Testing

/// Profiles and entries by a message for all gateways.
@Suite struct FleetTests {
  private static let topic = "microbit/fleet/config"

  private static func entry(_ index: Int, _ id: String, _ keys: String = "") -> String {
    #"{"match":{"identifier":"D\#(index):5A:00:0\#(index):C0:DE"},"id":"\#(id)"\#(keys)}"#
  }

  private static func message(_ version: Int, _ entries: String...) -> String {
    #"{"version":\#(version),"devices":[\#(entries.joined(separator: ","))]}"#
  }

  private static func decided(
    _ fixture: Fixture, _ version: Int?, _ status: String?, after mark: Int = 0
  ) async throws -> String? {
    let info = try await fixture.message("\(fixture.bridge)/info", after: mark) { message in
      let fleet = (try? message.json())?["fleet"]
      return fleet?["version"]?.int == version && fleet?["status"]?.string == status
    }
    return try info.json()["fleet"]?["reason"]?.string
  }

  @Test(
    "A message for the fleet adds entries; the last valid one stays, also without the broker, until it is removed"
  )
  func entries() async throws {
    try await withFixture(Plan(devices: 2, entries: Self.entry(0, "room-0"), more: #""fleet": true"#)) {
      fixture in
      try await fixture.online("room-0")
      let observer = try fixture.observer
      let valid = Self.message(1, Self.entry(0, "other"), Self.entry(1, "room-1", #","period":70"#))
      try await observer.publish(Self.topic, valid, retain: true)
      #expect(try await Self.decided(fixture, 1, "applied") == nil)
      try await fixture.message("room-1/period", "70")
      // The file wins.
      #expect(try await fixture.retained(of: "other").isEmpty)
      #expect(try await fixture.listed("room-0")?["fleet"] == nil)

      let mark = observer.mark
      try await observer.publish(
        Self.topic, Self.message(2, Self.entry(1, "room-1", #","period":0"#)), retain: true)
      let reason = try await Self.decided(fixture, 2, "rejected", after: mark)
      #expect(
        reason?.contains("devices[0].period: ") == true
          && reason?.contains("version 1 stays in force") == true)
      try await fixture.moreReadings("room-1", 3)
      for id in ["room-0", "room-1"] { #expect(try fixture.stayedOnline(id, after: mark)) }
      #expect(try await fixture.command(["devices"]).text.contains("by the fleet's configuration: room-1"))
      #expect(try await fixture.command(["doctor"]).text.contains("of microbit/fleet/config was rejected: "))
      let check = try await fixture.check()
      #expect(check.contains("fleet: version 1: 2 entries, 0 profiles") && check.contains(/70 ms +fleet\n/))

      try await fixture.stored(#""version":1"#)
      _ = try await fixture.stopGateway()
      let restart = observer.mark
      try await fixture.simulator.waitUntil(1, "it is not connected") { !$0.isConnected }
      try await fixture.broker.stop()
      try fixture.startGateway()
      try await fixture.simulator.waitUntil(1, "it is connected") { $0.isConnected }
      try await fixture.broker.start()
      // The broker has lost the message; that does not remove it.
      #expect(try await Self.decided(fixture, 1, "applied", after: restart) == nil)
      try await fixture.online("room-1", after: restart)
      let last = observer.mark
      try await observer.publish(Self.topic, "", retain: true)
      #expect(try await Self.decided(fixture, nil, nil, after: last) == nil)
      try await fixture.simulator.waitUntil(1, "it is disconnected") { !$0.isConnected }
      #expect(try await fixture.retained(of: "room-1").isEmpty)
      #expect(try fixture.stayedOnline("room-0", after: last))
    }
  }

  @Test("All gateways that allow it take the message, and no other")
  func gateways() async throws {
    var plans = ["ground", "attic", "cellar"].map { Plan.fixture($0, area: "House") }
    for index in 0..<2 { plans[index].more = #""fleet": true"# }
    try await withCluster(plans) { cluster in
      let observer = try cluster[0].observer
      let mark = observer.mark
      try await observer.publish(Self.topic, Self.message(7, Self.entry(5, "far")), retain: true)
      for fixture in cluster.fixtures.prefix(2) {
        #expect(try await Self.decided(fixture, 7, "applied", after: mark) == nil)
      }
      // Not even subscribed to.
      try await cluster[2].synchronizeGateway()
      #expect(try cluster[2].lines(with: "fleet").isEmpty)
      let info = try await cluster[2].message("bridge/cellar/info")
      #expect(try info.json()["fleet"] == nil)
    }
  }
}
