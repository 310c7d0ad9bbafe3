import Glibc
import TestSupport
import Testing

/// Two gateways have the same id.
@Suite struct SameIDTests {
  private static let complaint = "another gateway uses this id"
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
      try await first.settled()

      let mark = try first.observer.mark
      try await second.simulator.control("return", 0)
      try second.startGateway()
      try await second.logged(Self.complaint)
      try await second.logged("online device")
      // It comes again, and goes again.
      let question = try await Self.question(of: first, besides: run, after: mark)
      let next = try await Self.question(of: first, besides: run, after: question.number)
      #expect(question.arrived.duration(to: next.arrived) > .seconds(5))
      try await first.settled()
      let topics = Set(first.topics(of: "fixture", besides: "fixture-\(try #require(run))"))
      #expect(topics == ["microbit/bridge/fixture/request/health"])

      let end = try first.observer.mark
      try #require(try await first.stopGateway() == 0)
      try await first.message("bridge/fixture/state", "offline", after: end)
      try await second.holds(Cluster.id, after: end)
      try await second.bridgeOnline(after: end)
      try #require(try second.lines(with: Self.complaint).count == 1)
      let other = try await Self.run(of: second, after: end)
      // The first one's last word may come before.
      if other == run {
        try await second.message("bridge/fixture/info", after: end) { !$0.text.contains(run ?? "") }
      }
    }
  }

  /// A gateway other than `run` asks whether it has the id alone.
  private static func question(
    of fixture: Fixture, besides run: String?, after mark: Int
  ) async throws -> Observer.Message {
    try await fixture.message("bridge/fixture/request/health", after: mark) { message in
      !message.text.contains("settled") && !message.text.contains(run ?? "settled")
    }
  }

  @Test("Of two that begin at the same moment one remains")
  func together() async throws {
    try await withCluster(Self.plans) { cluster in
      let (first, second) = (cluster[0], cluster[1])
      try first.startGateway()
      try second.startGateway()
      try await first.bridgeOnline()
      // Whichever it is.
      let refused = try await Self.eitherLogged(Self.complaint, cluster.fixtures)
      let other = refused === first ? second : first
      try await other.settled()
      try #require(try other.lines(with: Self.complaint).isEmpty)
      let mark = try other.observer.mark
      try await other.settled()
      let answers = try other.observer.messages(on: "microbit/bridge/fixture/response/health", after: mark)
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

  @Test("A broker that still says online of a run that is gone holds the next one up for a moment")
  func staleOnline() async throws {
    try await withCluster([Self.plans[0]]) { cluster in
      let fixture = cluster[0]
      try await fixture.observer.publish("microbit/bridge/fixture/state", "online", retain: true)
      try await fixture.observer.publish(
        "microbit/bridge/fixture/info", #"{"run":"gone","started":"2026-01-01T00:00:00.000Z"}"#, retain: true)
      try await fixture.observer.synchronize()
      let mark = try fixture.observer.mark
      try fixture.startGateway()
      let question = try await fixture.message("bridge/fixture/request/health", after: mark)
      // A request that comes meanwhile may be the other one's to answer.
      try await fixture.observer.publish(
        "microbit/bridge/fixture/request/devices", #"{"transaction":"early"}"#)
      let online = try await fixture.bridgeOnline(after: mark)
      // Once it is online it answers.
      try await fixture.observer.publish(
        "microbit/bridge/fixture/request/devices", #"{"transaction":"late"}"#)
      let answer = try await fixture.message("bridge/fixture/response/devices", after: mark)
      #expect(answer.text.contains("late") && answer.number > online.number)
      let patience = question.arrived.duration(to: online.arrived)
      #expect(patience > .milliseconds(1500) && patience < .seconds(15), "\(patience)")
      try await fixture.holds(Cluster.id, after: mark)
      try #require(try fixture.lines(with: Self.complaint).isEmpty)
    }
  }
}
