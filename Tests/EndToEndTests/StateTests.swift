import Glibc
import TestSupport
import Testing

/// The state database is damaged, or cannot be written.
@Suite struct StateTests {
  @Test("A damaged database is moved aside and logged; the gateway runs with a new one")
  func damagedDatabase() async throws {
    var plan = Plan()
    plan.absent = [.gateway]
    try await withFixture(plan) { fixture in
      let id = try await fixture.id()
      mkdir(fixture.folder.path + "/state", 0o700)
      let garbage = String(repeating: "no database at all ", count: 1000)
      let path = try fixture.folder.write(garbage, to: "state/\(Fixture.gatewayID).db")
      try fixture.startGateway()
      try await fixture.online(id)
      try await fixture.logged("the state database was damaged")
      let line = try #require(try fixture.lines(with: "the state database was damaged").first)
      let aside = try #require(line.firstMatch(of: /moved_to=(\S+)/)?.output.1)
      #expect(aside.hasPrefix(path))
      var status = stat()
      #expect(stat(String(aside), &status) == 0 && status.st_size == garbage.utf8.count)
      #expect(try await fixture.perform("health")["healthy"]?.bool == true)
      try await fixture.perform("device/rename", #"{"id":"\#(id)","to":"kitchen"}"#)
      let mark = try fixture.observer.mark
      try await fixture.restartGateway()
      try await fixture.online("kitchen", after: mark)
      #expect(try fixture.lines(with: "the state database was damaged").isEmpty)
    }
  }

  @Test(
    "A gateway that starts while one with its id is stopping waits for it, and then has its socket and its state"
  )
  func startsDuringAStop() async throws {
    try await withFixture { fixture in
      let id = try await fixture.id()
      try await fixture.online(id)
      let first = try fixture.gateway
      let second = try fixture.startGateway()
      try await fixture.logged("waiting for another gateway with this id to end")
      // What the first one writes last is not lost.
      try await fixture.perform("device/rename", #"{"id":"\#(id)","to":"kitchen"}"#)
      let mark = try fixture.observer.mark
      first.signal(SIGTERM)
      #expect(try await first.exitStatus(within: Fixture.patience) == 0)
      try await fixture.online("kitchen", after: mark)
      let health = try ChildProcess(
        try program("microbit-gateway"),
        ["read", "kitchen", "period", "--config", fixture.folder.path + "/config.json"],
        environment: fixture.environment)
      #expect(try await health.exitStatus(within: Fixture.patience) == 0, "\(health.text)")
      #expect(try await fixture.perform("health")["healthy"]?.bool == true)
      #expect(!second.text.contains("changes will be lost"))
    }
  }

  @Test("A gateway that waits for another one ends by SIGTERM")
  func endsWhileWaiting() async throws {
    try await withFixture { fixture in
      try await fixture.bridgeOnline()
      let second = try fixture.startGateway()
      try await fixture.logged("waiting for another gateway with this id to end")
      second.signal(SIGTERM)
      #expect(try await second.exitStatus(within: Fixture.patience) == 0)
    }
  }

  @Test("A full disk is reported by health and log; changes are written once there is space")
  func fullDisk() async throws {
    try await withFixture { fixture in
      let id = try await fixture.id()
      try await fixture.online(id)
      try await fixture.stored(#""name":"BBC micro:bit"#)
      try await Self.limitFiles(of: fixture.gateway, to: "1:unlimited")
      try await fixture.perform("device/rename", #"{"id":"\#(id)","to":"kitchen"}"#)
      try await fixture.logged("cannot write the state database")
      let health = try await fixture.perform("health")
      #expect(health["healthy"]?.bool == false)
      let problem = health["problems"]?.array?.first?.string ?? ""
      #expect(problem.hasPrefix("changes will be lost on restart: "), "\(problem)")
      try await fixture.online("kitchen")
      #expect(try await fixture.setPeriod("kitchen", "60")["status"]?.string == "applied")
      try await Self.limitFiles(of: fixture.gateway, to: "unlimited")
      try await fixture.logged("the state database can be written again")
      #expect(try await fixture.perform("health")["healthy"]?.bool == true)
      #expect(try fixture.lines(with: "cannot write the state database").count == 1)
      let mark = try fixture.observer.mark
      try await fixture.restartGateway()
      try await fixture.online("kitchen", after: mark)
      #expect(try await fixture.check().contains(/period +60 ms +command/))
    }
  }

  /// Limits the size of files that a process writes, to simulate a full disk.
  private static func limitFiles(of process: ChildProcess, to size: String) async throws {
    let limit = try ChildProcess("/usr/bin/prlimit", ["--pid", "\(process.pid)", "--fsize=\(size)"])
    guard try await limit.exitStatus(within: Fixture.patience) == 0 else { throw Failure(limit.text) }
  }

  @Test("A state folder that cannot be used is reported, and the gateway runs")
  func unusableStateFolder() async throws {
    var plan = Plan()
    plan.absent = [.gateway]
    plan.files = ["file": ""]
    try await withFixture(plan) { fixture in
      try fixture.startGateway(environment: ["STATE_DIRECTORY": fixture.folder.path + "/file"])
      let id = try await fixture.id()
      try await fixture.online(id)
      try await fixture.logged("changes will be lost on restart")
      let problems = try await fixture.perform("health")["problems"]?.array ?? []
      #expect(problems.count == 1 && problems.first?.string?.contains("Not a directory") == true)
      #expect(try await fixture.setPeriod(id, "60")["status"]?.string == "applied")
    }
  }
}
