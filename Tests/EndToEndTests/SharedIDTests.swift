import TestSupport
import Testing

/// An id of a prefix, in the configurations of two gateways.
@Suite struct SharedIDTests {
  @Test("Of two micro:bits at two gateways the first has the id of the prefix; the other goes by its address")
  func firstComes() async throws {
    let plans = [("ground", Village.address), ("attic", "C5:00:00:00:00:01")].map { gateway, address in
      var plan = Plan.house(gateway, area: gateway)
      plan.simulator = ["--address", "0=\(address)"]
      plan.entries = #"{"match":{"name_prefix":"BBC micro:bit"},"id":"classroom"}"#
      return plan
    }
    try await withVillage(plans) { village in
      let (ground, attic) = (village[0], village[1])
      try await ground.holds("classroom")
      try await attic.simulator.control("return", 0)
      try await attic.holds("c50000000001")
      // A restart finds them as they were.
      for house in village.houses {
        let mark = try house.observer.mark
        try await house.remembered(#""announced""#)
        try #require(try await house.stopGateway() == 0)
        try house.startGateway()
        try await house.bridgeOnline(after: mark)
        try await house.holds(house === ground ? "classroom" : "c50000000001", after: mark)
      }
      for house in village.houses { try await house.settled() }
      try await ground.observer.synchronize()
      let kept = try await ground.retained()
      for (id, gateway, address) in [
        ("classroom", "ground", Village.address), ("c50000000001", "attic", "C5:00:00:00:00:01"),
      ] {
        let info = try kept["\(id)/info"]?.json()
        #expect(info?["gateway"]?.string == gateway)
        #expect(info?["identifier"]?.string == address)
        #expect(kept["\(id)/availability"]?.text == "online")
        #expect(kept["\(id)/temperature"] != nil)
      }
      #expect(kept["\(Village.id)/info"] == nil)
    }
  }
}
