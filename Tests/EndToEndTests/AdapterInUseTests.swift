import Glibc
import TestSupport
import Testing

/// Two gateway processes on one adapter.
@Suite struct AdapterInUseTests {
  /// Without a gateway: each test starts its own.
  private static let plan = Plan(absent: [.gateway])

  /// Waits until a gateway publishes this state of its adapter, after `mark`.
  private static func waitForAdapter(
    of gateway: String, is state: String, in fixture: Fixture, after mark: Int = 0
  ) async throws {
    try await fixture.message("bridge/\(gateway)/info", after: mark) { message in
      (try? message.json())?["adapters"]?.array?.first?["state"]?.string == state
    }
  }

  @Test("A second gateway has no adapter, and takes it over when the first gateway is killed")
  func secondGatewayTakesOver() async throws {
    try await withFixture(Self.plan) { fixture in
      let first = try fixture.startGateway()
      let id = try await fixture.id()
      try await fixture.online(id)
      let monitor = try await BusMonitor(fixture.bus)
      let mark = try fixture.observer.mark

      let second = try fixture.startGateway(as: "second")
      _ = try await second.line(within: Fixture.patience) {
        $0.contains("adapter hci0 is used by another gateway (process \(first.pid)): waiting for it")
      }
      try await Self.waitForAdapter(of: "second", is: "in_use", in: fixture)
      try await fixture.observer.publish("microbit/bridge/second/request/scan", #"{"timeout":1}"#)
      let scan = try await fixture.message("bridge/second/response/scan", after: mark)
      #expect(try scan.json()["status"]?.string == "error")
      #expect(try await monitor.calls(of: "GetManagedObjects") == 0)
      // The first gateway is unaffected.
      let sent = try await fixture.simulator.device(0).sent
      try await fixture.simulator.waitUntil(0, hasSent: sent + 20)
      // A scan on the command line works meanwhile.
      let scanning = try ChildProcess(
        try program("microbit-gateway"), ["scan", "--timeout", "1"], environment: fixture.environment)
      #expect(try await scanning.exitStatus() == 0)
      #expect(scanning.text.contains("D0:5A:00:00:C0:DE"))
      #expect(try fixture.observer.messages(on: "microbit/\(id)/availability", after: mark).isEmpty)

      let end = try fixture.observer.mark
      first.signal(SIGKILL)
      let info = try await fixture.message("\(id)/info", after: end) { message in
        (try? message.json())?["owner"]?.string == "second"
      }
      try await Self.waitForAdapter(of: "second", is: "on", in: fixture, after: end)
      try await fixture.online(id, after: info.number)
      try await fixture.message("\(id)/temperature", after: end)
      second.signal(SIGTERM)
      #expect(try await second.exitStatus(within: Fixture.patience) == 0)
    }
  }

  @Test("Of two gateways started at the same time, one gets the adapter")
  func simultaneousStart() async throws {
    try await withFixture(Self.plan) { fixture in
      let gateways = try ["one", "two"].map { ($0, try fixture.startGateway(as: $0)) }
      let id = try await fixture.id()
      try await fixture.online(id)
      let info = try await fixture.message("\(id)/info") { (try? $0.json())?["owner"] != nil }
      let owner = try #require(try info.json()["owner"]?.string)
      let other = owner == "one" ? "two" : "one"
      try await Self.waitForAdapter(of: other, is: "in_use", in: fixture)
      try await Self.waitForAdapter(of: owner, is: "on", in: fixture)
      let otherProcess = try #require(gateways.first { $0.0 == other }).1
      let ownerProcess = try #require(gateways.first { $0.0 == owner }).1
      _ = try await otherProcess.line(within: Fixture.patience) {
        $0.contains("(process \(ownerProcess.pid))")
      }
      // The owner stops normally: the other gateway takes over.
      let mark = try fixture.observer.mark
      ownerProcess.signal(SIGTERM)
      #expect(try await ownerProcess.exitStatus(within: Fixture.patience) == 0)
      try await fixture.message("\(id)/info", after: mark) { (try? $0.json())?["owner"]?.string == other }
      try await fixture.online(id, after: mark)
    }
  }
}

extension Fixture {
  /// Starts another gateway on this bus, with its own id and state folder; it ends with the test at the latest.
  func startGateway(as id: String) throws -> ChildProcess {
    let own = #""id": "\#(plan.id)""#
    let text = configuration(plan.entries).split(separator: own, maxSplits: 1)
    guard text.count == 2 else { throw Failure("the configuration has no id") }
    try folder.write(text[0] + #""id": "\#(id)""# + text[1], to: "\(id).json")
    return try ChildProcess(
      try program("microbit-gateway"), ["run", "--config", "\(folder.path)/\(id).json"],
      environment: environment.merging(["STATE_DIRECTORY": "\(folder.path)/\(id)"]) { $1 })
  }
}
