import TestSupport
import Testing

/// The gateway with ejabberd as its broker.
@Suite(.serialized, .enabled(if: Ejabberd.isInstalled)) struct EjabberdTests {
  private static let id = Cluster.id

  @Test(
    "Readings, retained state, commands, the will, discovery and a move work with ejabberd",
    arguments: ["5", "3.1.1"])
  func core(protocolVersion: String) async throws {
    let plans = [Plan.fixture("ground", area: "Ground floor"), Plan.fixture("attic", area: "Attic")].map {
      plan in
      var plan = plan
      plan.mqtt = """
        "protocol":"\(protocolVersion)","username":"\(Ejabberd.username)","password_file":"password"
        """
      plan.files = ["password": "any"]
      plan.observer = (Ejabberd.username, "any")
      return plan
    }
    var first = plans[0]
    first.broker = .ejabberd
    try await withCluster([first, plans[1]]) { cluster in
      let (ground, attic) = (cluster[0], cluster[1])
      try await ground.waitForOwnership(of: Self.id)
      _ = try await ground.readings(Self.id, upTo: 20)
      try #require(try await ground.setPeriod(Self.id, "70")["status"]?.string == "applied")
      try await ground.publish("microbit/\(Self.id)/period/set", Array("75".utf8), correlation: "c")
      if protocolVersion == "5" {
        try #require(try await ground.reply(to: "c").json()["status"]?.string == "applied")
      }
      try await ground.message("\(Self.id)/period", "75")
      try await ground.observer.synchronize()
      var kept = try await ground.retained()
      #expect(kept["\(Self.id)/availability"]?.text == "online")
      #expect(kept["\(Self.id)/period"]?.text == "75")
      #expect(kept["bridge/attic/state"]?.text == "online")

      var mark = try ground.observer.mark
      try await cluster.moveAfterOffline(from: ground, to: attic)
      let info = try await attic.waitForOwnership(of: Self.id, after: mark)
      #expect(info["moved"]?["from"]?.string == "ground")
      try await attic.message("\(Self.id)/period", "75", after: mark)
      for fixture in cluster.fixtures { try await fixture.synchronizeGateway() }
      try ground.expect(
        Self.id, after: mark, availability: ["offline", "online"], owners: ["attic"])
      try await ground.announced(by: attic, after: mark)

      mark = try ground.observer.mark
      try await attic.killGateway()
      try await cluster.move(from: attic, to: ground)
      try await ground.waitForOwnership(of: Self.id, after: mark)

      // The broker restarts, with or without its retained messages.
      try await ground.broker.kill()
      try await ground.broker.start()
      try await ground.isConnected(times: 2)
      try await ground.synchronizeGateway()
      kept = try await ground.retained()
      #expect(kept["\(Self.id)/availability"]?.text == "online")
      #expect(try kept["\(Self.id)/info"]?.json()["owner"]?.string == "ground")
    }
  }
}
