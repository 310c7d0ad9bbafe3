import TestSupport
import Testing

/// Each gateway has a broker of its own, and the brokers are bridged.
@Suite struct BridgedBrokersTests {
  private static let id = Village.id

  @Test("Brokers that are bridged: a micro:bit moves, commands come from either side, and nothing goes round")
  func bridged() async throws {
    var attic = Plan.house("attic", area: "Attic")
    attic.broker = .bridged
    try await withVillage([Plan.house("ground", area: "Ground floor"), attic]) { village in
      let (ground, attic) = (village[0], village[1])
      for house in village.houses { try await house.hears(Self.id, heldBy: "ground") }
      for house in village.houses { try await house.message("bridge/attic/state", "online") }
      let marks = try village.houses.map { try $0.observer.mark }
      try await village.carry(from: ground, to: attic)
      for (house, mark) in zip(village.houses, marks) {
        try await house.hears(Self.id, heldBy: "attic", after: mark)
      }
      // From either side, and answered on both.
      for (number, house) in village.houses.enumerated() {
        try await house.observer.publish(
          "microbit/\(Self.id)/period/set", #"{"value":\#(60 + number),"transaction":"from \#(number)"}"#)
        for other in village.houses {
          try await other.message("\(Self.id)/period/result") { $0.text.contains("from \(number)") }
        }
      }
      // The ground floor's gateway, which the attic's broker knows by the bridge.
      for house in village.houses {
        try await house.settled()
        try await house.observer.synchronize()
      }
      for (house, mark) in zip(village.houses, marks) {
        for number in 0..<2 {
          try #require(try house.results(Self.id, "from \(number)") == ["applied"])
        }
        try house.expect(
          Self.id, after: mark, availability: ["offline", "online"], holders: ["attic"])
        let readings = try house.readings(Self.id, after: mark).map { "\($0.run) \($0.sequence)" }
        #expect(Set(readings).count == readings.count)
        for topic in ["\(Self.id)/info", "\(Self.id)/availability", "bridge/ground/info"] {
          let messages = try house.observer.messages(on: "microbit/" + topic, after: mark).map(\.text)
          #expect(messages.count < 12, "\(messages)")
        }
      }
    }
  }

  @Test("The bridge is down while a micro:bit moves: both sides agree when it is back")
  func bridgeDown() async throws {
    var attic = Plan.house("attic", area: "Attic")
    attic.broker = .bridged
    try await withVillage([Plan.house("ground", area: "Ground floor"), attic]) { village in
      let (ground, attic) = (village[0], village[1])
      for house in village.houses { try await house.hears(Self.id, heldBy: "ground") }
      try await attic.broker.kill()
      try await attic.logged("trying again")
      try await village.move(from: ground, to: attic)
      try await attic.logged("online device")
      try await ground.offline(Self.id)
      let marks = try village.houses.map { try $0.observer.mark }
      try await attic.broker.start()
      for (house, mark) in zip(village.houses, marks) {
        try await house.hears(Self.id, heldBy: "attic", after: mark)
      }
      try await ground.observer.publish(
        "microbit/\(Self.id)/period/set", #"{"value":70,"transaction":"back"}"#)
      try await ground.message("\(Self.id)/period/result") { $0.text.contains("applied") }
      for house in village.houses { try await house.settled() }
      for house in village.houses {
        try #require(try house.results(Self.id, "back") == ["applied"])
        let kept = try await house.retained()
        #expect(kept["\(Self.id)/availability"]?.text == "online")
        #expect(try kept["\(Self.id)/info"]?.json()["gateway"]?.string == "attic")
      }
    }
  }
}
