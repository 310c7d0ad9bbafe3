import Glibc
import TestSupport
import Testing

/// Two gateways at one broker, and restarts of the broker and of the gateways.
@Suite struct SharedBrokerTests {
  private static let id = Cluster.id
  private static let plans = [
    Plan.fixture("ground", area: "Ground floor"), Plan.fixture("attic", area: "Attic"),
  ]
  private static let persistent: @Sendable (String) -> String = { folder in
    "allow_anonymous true\npersistence true\npersistence_location \(folder)/\nautosave_on_changes true\nautosave_interval 1"
  }

  @Test(
    "Retained state is right after a restart of the broker, with or without persistence",
    arguments: [false, true],
    [SIGTERM, SIGKILL])
  func brokerRestarts(isPersistent: Bool, signal: Int32) async throws {
    var plans = Self.plans
    if isPersistent { plans[0].access = Self.persistent }
    try await withCluster(plans) { cluster in
      let (ground, attic) = (cluster[0], cluster[1])
      try await ground.waitForOwnership(of: Self.id)
      for fixture in cluster.fixtures { try await fixture.isConnected(times: 1) }
      var mark = try ground.observer.mark
      // Once without a move, once during a move.
      for (connects, isMoving) in [(2, false), (3, true)] {
        mark = try ground.observer.mark
        if signal == SIGTERM { try await ground.broker.stop() } else { try await ground.broker.kill() }
        if isMoving {
          try await cluster.move(from: ground, to: attic)
          try await attic.logged("online device")
          try await ground.logged("offline device")
        }
        try await ground.broker.start()
        let owner = isMoving ? attic : ground
        for fixture in cluster.fixtures { try await fixture.isConnected(times: connects) }
        try await owner.waitForOwnership(of: Self.id, after: mark)
        for fixture in cluster.fixtures { try await fixture.synchronizeGateway() }
        try await ground.observer.synchronize()
        let kept = try await ground.retained()
        #expect(kept["\(Self.id)/availability"]?.text == "online")
        #expect(try kept["\(Self.id)/info"]?.json()["owner"]?.string == owner.plan.id)
        #expect(kept["bridge/ground/state"]?.text == "online")
        #expect(kept["bridge/attic/state"]?.text == "online")
      }
    }
  }

  @Test("After restarts of the gateways, the retained state is that of the last owner")
  func gatewaysRestart() async throws {
    try await withCluster(Self.plans) { cluster in
      let (ground, attic) = (cluster[0], cluster[1])
      try await ground.waitForOwnership(of: Self.id)
      var mark = try ground.observer.mark
      try await cluster.move(from: ground, to: attic)
      try await attic.waitForOwnership(of: Self.id, after: mark)
      try await attic.stored(Self.id)
      // Normal restarts, while the micro:bit is in range.
      for fixture in [attic, ground] {
        mark = try ground.observer.mark
        try #require(try await fixture.stopGateway() == 0)
        try fixture.startGateway()
        try await fixture.bridgeOnline(after: mark)
        if fixture === attic { try await attic.online(Self.id, after: mark) }
        try await fixture.synchronizeGateway()
      }
      try await ground.observer.synchronize()
      var kept = try await ground.retained()
      try #require(kept["\(Self.id)/availability"]?.text == "online")
      try #require(try kept["\(Self.id)/info"]?.json()["owner"]?.string == "attic")
      // The owner is killed while the micro:bit leaves; the other gateway publishes nothing about it.
      try await attic.killGateway()
      try await attic.simulator.control("vanish", 0)
      mark = try ground.observer.mark
      try #require(try await ground.stopGateway() == 0)
      try ground.startGateway()
      try await ground.bridgeOnline(after: mark)
      try await ground.synchronizeGateway()
      try ground.expect(Self.id, after: mark, availability: [], owners: [])
      try attic.startGateway()
      try await attic.offline(Self.id, after: mark)
      try await attic.bridgeOnline(after: mark)
      kept = try await ground.retained()
      #expect(kept["\(Self.id)/availability"]?.text == "offline")
      #expect(try kept["\(Self.id)/info"]?.json()["owner"]?.string == "attic")
    }
  }

  @Test("A command for an absent micro:bit is answered by its owner or, without one, by all that know it")
  func pending() async throws {
    var plans = Self.plans
    for index in plans.indices {
      plans[index].entries = #"{"match":{"identifier":"\#(Cluster.address)"},"id":"kitchen"}"#
      plans[index].absent = [.gateway]
    }
    try await withCluster(plans) { cluster in
      let (ground, attic) = (cluster[0], cluster[1])
      try await ground.simulator.control("vanish", 0)
      for fixture in cluster.fixtures {
        try fixture.startGateway()
        try await fixture.bridgeOnline()
        try await fixture.synchronizeGateway()
      }
      func command(_ transaction: String, _ value: Int) async throws -> Int {
        let mark = try ground.observer.mark
        try await ground.observer.publish(
          "microbit/kitchen/period/set", #"{"value":\#(value),"transaction":"\#(transaction)"}"#)
        for fixture in cluster.fixtures {
          if try fixture.gateway.isRunning { try await fixture.synchronizeGateway() }
        }
        return mark
      }
      var mark = try await command("nobody's", 60)
      try #require(try ground.results("kitchen", "nobody's", after: mark) == ["pending", "pending"])
      // The gateway that connects executes the command; the other one drops it.
      try await ground.simulator.control("return", 0)
      try await ground.waitForOwnership(of: "kitchen")
      try await ground.message("kitchen/period/result", after: mark) { $0.text.contains("applied") }
      for fixture in cluster.fixtures { try await fixture.synchronizeGateway() }
      try #require(
        try ground.results("kitchen", "nobody's", after: mark) == ["pending", "pending", "applied"])

      try await ground.simulator.control("vanish", 0)
      try await ground.offline("kitchen", after: mark)
      mark = try await command("held", 70)
      try #require(try ground.results("kitchen", "held", after: mark) == ["pending"])

      try await ground.killGateway()
      try await attic.synchronizeGateway()
      mark = try await command("dead", 80)
      try #require(try ground.results("kitchen", "dead", after: mark) == ["pending"])
      try await attic.simulator.control("return", 0)
      try await attic.waitForOwnership(of: "kitchen", after: mark)
      try await attic.message("kitchen/period/result", after: mark) { $0.text.contains("applied") }
      try await attic.message("kitchen/period", "80", after: mark)
      try #require(try ground.results("kitchen", "dead", after: mark) == ["pending", "applied"])
    }
  }

  // MARK: On demand

  @Test(
    "Of two gateways that have a device in range, the one that visited it first keeps it",
    arguments: [false, true])
  func firstVisitorKeepsTheDevice(isBrokerLate: Bool) async throws {
    var plans = Self.plans
    for index in plans.indices {
      plans[index].entries =
        #"{"match":{"name_prefix":"BBC micro:bit"},"connect":"on_demand","every":5}"#
    }
    plans[1].absent = [.gateway]
    // It learns the owner of a device that it finds while it connects to it.
    plans[1].simulator += ["--connect-ms", "500"]
    plans[1].usesProxy = isBrokerLate
    try await withCluster(plans) { cluster in
      let (ground, attic) = (cluster[0], cluster[1])
      try await ground.waitForOwnership(of: Self.id)
      try await attic.simulator.control("return", 0)
      var mark = try ground.observer.mark
      attic.proxy?.cut()
      try attic.startGateway()
      if isBrokerLate {
        // It visits the device, and then learns that another gateway owns it.
        try await attic.logged("online device")
        attic.proxy?.restore()
      }
      try await attic.bridgeOnline(after: mark)
      try await attic.logged("owned by another gateway")
      let start = mark
      for _ in 1...3 {
        mark = try ground.observer.mark
        try await ground.message("\(Self.id)/readings", after: mark)
      }
      try await attic.synchronizeGateway()
      try ground.expect(Self.id, after: start, availability: [], owners: [])
      #expect(try await attic.listed(Self.id)?["session"]?.string == "idle")
    }
  }

  // MARK: Pins

  private static func pinned(to gateway: String) -> String {
    #"{"match":{"identifier":"\#(Cluster.address)"},"gateway":"\#(gateway)"}"#
  }

  @Test("A pinned micro:bit is not connected by other gateways, and handed over when the pin changes")
  func pins() async throws {
    var plans = Self.plans
    for index in plans.indices { plans[index].entries = Self.pinned(to: "ground") }
    try await withCluster(plans) { cluster in
      let (ground, attic) = (cluster[0], cluster[1])
      // In range of both.
      try await attic.simulator.control("return", 0)
      try await ground.waitForOwnership(of: Self.id)
      try await ground.reading(Self.id) { $0.sequence >= 20 }
      try await attic.synchronizeGateway()
      try #require(try await !attic.simulator.device(0).isConnected)

      try await attic.simulator.control("vanish", 0)
      var mark = try ground.observer.mark
      for fixture in cluster.fixtures {
        try fixture.configure(entries: Self.pinned(to: "attic"))
        try fixture.gateway.signal(SIGHUP)
      }
      // It answers before it has found the device.
      try await ground.message("\(Self.id)/info", after: mark) { $0.text.contains(#""pinned_to":"attic""#) }
      try await attic.synchronizeGateway()
      let command = #"{"value":500,"transaction":"early"}"#
      try await ground.observer.publish("microbit/\(Self.id)/period/set", command)
      for status in ["pending", "applied"] {
        try await ground.message("\(Self.id)/period/result", after: mark) {
          $0.text.contains(#""status":"\#(status)""#) && $0.text.contains("early")
        }
        if status == "pending" { try await attic.simulator.control("return", 0) }
      }
      try await attic.waitForOwnership(of: Self.id, from: "ground", after: mark)
      try await ground.simulator.waitUntil(0, "it is disconnected") { !$0.isConnected }
      for fixture in cluster.fixtures { try await fixture.synchronizeGateway() }
      let availability = try await ground.retained()["\(Self.id)/availability"]?.text
      #expect(availability == "online")
      #expect(try !ground.observer.messages(on: Cluster.discovery).contains { $0.payload.isEmpty })
      try await ground.announced(by: attic, after: mark)

      // Pinned to a gateway that does not run: the device is offline.
      mark = try ground.observer.mark
      try attic.configure(entries: Self.pinned(to: "cellar"))
      try attic.gateway.signal(SIGHUP)
      try await attic.offline(Self.id, after: mark)
      try await attic.synchronizeGateway()
      let kept = try await ground.retained()
      #expect(kept["\(Self.id)/availability"]?.text == "offline")
      #expect(try !ground.observer.messages(on: Cluster.discovery).contains { $0.payload.isEmpty })
    }
  }

  @Test("If the pin changed while the gateway was stopped, it publishes offline and removes nothing")
  func pinChangesWhileGatewayIsStopped() async throws {
    try await withCluster([Self.plans[0]]) { cluster in
      let ground = cluster[0]
      try await ground.waitForOwnership(of: Self.id)
      try await ground.stored(#""announced""#)
      try await ground.stored(#""id":"\#(Self.id)""#)
      try await ground.killGateway()
      let mark = try ground.observer.mark
      try ground.configure(entries: Self.pinned(to: "attic"))
      try ground.startGateway()
      try await ground.offline(Self.id, after: mark)
      try await ground.synchronizeGateway()
      let kept = try await ground.retained()
      #expect(kept["\(Self.id)/availability"]?.text == "offline")
      #expect(kept["\(Self.id)/info"]?.text.contains(#""pinned_to":"attic""#) == true)
      #expect(try !ground.observer.messages(on: Cluster.discovery).contains { $0.payload.isEmpty })
    }
  }

  @Test("A micro:bit that gets a pin and an id at once leaves no topics under the id before")
  func pinAndID() async throws {
    try await withCluster([Self.plans[0]]) { cluster in
      let ground = cluster[0]
      try await ground.waitForOwnership(of: Self.id)
      try ground.configure(entries: String(Self.pinned(to: "attic").dropLast()) + #","id":"window"}"#)
      try ground.gateway.signal(SIGHUP)
      try await ground.message("\(Self.id)/info") { $0.payload.isEmpty }
      try await ground.synchronizeGateway()
      #expect(try await ground.retained().keys.filter { $0.hasPrefix(Self.id) } == [])
    }
  }
}
