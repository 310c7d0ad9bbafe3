import Glibc
import TestSupport
import Testing

/// Two gateways have the same id.
@Suite struct SameIDTests {
  private static let complaint = "another gateway uses this id"
  private static let plans: [Plan] = [
    Plan.house("house", area: "First"), Plan.house("house", area: "Second"),
  ]
  .map { plan in
    var plan = plan
    plan.absent = [.gateway]
    return plan
  }

  private static func run(of house: House, after mark: Int) async throws -> String? {
    try await house.message("bridge/house/info", after: mark).json()["run"]?.string
  }

  @Test("The second says so once, says nothing at the broker, and takes over when the first has gone")
  func second() async throws {
    try await withVillage(Self.plans) { village in
      let (first, second) = (village[0], village[1])
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
      let topics = Set(first.topics(of: "house", besides: "house-\(try #require(run))"))
      #expect(topics == ["microbit/bridge/house/request/health"])

      let end = try first.observer.mark
      try #require(try await first.stopGateway() == 0)
      try await first.message("bridge/house/state", "offline", after: end)
      try await second.holds(Village.id, after: end)
      try await second.bridgeOnline(after: end)
      try #require(try second.lines(with: Self.complaint).count == 1)
      let other = try await Self.run(of: second, after: end)
      // The first one's last word may come before.
      if other == run {
        try await second.message("bridge/house/info", after: end) { !$0.text.contains(run ?? "") }
      }
    }
  }

  /// A gateway other than `run` asks whether it has the id alone.
  private static func question(
    of house: House, besides run: String?, after mark: Int
  ) async throws -> Observer.Message {
    try await house.message("bridge/house/request/health", after: mark) { message in
      !message.text.contains("settled") && !message.text.contains(run ?? "settled")
    }
  }

  @Test("Of two that begin at the same moment one remains")
  func together() async throws {
    try await withVillage(Self.plans) { village in
      let (first, second) = (village[0], village[1])
      try first.startGateway()
      try second.startGateway()
      try await first.bridgeOnline()
      // Whichever it is.
      let refused = try await Self.eitherLogged(Self.complaint, village.houses)
      let other = refused === first ? second : first
      try await other.settled()
      try #require(try other.lines(with: Self.complaint).isEmpty)
      let mark = try other.observer.mark
      try await other.settled()
      let answers = try other.observer.messages(on: "microbit/bridge/house/response/health", after: mark)
      #expect(answers.count == 1)
      let kept = try await other.retained()
      #expect(kept["bridge/house/state"]?.text == "online")
      let run = try answers.first?.json()["data"]?["run"]?.string
      if try kept["bridge/house/info"]?.json()["run"]?.string != run {
        try await other.message("bridge/house/info", after: mark) { $0.text.contains(run ?? "") }
      }
    }
  }

  private static func eitherLogged(_ text: String, _ houses: [House]) async throws -> House {
    let deadline = ContinuousClock.now + House.patience
    while ContinuousClock.now < deadline {
      for house in houses where try !house.lines(with: text).isEmpty { return house }
      try await Task.sleep(for: .milliseconds(10))
    }
    throw Failure("neither says: \(text)")
  }

  @Test("A broker that still says online of a run that is gone holds the next one up for a moment")
  func staleOnline() async throws {
    try await withVillage([Self.plans[0]]) { village in
      let house = village[0]
      try await house.observer.publish("microbit/bridge/house/state", "online", retain: true)
      try await house.observer.publish(
        "microbit/bridge/house/info", #"{"run":"gone","started":"2026-01-01T00:00:00.000Z"}"#, retain: true)
      try await house.observer.synchronize()
      let mark = try house.observer.mark
      try house.startGateway()
      let question = try await house.message("bridge/house/request/health", after: mark)
      // A request that comes meanwhile may be the other one's to answer.
      try await house.observer.publish(
        "microbit/bridge/house/request/devices", #"{"transaction":"early"}"#)
      let online = try await house.bridgeOnline(after: mark)
      // Once it is online it answers.
      try await house.observer.publish(
        "microbit/bridge/house/request/devices", #"{"transaction":"late"}"#)
      let answer = try await house.message("bridge/house/response/devices", after: mark)
      #expect(answer.text.contains("late") && answer.number > online.number)
      let patience = question.arrived.duration(to: online.arrived)
      #expect(patience > .milliseconds(1500) && patience < .seconds(15), "\(patience)")
      try await house.holds(Village.id, after: mark)
      try #require(try house.lines(with: Self.complaint).isEmpty)
    }
  }
}
