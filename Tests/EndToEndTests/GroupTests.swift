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
      func expectAnswers(to topic: String, of members: [String]) async throws {
        let answers = try await Self.answers(
          fixture, to: "\(topic)/period/set", #"{"value":70,"transaction":"g"}"#, of: members)
        #expect(Set(answers.keys) == Set(members), "\(topic)")
        #expect(answers.values.allSatisfy { $0["status"]?.string == "applied" && $0["actual"]?.int == 70 })
      }
      try await expectAnswers(to: "all", of: Self.all)
      try await expectAnswers(to: "area/LIVING_ROOM", of: ["window", "sofa"])
      try await expectAnswers(to: "area/cellar", of: [])
      // A device without an area is in the gateway's; one set by request overrides the configured one.
      try await expectAnswers(to: "area/hall", of: ["door"])
      try await fixture.perform("device/options", #"{"id":"stove","options":{"area":"Hall"}}"#)
      try await expectAnswers(to: "area/hall", of: ["door", "stove"])
      try await expectAnswers(to: "area/kitchen", of: [])

      // An absent member applies the command when it returns.
      try await fixture.vanish(1, "sofa")
      let mark = try fixture.observer.mark
      try await fixture.observer.publish(
        "microbit/area/living-room/period/set", #"{"value":80,"transaction":"g"}"#)
      try await fixture.message("window/period/result", after: mark) { $0.text.contains("applied") }
      try await fixture.message("sofa/period/result", after: mark) { $0.text.contains("pending") }
      try await fixture.simulator.control("return", 1)
      try await fixture.message("sofa/period/result", after: mark) { $0.text.contains("applied") }
    }
  }

  @Test("A retained command to all is executed once by each device, also by one that connects later")
  func retained() async throws {
    try await withFixture(Plan(devices: 2, absent: [.gateway])) { fixture in
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
