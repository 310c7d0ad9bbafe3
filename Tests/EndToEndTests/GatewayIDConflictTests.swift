import Glibc
import Testing

/// Two gateways have the same id.
@Suite struct GatewayIDConflictTests {
  private static let conflict = "another gateway at this broker has the same gateway.id"
  private static let plans: [Plan] = [
    Plan.fixture("fixture", area: "First"), Plan.fixture("fixture", area: "Second"),
  ]
  .map { plan in
    var plan = plan
    plan.absent = [.gateway]
    return plan
  }

  private static func run(of fixture: Fixture, after mark: Int) async throws -> String? {
    try await fixture.message("bridge/fixture/info", after: mark).json()["run"]?.string
  }

  @Test("The second logs it once, publishes nothing, and takes over when the first has ended")
  func second() async throws {
    try await withCluster(Self.plans) { cluster in
      let (first, second) = (cluster[0], cluster[1])
      try await first.simulator.control("vanish", 0)
      try first.startGateway()
      try await first.bridgeOnline()
      let run = try await Self.run(of: first, after: 0)
      try await first.synchronizeGateway()
      let client = try first.clientID

      let mark = try first.observer.mark
      try await second.simulator.control("return", 0)
      try second.startGateway()
      try await second.logged(Self.conflict)
      try await second.logged("online device")
      // It connects to the broker again, and disconnects again.
      let check = try await Self.idCheck(of: first, besides: run, after: mark)
      let next = try await Self.idCheck(of: first, besides: run, after: check.number)
      #expect(check.arrived.duration(to: next.arrived) > .seconds(5))
      try await first.synchronizeGateway()
      let topics = Set(first.topics(of: "fixture", besides: client))
      #expect(topics == ["microbit/bridge/fixture/request/health"])

      let end = try first.observer.mark
      try #require(try await first.stopGateway() == 0)
      try await first.message("bridge/fixture/state", "offline", after: end)
      try await second.waitForOwnership(of: Cluster.id, after: end)
      try await second.bridgeOnline(after: end)
      try #require(try second.lines(with: Self.conflict).count == 1)
      let other = try await Self.run(of: second, after: end)
      // The last info of the first gateway may arrive before that.
      if other == run {
        try await second.message("bridge/fixture/info", after: end) { !$0.text.contains(run ?? "") }
      }
    }
  }

  /// Waits for the request by which a gateway other than `run` checks whether its id is in use.
  private static func idCheck(
    of fixture: Fixture, besides run: String?, after mark: Int
  ) async throws -> Observer.Message {
    try await fixture.message("bridge/fixture/request/health", after: mark) { message in
      !message.text.contains("settled") && !message.text.contains(run ?? "settled")
    }
  }

  @Test("Of two gateways started at the same time, one remains")
  func simultaneousStart() async throws {
    try await withCluster(Self.plans) { cluster in
      let (first, second) = (cluster[0], cluster[1])
      try first.startGateway()
      try second.startGateway()
      try await first.bridgeOnline()
      // It may be either of them.
      let refused = try await Self.eitherLogged(Self.conflict, cluster.fixtures)
      let other = refused === first ? second : first
      try await other.synchronizeGateway()
      try #require(try other.lines(with: Self.conflict).isEmpty)
      let mark = try other.observer.mark
      try await other.synchronizeGateway()
      // The refused gateway asks too.
      let answers = try other.observer.messages(on: "microbit/bridge/fixture/response/health", after: mark)
        .filter { $0.text.contains("settled") }
      #expect(answers.count == 1)
      let kept = try await other.retained()
      #expect(kept["bridge/fixture/state"]?.text == "online")
      let run = try answers.first?.json()["data"]?["run"]?.string
      if try kept["bridge/fixture/info"]?.json()["run"]?.string != run {
        try await other.message("bridge/fixture/info", after: mark) { $0.text.contains(run ?? "") }
      }
    }
  }

  /// The first of the fixtures whose gateway logs `text`.
  private static func eitherLogged(_ text: String, _ fixtures: [Fixture]) async throws -> Fixture {
    try await withThrowingTaskGroup(of: Fixture.self) { group in
      for fixture in fixtures {
        group.addTask {
          try await fixture.logged(text)
          return fixture
        }
      }
      defer { group.cancelAll() }
      return try await group.next()!
    }
  }

  @Test("A stale retained online state of an earlier run delays the start only briefly")
  func staleOnline() async throws {
    try await withCluster([Self.plans[0]]) { cluster in
      let fixture = cluster[0]
      try await fixture.observer.publish("microbit/bridge/fixture/state", "online", retain: true)
      try await fixture.observer.publish(
        "microbit/bridge/fixture/info", #"{"run":"gone","started":"2026-01-01T00:00:00.000Z"}"#, retain: true)
      try await fixture.observer.synchronize()
      let mark = try fixture.observer.mark
      try fixture.startGateway()
      let check = try await fixture.message("bridge/fixture/request/health", after: mark)
      // A request in the meantime may be meant for the other gateway, and is not answered.
      try await fixture.observer.publish(
        "microbit/bridge/fixture/request/devices", #"{"transaction":"early"}"#)
      let online = try await fixture.bridgeOnline(after: mark)
      // Requests are answered once it is online.
      try await fixture.observer.publish(
        "microbit/bridge/fixture/request/devices", #"{"transaction":"late"}"#)
      let answer = try await fixture.message("bridge/fixture/response/devices", after: mark)
      #expect(answer.text.contains("late") && answer.number > online.number)
      let delay = check.arrived.duration(to: online.arrived)
      #expect(delay > .milliseconds(1500) && delay < .seconds(15), "\(delay)")
      try await fixture.waitForOwnership(of: Cluster.id, after: mark)
      try #require(try fixture.lines(with: Self.conflict).isEmpty)
    }
  }
}
