import Glibc
import TestSupport
import Testing

/// The state database is damaged, or cannot be written.
@Suite struct StateTests {
  @Test("A database that is none is set aside and told; the gateway runs, and remembers in a new one")
  func damaged() async throws {
    var plan = Plan()
    plan.absent = [.gateway]
    try await withHouse(plan) { house in
      let id = try await house.id()
      mkdir(house.folder.path + "/state", 0o700)
      let garbage = String(repeating: "no database at all ", count: 1000)
      let path = try house.folder.write(garbage, to: "state/\(House.gatewayID).db")
      try house.startGateway()
      try await house.online(id)
      try await house.logged("the state database was damaged")
      let line = try #require(try house.lines(with: "the state database was damaged").first)
      let aside = try #require(line.firstMatch(of: /moved_to=(\S+)/)?.output.1)
      #expect(aside.hasPrefix(path))
      var status = stat()
      #expect(stat(String(aside), &status) == 0 && status.st_size == garbage.utf8.count)
      #expect(try await house.done("health")["healthy"]?.bool == true)
      try await house.done("device/rename", #"{"id":"\#(id)","to":"kitchen"}"#)
      let mark = try house.observer.mark
      try await house.restartGateway()
      try await house.online("kitchen", after: mark)
      #expect(try house.lines(with: "the state database was damaged").isEmpty)
    }
  }

  @Test("A full disk is told by health and log; everything goes on, and is written when there is room")
  func fullDisk() async throws {
    try await withHouse { house in
      let id = try await house.id()
      try await house.online(id)
      try await house.remembered(#""name":"BBC micro:bit"#)
      try await Self.limitFiles(of: house.gateway, to: "1:unlimited")
      try await house.done("device/rename", #"{"id":"\#(id)","to":"kitchen"}"#)
      try await house.logged("cannot write the state database")
      let health = try await house.done("health")
      #expect(health["healthy"]?.bool == false)
      let problem = health["problems"]?.array?.first?.string ?? ""
      #expect(problem.hasPrefix("changes will be lost on restart: "), "\(problem)")
      try await house.online("kitchen")
      #expect(try await house.setPeriod("kitchen", "60")["status"]?.string == "applied")
      try await Self.limitFiles(of: house.gateway, to: "unlimited")
      try await house.logged("the state database can be written again")
      #expect(try await house.done("health")["healthy"]?.bool == true)
      #expect(try house.lines(with: "cannot write the state database").count == 1)
      let mark = try house.observer.mark
      try await house.restartGateway()
      try await house.online("kitchen", after: mark)
      #expect(try await house.check().contains(/period +60 ms +command/))
    }
  }

  /// Lets no file of a process grow beyond a size: to it that is a full disk.
  private static func limitFiles(of process: ChildProcess, to size: String) async throws {
    let limit = try ChildProcess("/usr/bin/prlimit", ["--pid", "\(process.pid)", "--fsize=\(size)"])
    guard try await limit.exitStatus(within: House.patience) == 0 else { throw Failure(limit.text) }
  }

  @Test("Where there is no place for it, that is told, and the gateway runs")
  func noPlace() async throws {
    var plan = Plan()
    plan.absent = [.gateway]
    plan.files = ["file": ""]
    try await withHouse(plan) { house in
      try house.startGateway(environment: ["STATE_DIRECTORY": house.folder.path + "/file"])
      let id = try await house.id()
      try await house.online(id)
      try await house.logged("changes will be lost on restart")
      let problems = try await house.done("health")["problems"]?.array ?? []
      #expect(problems.count == 1 && problems.first?.string?.contains("Not a directory") == true)
      #expect(try await house.setPeriod(id, "60")["status"]?.string == "applied")
    }
  }
}
