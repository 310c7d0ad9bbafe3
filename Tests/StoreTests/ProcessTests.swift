import EventLoop
import Glibc
import Store
import TestSupport
import Testing

/// Tests that need a separate process: it is killed, limited in file size or permissions, or has its own mounts.
@Suite struct ProcessTests {
  let folder: TemporaryFolder
  let path: String

  init() throws {
    folder = try TemporaryFolder()
    path = folder.path + "/state.db"
  }

  @Test func killedWriterLosesNoReportedRoundAndDamagesNothing() async throws {
    for kill in 0..<12 {
      let writer = try ChildProcess(program("store-writer"), ["rounds", path])
      var known = ""
      // Killed at a different point each time: after some transactions and a short delay.
      for _ in 0...(kill % 4) { known = try await writer.line(within: patience) { $0.hasPrefix("round ") } }
      usleep(UInt32(kill * 300))
      writer.signal(SIGKILL)
      #expect(try await writer.exitStatus(within: patience) == 128 + SIGKILL)
      known = writer.text.split(separator: "\n").last.map(String.init) ?? known
      let reported = try #require(known.split(separator: " ").last.flatMap { Int($0) })

      let store = await StateDatabase(path: path)
      let records = await store.records
      #expect(await store.opening == .opened)
      #expect(records.count == 20)
      let rounds = Set(records.texts.values)
      #expect(
        rounds == ["\(reported)"] || rounds == ["\(reported + 1)"],
        "reported \(reported), in the file \(rounds)")
      await store.close(within: patience)
    }
  }

  @Test func secondProcessDoesNotUseFile() async throws {
    let first = try ChildProcess(program("store-writer"), ["keep", path])
    _ = try await first.line(within: patience) { $0 == "put" }
    let store = await StateDatabase(path: path)
    #expect(await store.opening == .inUse(reason: "\(path) is in use by another process"))
    await store.put("key 0", bytes("of the second"))
    await store.put("intruder", bytes("of the second"))
    await store.close(within: patience)

    first.signal(SIGTERM)
    _ = try await first.line(within: patience) { $0 == "0 not written" }
    #expect(try await first.exitStatus(within: patience) == 0)
    let again = await StateDatabase(path: path)
    let records = await again.records
    #expect(await again.opening == .opened)
    #expect(records.count == 50 && records["intruder"] == nil && records["key 0"]?.count == 1024)
    await again.close(within: patience)
  }

  @Test func writeIsRetriedWhenFileSizeLimitIsLifted() async throws {
    let writer = try ChildProcess(
      "/usr/bin/prlimit", ["--fsize=20000:unlimited", program("store-writer"), "keep", path])
    let failing = try await writer.line(within: patience) { $0.contains("cannot write the state database") }
    #expect(failing.contains(path) && failing.contains("File too large"), "\(failing)")
    let lift = try ChildProcess("/usr/bin/prlimit", ["--pid", "\(writer.pid)", "--fsize=unlimited"])
    #expect(try await lift.exitStatus(within: patience) == 0)
    _ = try await writer.line(within: patience) { $0.contains("can be written again") }
    #expect(try StateDatabase.records(path: path).count == 50)
    try await end(writer, "0 not written")
    #expect(writer.text.split(separator: "\n").count { $0.contains("cannot write the state database") } == 1)
  }

  @Test func aDiskThatIsFullAtTheFirstWriteIsReported() async throws {
    let writer = try ChildProcess(
      "/usr/bin/prlimit", ["--fsize=1", program("store-writer"), "keep", path])
    _ = try await writer.line(within: patience) { $0.contains("cannot write the state database") }
    try await end(writer, "50 not written")
    #expect(try StateDatabase.records(path: path).isEmpty)
  }

  @Test func aFullSpoolKeepsWhatIsThereAndTakesMoreWhenThereIsSpace() async throws {
    let writer = try ChildProcess(
      "/usr/bin/prlimit", ["--fsize=100000:unlimited", program("store-writer"), "spool", path])
    let failing = try await writer.line(within: patience) { $0.hasPrefix("failing") }
    #expect(failing.contains("File too large") && failing.hasSuffix("500 kept"), "\(failing)")
    let lift = try ChildProcess("/usr/bin/prlimit", ["--pid", "\(writer.pid)", "--fsize=unlimited"])
    #expect(try await lift.exitStatus(within: patience) == 0)
    writer.signal(SIGTERM)
    _ = try await writer.line(within: patience) { $0 == "500 kept, then 1000" }
    #expect(try await writer.exitStatus(within: patience) == 0)
  }

  @Test(Namespace.isAvailable)
  func writeIsRetriedWhenFullDiskHasSpace() async throws {
    let writer = try Namespace.run(
      """
      mount -t tmpfs -o size=256k tmpfs \(folder.path)
      head -c 300000 /dev/zero >\(folder.path)/filler 2>/dev/null || true
      exec \(program("store-writer")) keep \(path)
      """)
    _ = try await writer.line(within: patience) { $0 == "0 records, opened" }
    let failing = try await writer.line(within: patience) { $0.contains("cannot write the state database") }
    #expect(failing.contains("full"), "\(failing)")
    unlink("/proc/\(writer.pid)/root\(folder.path)/filler")
    _ = try await writer.line(within: patience) { $0.contains("can be written again") }
    // A copy, because SQLite cannot open a database by this path.
    let copy = try folder.write(contents("/proc/\(writer.pid)/root\(path)"), to: "copy.db")
    #expect(try StateDatabase.records(path: copy).count == 50)
    try await end(writer, "0 not written")
  }

  @Test(Namespace.isAvailable)
  func recordsOfReadOnlyDiskAreReadAndChangesAreWrittenOnceItIsWritable() async throws {
    try await writeRecords(["a": "a", "b": "b"], at: path)
    let writer = try Namespace.run(
      """
      mount --bind \(folder.path) \(folder.path)
      mount -o remount,bind,ro \(folder.path)
      exec \(program("store-writer")) keep \(path)
      """)
    let opening = try await writer.line(within: patience) { $0.contains("records") }
    #expect(opening.hasPrefix("2 records, inMemoryOnly") && opening.contains("Read-only file system"))
    _ = try await writer.line(within: patience) { $0 == "put" }
    let remount = try Namespace.run("mount -o remount,bind,rw \(folder.path)", in: writer)
    #expect(try await remount.exitStatus(within: patience) == 0)
    _ = try await writer.line(within: patience) { $0.contains("can be written again") }
    try await end(writer, "0 not written")
    #expect(try StateDatabase.records(path: path).count == 52)
  }

  @Test(Namespace.isAvailable)
  func aDamagedFileOnAReadOnlyDiskIsNotAwaited() async throws {
    try folder.write(String(repeating: "no database ", count: 1000), to: "state.db")
    let writer = try Namespace.run(
      """
      mount --bind \(folder.path) \(folder.path)
      mount -o remount,bind,ro \(folder.path)
      exec \(program("store-writer")) keep \(path)
      """)
    let opening = try await writer.line(within: patience) { $0.contains("records") }
    #expect(opening.hasPrefix("0 records, inMemoryOnly") && opening.contains("not a database"), "\(opening)")
    try await end(writer, "50 not written")
  }

  @Test func aFileThatMayNotBeReadIsAwaited() async throws {
    try await writeRecords(["a": "a"], at: path)
    chmod(path, 0)
    // Root can read every file, unless its capabilities are dropped.
    let wrapper = geteuid() == 0 ? ["/usr/bin/setpriv", "--bounding-set=-all", "--inh-caps=-all"] : []
    let command = wrapper + [try program("store-writer"), "keep", path]
    let writer = try ChildProcess(command[0], Array(command.dropFirst()))
    let opening = try await writer.line(within: patience) { $0.contains("records") }
    #expect(opening.hasPrefix("0 records, unreadable"), "\(opening)")
    #expect(opening.contains("cannot open \(path)"))
    #expect(try names(in: folder.path).allSatisfy { !$0.contains("corrupt") })
    try await end(writer, "0 not written")
    chmod(path, 0o600)
    #expect(try StateDatabase.records(path: path).texts == ["a": "a"])
  }

  /// By another program, for longer than SQLite waits.
  @Test func aFileThatIsLockedIsAwaited() async throws {
    try await writeRecords(["a": "a"], at: path)
    let other = try SQLiteConnection(path)
    try other.execute("BEGIN EXCLUSIVE")
    let writer = try ChildProcess(program("store-writer"), ["keep", path])
    let opening = try await writer.line(within: patience) { $0.contains("records") }
    #expect(
      opening.hasPrefix("0 records, unreadable") && opening.contains("database is locked"), "\(opening)")
    try other.execute("ROLLBACK")
    try await end(writer, "0 not written")
    #expect(try StateDatabase.records(path: path).texts == ["a": "a"])
  }

  private func end(_ writer: ChildProcess, _ last: String) async throws {
    writer.signal(SIGTERM)
    _ = try await writer.line(within: patience) { $0 == last }
    #expect(try await writer.exitStatus(within: patience) == 0)
  }
}

/// A mount namespace that ends with its process.
enum Namespace {
  private static let options = geteuid() == 0 ? ["--mount"] : ["--mount", "--user", "--map-root-user"]

  static let isAvailable: ConditionTrait = .enabled("requires the permission to create a mount namespace") {
    let child = try ChildProcess("/usr/bin/unshare", options + ["true"])
    return try await child.exitStatus(within: patience) == 0
  }

  static func run(_ script: String) throws -> ChildProcess {
    try ChildProcess("/usr/bin/unshare", options + ["sh", "-euc", script])
  }

  /// Runs it in the namespace of another process.
  static func run(_ script: String, in other: ChildProcess) throws -> ChildProcess {
    let user = geteuid() == 0 ? [] : ["--user", "--preserve-credentials"]
    return try ChildProcess(
      "/usr/bin/nsenter", ["--target", "\(other.pid)", "--mount"] + user + ["sh", "-euc", script])
  }
}
