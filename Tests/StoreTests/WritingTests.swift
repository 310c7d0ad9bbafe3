import EventLoop
import Glibc
import TestSupport
import Testing

@testable import Store

@Suite struct WritingTests {
  let folder: TemporaryFolder
  let path: String
  let events = Record<StoreEvent>()
  let quick = Pacing(
    gather: .milliseconds(1), apart: .milliseconds(1),
    retry: BackOff(first: .milliseconds(5), longest: .milliseconds(20)))

  init() throws {
    folder = try TemporaryFolder()
    path = folder.path + "/state.db"
  }

  private func open(pacing: Pacing? = nil) -> StateStore {
    let store = StateStore.open(path: path, pacing: pacing ?? quick).store
    store.setHandler { [events] in events.append($0) }
    return store
  }

  private func waitForFailure() async throws -> String {
    let event = try await events.first(within: patience, "a failure") { $0 != .recovered }
    guard case .failing(let reason) = event else { throw Failure("\(event)") }
    return reason
  }

  private func waitForRecovery() async throws {
    _ = try await events.first(within: patience, "a recovery") { $0 == .recovered }
  }

  @Test func writeIsRetriedWhenLockIsReleased() async throws {
    try writeRecords(["old": "old"], at: path)
    let connection = try SQLiteConnection(path)
    let store = open()
    try connection.execute("BEGIN EXCLUSIVE")
    store.put("new", bytes("new"))
    let reason = try await waitForFailure()
    #expect(reason.contains("locked"))
    store.put("new", bytes("newer"))
    store.put("newest", bytes("newest"))
    try connection.execute("COMMIT")
    try await waitForRecovery()
    #expect(store.close(within: patience) == 0)
    #expect(
      try StateStore.records(path: path).texts == ["old": "old", "new": "newer", "newest": "newest"])
    #expect(events.elements == [.failing(reason: reason), .recovered])
  }

  @Test func putAndCloseDoNotWaitForDisk() async throws {
    var durations: [(putting: Duration, closing: Duration)] = []
    for _ in 0..<3 { durations.append(try await WritingTests().putAndCloseWhileLocked()) }
    // Waiting for the lock would take a second every time; a busy machine may take that long once.
    #expect(durations.contains { $0.putting < .milliseconds(900) }, "\(durations)")
    #expect(durations.contains { $0.closing < .milliseconds(900) }, "\(durations)")
  }

  private func putAndCloseWhileLocked() async throws -> (putting: Duration, closing: Duration) {
    try writeRecords(["old": "old"], at: path)
    let connection = try SQLiteConnection(path)
    let store = open()
    try connection.execute("BEGIN EXCLUSIVE")
    store.put("first", bytes("first"))
    _ = try await waitForFailure()
    let clock = ContinuousClock()
    let putting = clock.measure { for key in 0..<1000 { store.put("key \(key)", bytes("value")) } }
    var unwritten = 0
    let closing = clock.measure { unwritten = store.close(within: .milliseconds(50)) }
    #expect(unwritten == 1001)
    try connection.execute("COMMIT")
    return (putting, closing)
  }

  @Test func latestValueIsWritten() throws {
    let store = open()
    for number in 0..<10_000 { store.put("key \(number % 10)", bytes("\(number)")) }
    #expect(store.close(within: patience) == 0)
    let records = try StateStore.records(path: path).texts
    #expect(records == Dictionary(uniqueKeysWithValues: (0..<10).map { ("key \($0)", "\(9990 + $0)") }))
  }

  @Test func concurrentPutsAreAllWritten() async throws {
    let store = open()
    await withTaskGroup(of: Void.self) { group in
      for thread in 0..<8 {
        group.addTask {
          for number in 0..<500 { store.put("\(thread) \(number % 50)", bytes("\(number)")) }
        }
      }
    }
    #expect(store.close(within: patience) == 0)
    let records = try StateStore.records(path: path).texts
    #expect(records.count == 400)
    #expect(
      records.allSatisfy { key, value in Int(value).map { $0 >= 450 && key.hasSuffix(" \($0 % 50)") } == true
      })
  }

  @Test func recordsAreWrittenWithoutClose() async throws {
    let store = open()
    let connection = try SQLiteConnection(path)
    for round in 0..<3 {
      // Whether or not the writer of the previous round has ended, there is one for this round.
      store.put("key", bytes("\(round)"))
      try await eventually("round \(round) in the file") { [path] in
        try StateStore.records(path: path).texts["key"] == "\(round)"
      }
    }
    #expect(try connection.text("SELECT value FROM record") == "2")
  }

  @Test func urgentChangeIsWrittenAtOnceWithAllOthers() async throws {
    let store = open(pacing: Pacing(gather: .milliseconds(1), apart: .seconds(600), retry: quick.retry))
    for round in ["1", "2", "3"] {
      // After the first one the writer is in its pause.
      store.put("paced", bytes(round))
      store.put("urgent", bytes(round), isUrgent: true)
      try await eventually("round \(round) in the file") { [path] in
        try StateStore.records(path: path).texts == ["paced": round, "urgent": round]
      }
    }
  }

  @Test func urgentChangesAreAtMostTwentyTransactionsASecond() async throws {
    #expect(Pacing().gather >= .milliseconds(50))
    let store = open(pacing: Pacing(gather: .milliseconds(50), apart: .seconds(1), retry: quick.retry))
    let connection = try SQLiteConnection(path)
    var versions: Set<String> = []
    let start = ContinuousClock.now
    while start.duration(to: .now) < .milliseconds(500) {
      store.put("urgent", bytes("\(versions.count)"), isUrgent: true)
      versions.insert(try connection.text("PRAGMA data_version"))
    }
    #expect((3...11).contains(versions.count), "\(versions.count) transactions")
  }

  @Test func manyUrgentChangesWaitAsOthersDo() async throws {
    let store = open(
      pacing: Pacing(gather: .milliseconds(1), apart: .milliseconds(200), early: 3, retry: quick.retry))
    let connection = try SQLiteConnection(path)
    var versions: Set<String> = []
    let start = ContinuousClock.now
    while start.duration(to: .now) < .milliseconds(500) {
      store.put("urgent", bytes("\(versions.count)"), isUrgent: true)
      versions.insert(try connection.text("PRAGMA data_version"))
    }
    // The first, three at once, and for each pause two at most.
    #expect(versions.count <= 12, "\(versions.count) transactions")
  }

  @Test func putAfterCloseIsIgnored() throws {
    let store = open()
    store.put("a", bytes("a"))
    #expect(store.close(within: patience) == 0)
    store.put("b", bytes("b"))
    #expect(store.close(within: patience) == 0)
    #expect(try StateStore.records(path: path).texts == ["a": "a"])
  }

  @Test func closeWritesWithoutPacingDelay() throws {
    let store = open(
      pacing: Pacing(
        gather: .seconds(600), apart: .seconds(600),
        retry: BackOff(first: .seconds(600), longest: .seconds(600))))
    store.put("a", bytes("a"))
    #expect(store.close(within: patience) == 0)
    #expect(try StateStore.records(path: path).texts == ["a": "a"])
  }

  @Test func storeInMemoryWritesNothing() {
    let store = StateStore.inMemory()
    store.put("a", bytes("a"))
    #expect(store.close(within: .zero) == 0)
  }
}
