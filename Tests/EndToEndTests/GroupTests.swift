import Store
import TestSupport
import Testing

/// Commands for many devices at once.
@Suite struct GroupTests {
  /// Two in the living room, one in the kitchen, one in the gateway's area.
  private static var plan: Plan {
    var plan = Plan(devices: 4)
    plan.gateway = #""area":"Hall""#
    plan.entries = """
      {"match":{"identifier":"D0:5A:00:00:C0:DE"},"id":"window","area":"Living room"},
      {"match":{"identifier":"D1:5A:00:01:C0:DE"},"id":"sofa","area":"living_room"},
      {"match":{"identifier":"D2:5A:00:02:C0:DE"},"id":"stove","area":"Kitchen"},
      {"match":{"name_prefix":"BBC micro:bit"},"id":"door"}
      """
    return plan
  }

  private static let all = ["window", "sofa", "stove", "door"]

  /// Sends a command to a group, and expects one answer from each of `ids`; returns the answers by id. A later command
  /// to every device ensures that no answer is outstanding.
  private static func answers(
    _ fixture: Fixture, to topic: String, _ payload: String, of ids: [String] = all
  ) async throws -> [String: JSON] {
    let mark = try fixture.observer.mark
    try await fixture.publish("microbit/\(topic)", Array(payload.utf8), correlation: topic)
    for id in ids {
      try await fixture.message("\(id)/period/result", after: mark) { $0.text.contains(#""g""#) }
    }
    for id in all {
      try await fixture.observer.publish("microbit/\(id)/period/set", #"{"value":90,"transaction":"end"}"#)
      try await fixture.message("\(id)/period/result", after: mark) { $0.text.contains(#""end""#) }
    }
    var answers: [String: JSON] = [:]
    for id in all {
      let results = try fixture.observer.messages(on: "microbit/\(id)/period/result", after: mark)
        .map { try $0.json() }.filter { $0["transaction"]?.string == "g" }
      #expect(results.count <= 1)
      answers[id] = results.first
    }
    // Each member also answers on the response topic.
    let replies = try fixture.observer.messages(on: "replies", after: mark)
    #expect(replies.count { $0.correlationData == Array(topic.utf8) } == ids.count)
    return answers
  }

  @Test("A command to all, or to an area in any spelling, is answered by each member and no other device")
  func groups() async throws {
    try await withFixture(Self.plan) { fixture in
      for id in Self.all { try await fixture.online(id) }
      let groups: [(topic: String, members: [String])] = [
        ("all", Self.all), ("area/living-room", ["window", "sofa"]),
        ("area/Living room", ["window", "sofa"]),
        ("area/LIVING_ROOM", ["window", "sofa"]), ("area/kitchen", ["stove"]), ("area/hall", ["door"]),
        ("area/cellar", []), ("area/---", []),
      ]
      for (topic, members) in groups {
        let answers = try await Self.answers(
          fixture, to: "\(topic)/period/set", #"{"value":70,"transaction":"g"}"#, of: members)
        #expect(Set(answers.keys) == Set(members), "\(topic)")
        #expect(answers.values.allSatisfy { $0["status"]?.string == "applied" && $0["actual"]?.int == 70 })
      }
    }
  }

  @Test("An area set by request overrides the configured one; a device without area is in the gateway's")
  func requestedArea() async throws {
    try await withFixture(Self.plan) { fixture in
      for id in Self.all { try await fixture.online(id) }
      try await fixture.perform("device/options", #"{"id":"stove","options":{"area":"Hall"}}"#)
      let payload = #"{"value":70,"transaction":"g"}"#
      let hall = try await Self.answers(fixture, to: "area/hall/period/set", payload, of: ["door", "stove"])
      #expect(Set(hall.keys) == ["door", "stove"])
      let kitchen = try await Self.answers(fixture, to: "area/kitchen/period/set", payload, of: [])
      #expect(kitchen.isEmpty)
    }
  }

  @Test("An invalid command is rejected by each member; one for a property that none can write is ignored")
  func invalidCommand() async throws {
    try await withFixture(Self.plan) { fixture in
      for id in Self.all { try await fixture.online(id) }
      for topic in ["all/temperature/set", "area/hall/colour/set"] {
        try await fixture.observer.publish("microbit/\(topic)", "20")
      }
      let mark = try fixture.observer.mark
      try await fixture.observer.publish("microbit/all/period/set", "0")
      for id in Self.all {
        let result = try await fixture.message("\(id)/period/result", after: mark).json()
        #expect(result["status"]?.string == "rejected")
        #expect(result["reason"]?.string?.contains("below") == true)
      }
      let results = try fixture.observer.messages.filter { $0.topic.hasSuffix("/result") }
      #expect(Set(results.map(\.topic)) == Set(Self.all.map { "microbit/\($0)/period/result" }))
    }
  }

  @Test("An absent member answers pending, and applies the command when it returns")
  func absentMember() async throws {
    try await withFixture(Self.plan) { fixture in
      for id in Self.all { try await fixture.online(id) }
      try await fixture.vanish(1, "sofa")
      let mark = try fixture.observer.mark
      try await fixture.observer.publish(
        "microbit/area/living-room/period/set", #"{"value":70,"transaction":"g"}"#)
      try await fixture.message("window/period/result", after: mark) { $0.text.contains("applied") }
      try await fixture.message("sofa/period/result", after: mark) { $0.text.contains("pending") }
      try await fixture.simulator.control("return", 1)
      try await fixture.message("sofa/period/result", after: mark) { $0.text.contains("applied") }
    }
  }

  @Test("A device that was never connected is forgotten when it leaves, even after a command to all")
  func neverConnectedDeviceIsForgotten() async throws {
    var plan = Plan(devices: 2)
    plan.simulator = ["--temporary-ms", "300"]
    // Disabled, so never connected, like a peripheral with a forged name.
    plan.entries = """
      {"match":{"identifier":"D0:5A:00:00:C0:DE"},"id":"window"},
      {"match":{"name_prefix":"BBC micro:bit"},"id":"passer-by","enabled":false}
      """
    try await withFixture(plan) { fixture in
      try await fixture.online("window")
      try await fixture.message("bridge/\(Fixture.gatewayID)/devices") { $0.text.contains("passer-by") }
      let mark = try fixture.observer.mark
      try await fixture.observer.publish("microbit/all/period/set", "70")
      try await fixture.message("window/period/result", after: mark) { $0.text.contains("applied") }
      try await fixture.message("passer-by/period/result", after: mark) { $0.text.contains("disabled") }
      try await fixture.simulator.control("vanish", 1)
      try await fixture.message("bridge/\(Fixture.gatewayID)/devices", after: mark) {
        !$0.text.contains("passer-by")
      }
      #expect(try await fixture.stopGateway() == 0)
      let records = try Fixture.stateRecords("\(fixture.folder.path)/state/fixture.db")
      #expect(
        records.keys.contains("devices/D0:5A:00:00:C0:DE")
          && !records.keys.contains("devices/D1:5A:00:01:C0:DE"))
    }
  }

  @Test("A retained command to all is executed once by each device, also by one that connects later")
  func retained() async throws {
    var plan = Plan(devices: 2)
    plan.absent = [.gateway]
    try await withFixture(plan) { fixture in
      let ids = [try await fixture.id(0), try await fixture.id(1)]
      try await fixture.simulator.control("vanish", 1)
      try await fixture.observer.publish("microbit/all/period/set", "70", retain: true)
      try await fixture.observer.synchronize()
      try fixture.startGateway()
      try await fixture.message("\(ids[0])/period", "70")
      try #require(try await fixture.setPeriod(ids[0], "60")["actual"]?.int == 60)
      try await fixture.simulator.control("return", 1)
      try await fixture.message("\(ids[1])/period", "70")
      let mark = try fixture.observer.mark
      try await fixture.restartGateway()
      for (id, period) in zip(ids, ["60", "70"]) {
        try await fixture.online(id, after: mark)
        try await fixture.message("\(id)/period", period, after: mark)
        #expect(try await fixture.setPeriod(id, "65")["actual"]?.int == 65)
        let results = try fixture.observer.messages(on: "microbit/\(id)/period/result", after: mark)
        #expect(results.count == 1, "\(results.map(\.text))")
      }
    }
  }
}
