import Testing

/// The configurations of two gateways have the same id for a prefix.
@Suite struct SharedDeviceIDTests {
  @Test("The first micro:bit gets the id of the prefix; one at another gateway has its address as id")
  func firstMicrobitGetsID() async throws {
    let plans = [("ground", Cluster.address), ("attic", "C5:00:00:00:00:01")].map { gateway, address in
      var plan = Plan.fixture(gateway, area: gateway)
      plan.simulator = ["--address", "0=\(address)"]
      plan.entries = #"{"match":{"name_prefix":"BBC micro:bit"},"id":"classroom"}"#
      return plan
    }
    try await withCluster(plans) { cluster in
      let (ground, attic) = (cluster[0], cluster[1])
      try await ground.waitForOwnership(of: "classroom")
      try await attic.simulator.control("return", 0)
      try await attic.waitForOwnership(of: "c50000000001")
      // Both keep their ids after a restart.
      for fixture in cluster.fixtures {
        let mark = try fixture.observer.mark
        try await fixture.stored(#""announced""#)
        try #require(try await fixture.stopGateway() == 0)
        try fixture.startGateway()
        try await fixture.bridgeOnline(after: mark)
        try await fixture.waitForOwnership(of: fixture === ground ? "classroom" : "c50000000001", after: mark)
      }
      for fixture in cluster.fixtures { try await fixture.synchronizeGateway() }
      try await ground.observer.synchronize()
      let kept = try await ground.retained()
      for (id, gateway, address) in [
        ("classroom", "ground", Cluster.address), ("c50000000001", "attic", "C5:00:00:00:00:01"),
      ] {
        let info = try kept["\(id)/info"]?.json()
        #expect(info?["owner"]?.string == gateway)
        #expect(info?["identifier"]?.string == address)
        #expect(kept["\(id)/availability"]?.text == "online")
        #expect(kept["\(id)/temperature"] != nil)
      }
      #expect(kept["\(Cluster.id)/info"] == nil)
    }
  }
}
