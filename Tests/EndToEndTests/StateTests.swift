import Glibc
import TestSupport
import Testing

/// The state database is damaged, or cannot be written.
@Suite struct StateTests {
  @Test("The gateway runs without a usable state folder, and with a new database in place of a damaged one")
  func unusableDatabase() async throws {
    try await withFixture(Plan(files: ["file": ""], absent: [.gateway])) { fixture in
      let id = try await fixture.id()
      try fixture.startGateway(environment: ["STATE_DIRECTORY": fixture.folder.path + "/file"])
      try await fixture.online(id)
      try await fixture.logged("changes will be lost on restart")
      let problems = try await fixture.perform("health")["problems"]?.array ?? []
      // The database and the spool.
      #expect(problems.count == 2)
      #expect(problems.allSatisfy { $0.string?.contains("Not a directory") == true }, "\(problems)")
      #expect(try await fixture.setPeriod(id, "60")["status"]?.string == "applied")
      #expect(try await fixture.stopGateway() == 0)

      mkdir(fixture.folder.path + "/state", 0o700)
      let garbage = String(repeating: "no database at all ", count: 1000)
      let path = try fixture.folder.write(garbage, to: "state/\(Fixture.gatewayID).db")
      var mark = try fixture.observer.mark
      try fixture.startGateway()
      try await fixture.online(id, after: mark)
      try await fixture.logged("the state database was damaged")
      let line = try #require(try fixture.lines(with: "the state database was damaged").first)
      let aside = try #require(line.firstMatch(of: /moved_to=(\S+)/)?.output.1)
      #expect(aside.hasPrefix(path))
      var status = stat()
      #expect(stat(String(aside), &status) == 0 && status.st_size == garbage.utf8.count)
      #expect(try await fixture.perform("health")["healthy"]?.bool == true)
      try await fixture.perform("device/rename", #"{"id":"\#(id)","to":"kitchen"}"#)
      mark = try fixture.observer.mark
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
      // One that waits ends by SIGTERM as well.
      let waiting = try fixture.startGateway()
      try await fixture.logged("waiting for another gateway with this id to end")
      waiting.signal(SIGTERM)
      #expect(try await waiting.exitStatus(within: Fixture.patience) == 0)
      let second = try fixture.startGateway()
      try await fixture.logged("waiting for another gateway with this id to end")
      // What the first one writes last is not lost.
      try await fixture.perform("device/rename", #"{"id":"\#(id)","to":"kitchen"}"#)
      let mark = try fixture.observer.mark
      first.signal(SIGTERM)
      #expect(try await first.exitStatus(within: Fixture.patience) == 0)
      try await fixture.online("kitchen", after: mark)
      let read = try await fixture.command(["read", "kitchen", "period"])
      #expect(read.status == 0, "\(read.text)")
      #expect(try await fixture.perform("health")["healthy"]?.bool == true)
      #expect(!second.text.contains("changes will be lost"))
    }
  }

  @Test("A disk that does not answer at the start is reported, and awaited")
  func silentDisk() async throws {
    try await withFixture(Plan(absent: [.gateway])) { fixture in
      mkdir(fixture.folder.path + "/state", 0o700)
      let path = try fixture.folder.write("", to: "state/\(Fixture.gatewayID).db")
      // Whoever opens a file waits while another process has a lease of it, to which that is told by a signal.
      signal(SIGIO, SIG_IGN)
      let setLease: Int32 = 1024
      let file = open(path, O_RDWR | O_CLOEXEC)
      defer { close(file) }
      try #require(fcntl(file, setLease, F_WRLCK) == 0)
      try fixture.startGateway()
      try await fixture.logged("waiting for the disk of the state folder, which does not answer")
      #expect(fcntl(file, setLease, F_UNLCK) == 0)
      try await fixture.logged("started")
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
}
