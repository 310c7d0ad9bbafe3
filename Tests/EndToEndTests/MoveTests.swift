import Glibc
import TestSupport
import Testing

/// A micro:bit moves from one gateway to another.
@Suite struct MoveTests {
  private static let id = Cluster.id
  private static let plans = [
    Plan.fixture("ground", area: "Ground floor"), Plan.fixture("attic", area: "Attic"),
  ]

  @Test(
    "A moved micro:bit keeps its topics, entity and period, and one gateway answers; also on the way back",
    arguments: [
      #"{"match":{"identifier":"C5:A1:B2:C3:D4:E5"}}"#, #"{"match":{"name_prefix":"BBC micro:bit"}}"#,
    ])
  func thereAndBack(entries: String) async throws {
    let plans = Self.plans.map { plan in
      var plan = plan
      plan.entries = entries
      return plan
    }
    try await withCluster(plans) { cluster in
      let (ground, attic) = (cluster[0], cluster[1])
      try await ground.waitForOwnership(of: Self.id)
      try #require(try await ground.setPeriod(Self.id, "70")["status"]?.string == "applied")

      let mark = try ground.observer.mark
      try await cluster.moveAfterOffline(from: ground, to: attic)
      let info = try await attic.waitForOwnership(of: Self.id, from: "ground", after: mark)
      #expect(info["moved"]?["area"]?.string == "Ground floor")
      #expect(isTimestamp(info["moved"]?["time"]?.string))
      #expect(info["desired"]?["period"]?.int == 70)
      #expect(info["area"]?.string == "Attic")
      // The attic's micro:bit has the default period, and gets the desired one set on the ground floor.
      try await attic.simulator.waitUntil(0, "it has the period") { $0.period == 70 }
      try await attic.message("\(Self.id)/period", "70", after: mark)
      let first = try await attic.reading(Self.id, after: mark) {
        $0.message.text.contains(#""gateway":"attic""#)
      }
      #expect(first.sequence == 1)
      try await ground.announced(by: attic, after: mark)
      _ = try await ground.observer.message(
        "\(Cluster.discovery)#link", after: mark, within: Fixture.patience
      ) { $0.text.contains("ble_gateway_attic") }
      #expect(try !ground.observer.messages(on: Cluster.discovery).contains { $0.payload.isEmpty })

      try await Self.expectOneAnswer(of: cluster, "one")
      try #require(try await attic.simulator.device(0).period == 80)
      try ground.expect(
        Self.id, after: mark, availability: ["offline", "online"], owners: ["attic"])

      let back = try ground.observer.mark
      try await cluster.moveAfterOffline(from: attic, to: ground)
      try await ground.waitForOwnership(of: Self.id, from: "attic", after: back)
      try await ground.message("\(Self.id)/period", "80", after: back)
      try await Self.expectOneAnswer(of: cluster, "two")
      try ground.expect(
        Self.id, after: back, availability: ["offline", "online"], owners: ["ground"])
    }
  }

  /// A command is executed, and answered exactly once, when messages that the move made cross each other no more.
  private static func expectOneAnswer(of cluster: Cluster, _ transaction: String) async throws {
    for fixture in cluster.fixtures + cluster.fixtures { try await fixture.synchronizeGateway() }
    let fixture = cluster[0]
    let mark = try fixture.observer.mark
    try await fixture.observer.publish(
      "microbit/\(id)/period/set", #"{"value":80,"transaction":"\#(transaction)"}"#)
    try await fixture.message("\(id)/period/result", after: mark) { $0.text.contains(transaction) }
    for fixture in cluster.fixtures { try await fixture.synchronizeGateway() }
    try #require(try fixture.results(id, transaction, after: mark) == ["applied"])
  }

  @Test("A micro:bit that a request has disabled is not connected by another gateway, until it is enabled")
  func disabled() async throws {
    try await withCluster(Self.plans) { cluster in
      let (ground, attic) = (cluster[0], cluster[1])
      try await ground.waitForOwnership(of: Self.id)
      func enable(_ isEnabled: Bool) async throws {
        try await ground.perform(
          "device/options", #"{"id":"\#(Self.id)","options":{"enabled":\#(isEnabled)}}"#)
      }
      try await enable(false)
      try await cluster.move(from: ground, to: attic)
      try await attic.message("bridge/attic/devices") { $0.text.contains(#""session":"disabled""#) }
      try await attic.restartGateway()
      let mark = try ground.observer.mark
      try await enable(true)
      try await attic.waitForOwnership(of: Self.id, after: mark)
      #expect(try ground.owners(Self.id) == ["ground", "attic"])
    }
  }

  @Test("After moves without an offline phase, the gateway with the link is the owner")
  func immediateMoves() async throws {
    try await withCluster(Self.plans + [Plan.fixture("cellar", area: "Cellar")]) { cluster in
      try await cluster[0].waitForOwnership(of: Self.id)
      var mark = try cluster[0].observer.mark
      for (from, to) in [(0, 1), (1, 2), (2, 0), (0, 2), (2, 1)] {
        mark = try cluster[0].observer.mark
        try await cluster.move(from: cluster[from], to: cluster[to])
        try await cluster[to].waitForOwnership(of: Self.id, from: cluster[from].plan.id, after: mark)
        // The old gateway has detected the lost link before the next move: its late messages cannot follow that.
        _ = try await cluster[from].gateway.line(within: Fixture.patience) { $0.contains("offline device") }
        try await cluster[from].synchronizeGateway()
      }
      try await Self.expectOneAnswer(of: cluster, "last")
      let kept = try await cluster[0].retained()
      #expect(kept["\(Self.id)/availability"]?.text == "online")
      #expect(try kept["\(Self.id)/info"]?.json()["owner"]?.string == "attic")
      for (fixture, isOwner) in zip(cluster.fixtures, [false, true, false]) {
        try #require(try await fixture.simulator.device(0).isConnected == isOwner)
      }
    }
  }

  @Test("Another gateway takes over from a killed one, which publishes nothing of the device when it is back")
  func ownerIsKilled() async throws {
    try await withCluster(Self.plans) { cluster in
      let (ground, attic) = (cluster[0], cluster[1])
      try await ground.waitForOwnership(of: Self.id)
      try await ground.message("\(Self.id)/period", "50")
      try await ground.stored(Self.id)
      try await ground.killGateway()
      var mark = try ground.observer.mark
      try await cluster.move(from: ground, to: attic)
      try await attic.waitForOwnership(of: Self.id, from: "ground", after: mark)
      try ground.expect(Self.id, after: mark, availability: [], owners: ["attic"])

      mark = try ground.observer.mark
      let offset = ground.brokerLogLength
      try ground.startGateway()
      try await ground.bridgeOnline(after: mark)
      try await ground.logged("owned by another gateway")
      try await Self.expectOneAnswer(of: cluster, "while away")
      let published = ground.topics(of: "ground", after: offset).filter {
        $0.hasPrefix("microbit/\(Self.id)/")
      }
      #expect(published == [])
      #expect(ground.topics(of: "ground", after: offset).contains("microbit/bridge/ground/state"))

      mark = try ground.observer.mark
      try await attic.killGateway()
      try await cluster.move(from: attic, to: ground)
      try await ground.waitForOwnership(of: Self.id, after: mark)
      try await ground.message("\(Self.id)/period", "80", after: mark)
      try ground.expect(Self.id, after: mark, availability: [], owners: ["ground"])
    }
  }

  @Test(
    "A device that moves from or to a gateway without a broker has its true owner when the broker is back")
  func moveDuringOutage() async throws {
    var plans = Self.plans
    plans[0].usesProxy = true
    try await withCluster(plans) { cluster in
      let (ground, attic) = (cluster[0], cluster[1])
      try await ground.waitForOwnership(of: Self.id)
      var mark = try ground.observer.mark
      ground.proxy?.cut()
      try await ground.message("bridge/ground/state", "offline", after: mark)
      try await cluster.move(from: ground, to: attic)
      try await ground.logged("offline device")
      try await attic.waitForOwnership(of: Self.id, after: mark)
      try await attic.synchronizeGateway()
      let before = mark
      let offset = ground.brokerLogLength
      mark = try ground.observer.mark
      ground.proxy?.restore()
      try await ground.bridgeOnline(after: mark)
      try await ground.logged("owned by another gateway")
      try await ground.synchronizeGateway()
      try await Self.expectOneAnswer(of: cluster, "mended")
      try ground.expect(Self.id, after: before, availability: [], owners: ["attic"])
      let published = ground.topics(of: "ground", after: offset).filter {
        $0.hasPrefix("microbit/\(Self.id)/")
      }
      #expect(published == [])

      // It moves back to the gateway without a broker: published when the broker is back, with the old gateway.
      mark = try ground.observer.mark
      ground.proxy?.cut()
      try await ground.message("bridge/ground/state", "offline", after: mark)
      try await cluster.move(from: attic, to: ground)
      try await attic.offline(Self.id, after: mark)
      try await ground.logged("taken over")
      mark = try ground.observer.mark
      ground.proxy?.restore()
      try await ground.waitForOwnership(of: Self.id, from: "attic", after: mark)
      try await Self.expectOneAnswer(of: cluster, "back")
      try ground.expect(Self.id, after: mark, availability: ["online"], owners: ["ground"])
    }
  }

  @Test("A device that moved and was removed from the old gateway's configuration in an outage is kept")
  func moveAndRemovalDuringOutage() async throws {
    var plans = Self.plans
    plans[0].usesProxy = true
    try await withCluster(plans) { cluster in
      let (ground, attic) = (cluster[0], cluster[1])
      try await ground.waitForOwnership(of: Self.id)
      try await ground.stored(#""announced""#)
      var mark = try ground.observer.mark
      ground.proxy?.cut()
      try await ground.message("bridge/ground/state", "offline", after: mark)
      try ground.configure(entries: #"{"match":{"identifier":"D1:5A:00:01:C0:DE"}}"#)
      try ground.gateway.signal(SIGHUP)
      try await ground.logged("configuration reloaded")
      try await cluster.move(from: ground, to: attic)
      try await attic.waitForOwnership(of: Self.id, after: mark)
      try await attic.message("\(Self.id)/temperature", after: mark)
      try await ground.announced(by: attic, after: mark)
      mark = try ground.observer.mark
      ground.proxy?.restore()
      try await ground.bridgeOnline(after: mark)
      for fixture in cluster.fixtures { try await fixture.synchronizeGateway() }
      try await ground.observer.synchronize()
      let kept = try await ground.retained()
      #expect(kept["\(Self.id)/availability"]?.text == "online")
      #expect(try kept["\(Self.id)/info"]?.json()["owner"]?.string == "attic")
      #expect(kept["\(Self.id)/temperature"] != nil)
      #expect(kept[Cluster.discovery]?.text.contains("bridge/attic/state") == true)
      #expect(try attic.lines(with: "deleted in Home Assistant").isEmpty)
    }
  }

  @Test("Deleted in Home Assistant at one gateway, it is not announced by the next, until it is added")
  func deletedInHomeAssistant() async throws {
    try await withCluster(Self.plans) { cluster in
      let (ground, attic) = (cluster[0], cluster[1])
      try await ground.waitForOwnership(of: Self.id)
      try await ground.announced(by: ground)
      var mark = try ground.observer.mark
      try await ground.observer.publish(Cluster.discovery, [], retain: true)
      try await ground.message("\(Self.id)/info") { $0.text.contains(#""home_assistant":"deleted""#) }
      for fixture in cluster.fixtures { try await fixture.synchronizeGateway() }
      // What changes later does not delete it again.
      for name in [#""A""#, #""B""#, "null"] {
        try await ground.perform("device/options", #"{"id":"\#(Self.id)","options":{"name":\#(name)}}"#)
        try await ground.synchronizeGateway()
      }
      #expect(try ground.observer.messages(on: Cluster.discovery, after: mark).count == 1)
      // A document that was on its way is cleared.
      let late = try ground.observer.mark
      let document = try #require(try ground.observer.messages(on: Cluster.discovery).first?.payload)
      try await ground.observer.publish(Cluster.discovery, document, retain: true)
      _ = try await ground.observer.message(
        Cluster.discovery, after: late, within: Fixture.patience, where: \.payload.isEmpty)
      #expect(try ground.lines(with: "deleted in Home Assistant").count == 1)

      mark = try ground.observer.mark
      try await cluster.moveAfterOffline(from: ground, to: attic)
      try await Self.expectDeleted(at: attic, after: mark)

      mark = try ground.observer.mark
      try await attic.perform("device/add", #"{"identifier":"\#(Cluster.address)"}"#)
      try await ground.announced(by: attic, after: mark)
      try await ground.message("\(Self.id)/info", after: mark) { !$0.text.contains("home_assistant") }
      try await ground.synchronizeGateway()
      mark = try ground.observer.mark
      try await cluster.moveAfterOffline(from: attic, to: ground)
      try await ground.announced(by: ground, after: mark)
    }
  }

  @Test("A gateway that no longer announces leaves that to the next one")
  func discoverySwitchedOff() async throws {
    try await withCluster(Self.plans) { cluster in
      let (ground, attic) = (cluster[0], cluster[1])
      try await ground.waitForOwnership(of: Self.id)
      try await ground.announced(by: ground)
      for fixture in cluster.fixtures { try await fixture.synchronizeGateway() }
      var mark = try ground.observer.mark
      let text = ground.configuration(ground.plan.entries)
        .replacing(#""devices":"#, with: #""home_assistant": { "discovery": false }, "devices":"#)
      try ground.folder.write(text, to: "config.json")
      try await ground.perform("reload")
      _ = try await ground.observer.message(
        Cluster.discovery, after: mark, within: Fixture.patience, where: \.payload.isEmpty)
      try await attic.synchronizeGateway()
      mark = try ground.observer.mark
      try await cluster.moveAfterOffline(from: ground, to: attic)
      try await ground.announced(by: attic, after: mark)
    }
  }

  @Test("Deleted in Home Assistant while its gateway is off, it is not announced by the next one")
  func deletedWhileOwnerIsOffline() async throws {
    try await withCluster(Self.plans) { cluster in
      let (ground, attic) = (cluster[0], cluster[1])
      try await ground.waitForOwnership(of: Self.id)
      try await ground.announced(by: ground)
      try await attic.synchronizeGateway()
      try await ground.killGateway()
      try await attic.synchronizeGateway()
      let mark = try ground.observer.mark
      try await ground.observer.publish(Cluster.discovery, [], retain: true)
      try await attic.logged("deleted in Home Assistant")
      // A new connection brings the retained `info` of the owner again.
      #expect(try await attic.stopGateway() == 0)
      try attic.startGateway()
      try await attic.bridgeOnline(after: mark)
      try await cluster.move(from: ground, to: attic)
      try await Self.expectDeleted(at: attic, after: mark)
    }
  }

  /// The gateway owns the micro:bit, and knows what it would announce, but does not.
  private static func expectDeleted(at fixture: Fixture, after mark: Int) async throws {
    let info = try await fixture.waitForOwnership(of: id, after: mark)
    #expect(info["home_assistant"]?.string == "deleted")
    let owner = #""owner":"\#(fixture.plan.id)""#
    try await fixture.message("\(id)/info", after: mark) {
      $0.text.contains(owner) && $0.text.contains("firmware")
    }
    try await fixture.synchronizeGateway()
    let documents = try fixture.observer.messages(on: Cluster.discovery, after: mark)
    #expect(documents.allSatisfy { $0.payload.isEmpty })
  }

  @Test(
    "A retained command is executed once by one gateway, despite a move and restarts",
    arguments: [Cluster.id + "/period/set", "all/period/set", "area/ground-floor/period/set"])
  func retainedCommand(topic: String) async throws {
    var plans = Self.plans
    plans[1].absent = [.gateway]
    try await withCluster(plans) { cluster in
      let (ground, attic) = (cluster[0], cluster[1])
      try await ground.waitForOwnership(of: Self.id)
      try await ground.observer.publish("microbit/\(topic)", "90", retain: true)
      try await ground.message("\(Self.id)/period", "90")
      try #require(try await ground.setPeriod(Self.id, "60")["status"]?.string == "applied")
      try await ground.synchronizeGateway()
      let mark = try ground.observer.mark
      // It learns the owner of the micro:bit before it can connect to it.
      try attic.startGateway()
      try await attic.bridgeOnline()
      try await attic.logged("owned by another gateway")
      try await attic.synchronizeGateway()
      try await cluster.move(from: ground, to: attic)
      try await attic.waitForOwnership(of: Self.id, after: mark)
      try await attic.simulator.waitUntil(0, "it has the period") { $0.period == 60 }
      // Each gateway restarts, and receives the retained command again.
      for fixture in cluster.fixtures {
        let restart = try fixture.observer.mark
        try #require(try await fixture.stopGateway() == 0)
        try fixture.startGateway()
        try await fixture.bridgeOnline(after: restart)
        try await fixture.synchronizeGateway()
      }
      try await attic.waitForOwnership(of: Self.id, after: mark)
      try await attic.synchronizeGateway()
      let periods = try ground.changes("\(Self.id)/period", after: mark)
      #expect(periods.allSatisfy { $0 == "60" || $0 == "50" }, "\(periods)")
      let results = try ground.changes("\(Self.id)/period/result", after: mark)
      #expect(results == [])
      try #require(try await attic.simulator.device(0).period == 60)
    }
  }
}
