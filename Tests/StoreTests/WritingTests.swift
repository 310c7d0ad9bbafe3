import EventLoop
import Glibc
import TestSupport
import Testing

@testable import Store

/// Off the event loop, as other connections to the database wait for locks.
@Suite struct WritingTests {
  let folder: TemporaryFolder
  let path: String
  let quick = Pacing(
    gather: .milliseconds(1), apart: .milliseconds(1),
    retry: BackOff(first: .milliseconds(5), longest: .milliseconds(20)))

  init() throws {
    folder = try TemporaryFolder()
    path = folder.path + "/state.db"
  }

  private func open(pacing: Pacing? = nil) async -> StateDatabase {
    await StateDatabase(path: path, pacing: pacing ?? quick)
  }

  private func waitForFailure(of store: StateDatabase) async throws -> String {
    try await eventually("a failure") { await store.trouble != nil }
    return await store.trouble ?? ""
  }

  @Test func writeIsRetriedWhenLockIsReleased() async throws {
    try await writeRecords(["old": "old"], at: path)
    let connection = try SQLiteConnection(path)
    let store = await open()
    try connection.execute("BEGIN EXCLUSIVE")
    await store.put("new", bytes("new"))
    let reason = try await waitForFailure(of: store)
    #expect(reason.contains("locked"))
    await store.put("new", bytes("newer"))
    await store.put("newest", bytes("newest"))
    try connection.execute("COMMIT")
    try await eventually("a recovery") { await store.trouble == nil }
    #expect(await store.close(within: patience) == 0)
    #expect(
      try StateDatabase.records(path: path).texts == ["old": "old", "new": "newer", "newest": "newest"])
  }

  @Test func aDiskThatDoesNotAnswerIsReportedUntilItDoes() async throws {
    try await writeRecords(["old": "old"], at: path)
    let connection = try SQLiteConnection(path)
    var pacing = quick
    pacing.patience = .milliseconds(10)
    let store = await open(pacing: pacing)
    try connection.execute("BEGIN EXCLUSIVE")
    // Each transaction waits a second for the lock.
    await store.put("new", bytes("new"))
    try await eventually("the report") { await store.trouble == "the disk does not answer" }
    try connection.execute("COMMIT")
    try await eventually("a recovery") { await store.trouble == nil }
    #expect(await store.close(within: patience) == 0)
  }

  @Test func putAndCloseDoNotWaitForDisk() async throws {
    var durations: [(putting: Duration, closing: Duration)] = []
    for _ in 0..<3 { durations.append(try await WritingTests().putAndCloseWhileLocked()) }
    // Waiting for the lock would take a second every time; a busy machine may take that long once.
    #expect(durations.contains { $0.putting < .milliseconds(900) }, "\(durations)")
    #expect(durations.contains { $0.closing < .milliseconds(900) }, "\(durations)")
  }

  @LoopActor private func timeToPut(_ count: Int, in store: StateDatabase) -> Duration {
    ContinuousClock().measure {
      for key in 0..<count { store.put("key \(key)", bytes("value")) }
    }
  }

  private func putAndCloseWhileLocked() async throws -> (putting: Duration, closing: Duration) {
    try await writeRecords(["old": "old"], at: path)
    let connection = try SQLiteConnection(path)
    let store = await open()
    try connection.execute("BEGIN EXCLUSIVE")
    await store.put("first", bytes("first"))
    _ = try await waitForFailure(of: store)
    let clock = ContinuousClock()
    let putting = await timeToPut(1000, in: store)
    var unwritten = 0
    let closing = await clock.measure { unwritten = await store.close(within: .milliseconds(50)) }
    #expect(unwritten == 1001)
    try connection.execute("COMMIT")
    return (putting, closing)
  }

  @Test func latestValueIsWritten() async throws {
    let store = await open()
    for number in 0..<10_000 { await store.put("key \(number % 10)", bytes("\(number)")) }
    #expect(await store.close(within: patience) == 0)
    let records = try StateDatabase.records(path: path).texts
    #expect(records == Dictionary(uniqueKeysWithValues: (0..<10).map { ("key \($0)", "\(9990 + $0)") }))
  }

  @Test func putsDuringTransactionsAreAllWritten() async throws {
    let store = await open()
    await withTaskGroup(of: Void.self) { group in
      for task in 0..<8 {
        group.addTask {
          for number in 0..<500 { await store.put("\(task) \(number % 50)", bytes("\(number)")) }
        }
      }
    }
    #expect(await store.close(within: patience) == 0)
    let records = try StateDatabase.records(path: path).texts
    #expect(records.count == 400)
    #expect(
      records.allSatisfy { key, value in Int(value).map { $0 >= 450 && key.hasSuffix(" \($0 % 50)") } == true
      })
  }

  @Test func recordsAreWrittenWithoutClose() async throws {
    let store = await open()
    let connection = try SQLiteConnection(path)
    for round in 0..<3 {
      await store.put("key", bytes("\(round)"))
      try await eventually("round \(round) in the file") { [path] in
        try StateDatabase.records(path: path).texts["key"] == "\(round)"
      }
    }
    #expect(try connection.text("SELECT value FROM record") == "2")
  }

  @Test func aDatabaseThatIsNotUsedAnyMoreWritesItsChanges() async throws {
    await open().put("key", bytes("value"))
    try await eventually("the change in the file") { [path] in
      try StateDatabase.records(path: path).texts == ["key": "value"]
    }
  }

  @Test func urgentChangeIsWrittenAtOnceWithAllOthers() async throws {
    let store = await open(pacing: Pacing(gather: .milliseconds(1), apart: .seconds(600), retry: quick.retry))
    for round in ["1", "2", "3"] {
      // After the first one there is a pause.
      await store.put("paced", bytes(round))
      await store.put("urgent", isUrgent: true) { bytes(round) }
      try await eventually("round \(round) in the file") { [path] in
        try StateDatabase.records(path: path).texts == ["paced": round, "urgent": round]
      }
    }
  }

  @Test func urgentChangesAreAtMostTwentyTransactionsASecond() async throws {
    #expect(Pacing().gather >= .milliseconds(50))
    let store = await open(
      pacing: Pacing(gather: .milliseconds(50), apart: .seconds(600), retry: quick.retry))
    let connection = try SQLiteConnection(path)
    var versions: Set<String> = []
    let start = ContinuousClock.now
    while versions.count < 6, start.duration(to: .now) < patience {
      await store.put("urgent", isUrgent: true) { [versions] in bytes("\(versions.count)") }
      versions.insert(try connection.text("PRAGMA data_version"))
    }
    #expect(versions.count == 6)
    #expect(start.duration(to: .now) >= .milliseconds(5 * 50))
  }

  @Test func manyUrgentChangesWaitAsOthersDo() async throws {
    let store = await open(
      pacing: Pacing(gather: .milliseconds(1), apart: .milliseconds(200), early: 3, retry: quick.retry))
    let connection = try SQLiteConnection(path)
    var versions: Set<String> = []
    let start = ContinuousClock.now
    while start.duration(to: .now) < .milliseconds(500) {
      await store.put("urgent", isUrgent: true) { [versions] in bytes("\(versions.count)") }
      versions.insert(try connection.text("PRAGMA data_version"))
    }
    // The file as it was, the first transaction, three at once, one that is about to begin; for each pause two at most. A
    // busy machine takes longer.
    let pauses = Int(start.duration(to: .now) / .milliseconds(200))
    #expect(versions.count <= 6 + 2 * pauses, "\(versions.count) versions in \(pauses) pauses")
  }

  @Test func putAfterCloseIsIgnored() async throws {
    let store = await open()
    await store.put("a", bytes("a"))
    #expect(await store.close(within: patience) == 0)
    await store.put("b", bytes("b"))
    #expect(await store.close(within: patience) == 0)
    #expect(try StateDatabase.records(path: path).texts == ["a": "a"])
  }

  @Test func closeWritesWithoutPacingDelay() async throws {
    let store = await open(
      pacing: Pacing(
        gather: .seconds(600), apart: .seconds(600),
        retry: BackOff(first: .seconds(600), longest: .seconds(600))))
    await store.put("a", bytes("a"))
    #expect(await store.close(within: patience) == 0)
    #expect(try StateDatabase.records(path: path).texts == ["a": "a"])
  }

  @Test func storeInMemoryWritesNothing() async {
    let store = await StateDatabase(path: nil)
    await store.put("a", bytes("a"))
    #expect(await store.close(within: .zero) == 0)
    let section = StateSection.inMemory()
    await section.put("a", bytes("a"))
    #expect(await section.takeRecords().isEmpty)
  }
}
