import TestSupport
import Testing

/// Each gateway has a broker of its own, and the brokers are bridged.
@Suite struct BridgedBrokersTests {
  private static let id = Cluster.id

  @Test(
    "With bridged brokers, a micro:bit moves, also while the bridge is down; commands work, and nothing loops"
  )
  func moveBetweenBridgedBrokers() async throws {
    var attic = Plan.fixture("attic", area: "Attic")
    attic.broker = .bridged
    try await withCluster([Plan.fixture("ground", area: "Ground floor"), attic]) { cluster in
      let (ground, attic) = (cluster[0], cluster[1])
      for fixture in cluster.fixtures { try await fixture.waitForOwner("ground", of: Self.id) }
      for fixture in cluster.fixtures { try await fixture.message("bridge/attic/state", "online") }
      let marks = try cluster.fixtures.map { try $0.observer.mark }
      try await cluster.moveAfterOffline(from: ground, to: attic)
      for (fixture, mark) in zip(cluster.fixtures, marks) {
        try await fixture.waitForOwner("attic", of: Self.id, after: mark)
      }
      // Commands from either broker are answered on both.
      for (number, fixture) in cluster.fixtures.enumerated() {
        try await fixture.observer.publish(
          "microbit/\(Self.id)/period/set", #"{"value":\#(60 + number),"transaction":"from \#(number)"}"#)
        for other in cluster.fixtures {
          try await other.message("\(Self.id)/period/result") { $0.text.contains("from \(number)") }
        }
      }
      // Everything has passed the bridge before the messages are counted.
      for fixture in cluster.fixtures {
        try await fixture.synchronizeGateway()
        try await fixture.observer.synchronize()
      }
      for (fixture, mark) in zip(cluster.fixtures, marks) {
        for number in 0..<2 {
          try #require(try fixture.results(Self.id, "from \(number)") == ["applied"])
        }
        try fixture.expect(
          Self.id, after: mark, availability: ["offline", "online"], owners: ["attic"])
        let readings = try fixture.readings(Self.id, after: mark).map { "\($0.run) \($0.sequence)" }
        #expect(Set(readings).count == readings.count)
        for topic in ["\(Self.id)/info", "\(Self.id)/availability", "bridge/ground/info"] {
          let messages = try fixture.observer.messages(on: "microbit/" + topic, after: mark).map(\.text)
          #expect(messages.count < 12, "\(messages)")
        }
      }

      // Back, and then again while the bridge is down: both brokers agree when it is back.
      let back = try cluster.fixtures.map { try $0.observer.mark }
      try await cluster.moveAfterOffline(from: attic, to: ground)
      for (fixture, mark) in zip(cluster.fixtures, back) {
        try await fixture.waitForOwner("ground", of: Self.id, after: mark)
      }
      try await attic.broker.kill()
      try await attic.logged("trying again")
      let down = try ground.observer.mark
      try await cluster.move(from: ground, to: attic)
      try await attic.simulator.waitUntil(0, "it is used") { $0.isConnected && $0.isNotifying }
      try await ground.offline(Self.id, after: down)
      let up = try cluster.fixtures.map { try $0.observer.mark }
      try await attic.broker.start()
      for (fixture, mark) in zip(cluster.fixtures, up) {
        try await fixture.waitForOwner("attic", of: Self.id, after: mark)
      }
      try await ground.observer.publish(
        "microbit/\(Self.id)/period/set", #"{"value":70,"transaction":"back"}"#)
      try await ground.message("\(Self.id)/period/result", after: up[0]) { $0.text.contains("applied") }
      for fixture in cluster.fixtures { try await fixture.synchronizeGateway() }
      for fixture in cluster.fixtures {
        try #require(try fixture.results(Self.id, "back") == ["applied"])
        let kept = try await fixture.retained()
        #expect(kept["\(Self.id)/availability"]?.text == "online")
        #expect(try kept["\(Self.id)/info"]?.json()["owner"]?.string == "attic")
      }
    }
  }
}
