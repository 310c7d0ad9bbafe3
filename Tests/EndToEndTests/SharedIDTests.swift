import TestSupport
import Testing

/// An id of a prefix, in the configurations of two gateways.
@Suite struct SharedIDTests {
  @Test("Of two micro:bits at two gateways the first has the id of the prefix; the other goes by its address")
  func firstComes() async throws {
    let plans = [("ground", Cluster.address), ("attic", "C5:00:00:00:00:01")].map { gateway, address in
      var plan = Plan.fixture(gateway, area: gateway)
      plan.simulator = ["--address", "0=\(address)"]
      plan.entries = #"{"match":{"name_prefix":"BBC micro:bit"},"id":"classroom"}"#
      return plan
    }
    try await withCluster(plans) { cluster in
      let (ground, attic) = (cluster[0], cluster[1])
      try await ground.holds("classroom")
      try await attic.simulator.control("return", 0)
      try await attic.holds("c50000000001")
      // A restart finds them as they were.
      for fixture in cluster.fixtures {
        let mark = try fixture.observer.mark
        try await fixture.remembered(#""announced""#)
        try #require(try await fixture.stopGateway() == 0)
        try fixture.startGateway()
        try await fixture.bridgeOnline(after: mark)
        try await fixture.holds(fixture === ground ? "classroom" : "c50000000001", after: mark)
      }
      for fixture in cluster.fixtures { try await fixture.settled() }
      try await ground.observer.synchronize()
      let kept = try await ground.retained()
      for (id, gateway, address) in [
        ("classroom", "ground", Cluster.address), ("c50000000001", "attic", "C5:00:00:00:00:01"),
      ] {
        let info = try kept["\(id)/info"]?.json()
        #expect(info?["gateway"]?.string == gateway)
        #expect(info?["identifier"]?.string == address)
        #expect(kept["\(id)/availability"]?.text == "online")
        #expect(kept["\(id)/temperature"] != nil)
      }
      #expect(kept["\(Cluster.id)/info"] == nil)
    }
  }
}
