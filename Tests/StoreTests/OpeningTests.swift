import EventLoop
import Glibc
import TestSupport
import Testing

@testable import Store

@LoopActor @Suite struct OpeningTests {
  let folder: TemporaryFolder
  let path: String

  init() throws {
    folder = try TemporaryFolder()
    path = folder.path + "/state.db"
  }

  @Test func foldersAndFilesArePrivateToUser() async throws {
    let path = folder.path + "/a/b/state.db"
    let store = StateDatabase(path: path)
    #expect(store.opening == .opened)
    #expect(store.records.isEmpty)
    store.put("key", bytes("value"))
    #expect(await store.close(within: patience) == 0)
    #expect(permissions(folder.path + "/a") == "700")
    #expect(permissions(folder.path + "/a/b") == "700")
    for name in try names(in: folder.path + "/a/b") {
      #expect(permissions(folder.path + "/a/b/" + name) == "600", "\(name)")
    }
  }

  @Test func storedValuesAreThereAfterReopening() async throws {
    let values = [
      "C5:A1:B2:C3:D4:E5": #"{"id":"küche","wanted":{"period":5000}}"#, "": "",
      "long": String(repeating: "x", count: 50_000),
      "nul": "a\0b",
    ]
    try await writeRecords(values, at: path)
    let store = StateDatabase(path: path)
    #expect(store.opening == .opened)
    #expect(store.records.texts == values)
    store.put("long", nil)
    store.put("nobody", nil)
    store.put("nul", bytes("new"))
    #expect(await store.close(within: patience) == 0)
    #expect(
      try StateDatabase.records(path: path).texts == [
        "C5:A1:B2:C3:D4:E5": values["C5:A1:B2:C3:D4:E5"], "": "", "nul": "new",
      ])
  }

  @Test func nonTextBytesAreKept() async throws {
    let value: [UInt8] = [0xFF, 0x00, 0xC3, 0x28]
    let store = StateDatabase(path: path)
    store.put("key", value)
    #expect(await store.close(within: patience) == 0)
    #expect(StateDatabase(path: path).records == ["key": value])
  }

  @Test func recordsAreStoredAsText() async throws {
    try await writeRecords(["key": #"{"a":1}"#], at: path)
    let connection = try SQLiteConnection(path)
    #expect(
      try connection.text("SELECT typeof(key) || typeof(value) || value FROM record") == #"texttext{"a":1}"#)
  }

  /// The kind of file at the path, and a part of the reason.
  @Test(arguments: [
    ("garbage", "not a database"), ("truncated", "malformed"), ("torn", "cannot read"),
    ("foreign", "another program"), ("marked", "another program"), ("columns", "no such column"),
  ])
  func unusableDatabaseIsSetAside(fault: String, reason: String) async throws {
    try await make(fault)
    let before = try contents(path)
    let journal = try? contents(path + "-journal")
    #expect(journal != nil || !["truncated", "torn"].contains(fault))

    let store = StateDatabase(path: path)
    #expect(store.records.isEmpty)
    guard case .setAside(let setAside) = store.opening else {
      Issue.record("\(store.opening)")
      return
    }
    let (aside, text) = (setAside.path, setAside.reason)
    #expect(text.contains(reason) && text.contains(path), "\(text)")
    #expect(try contents(aside) == before)
    // Its journal is moved too, or SQLite would apply it to the new database.
    #expect((try? contents(aside + "-journal")) == journal)

    store.put("key", bytes("value"))
    #expect(await store.close(within: patience) == 0)
    #expect(StateDatabase(path: path).opening == .opened)
    #expect(try StateDatabase.records(path: path).texts == ["key": "value"])
    #expect(try contents(aside) == before)
  }

  @Test func filesMovedAsideHaveDifferentNames() throws {
    var asides: Set<String> = []
    for round in 0..<3 {
      try folder.write("no database, of round \(round), and long enough to look at", to: "state.db")
      guard case .setAside(let setAside) = StateDatabase(path: path).opening else {
        Issue.record("it was opened")
        return
      }
      asides.insert(setAside.path)
      #expect(String(decoding: try contents(setAside.path), as: UTF8.self).contains("round \(round)"))
    }
    #expect(asides.count == 3)
  }

  private func make(_ fault: String) async throws {
    switch fault {
    case "garbage":
      try folder.write(String(repeating: "no database at all ", count: 1000), to: "state.db")
    case "truncated", "torn":
      var values: [String: String] = [:]
      for key in 0..<100 { values["key \(key)"] = String(repeating: "x", count: 500) }
      try await writeRecords(values, at: path)
      var bytes = try contents(path)
      if fault == "truncated" {
        bytes.removeLast(bytes.count / 2)
      } else {
        for index in 8192..<12_288 { bytes[index] = UInt8(truncatingIfNeeded: index &* 31) }
      }
      try folder.write(bytes, to: "state.db")
    case "marked":
      try await writeRecords(["key": "value"], at: path)
      try SQLiteConnection(path).execute("PRAGMA application_id = 7")
    case "foreign":
      try SQLiteConnection(path).execute("CREATE TABLE bookmarks (url TEXT)")
    case "columns":
      try SQLiteConnection(path).execute(
        "CREATE TABLE record (name TEXT); PRAGMA application_id = \(0x6D62_6777); PRAGMA user_version = 1")
    default:
      throw Failure(fault)
    }
  }

  @Test func folderAtPathLeavesMemoryOnly() async throws {
    mkdir(path, 0o700)
    let store = StateDatabase(path: path)
    #expect(
      store.opening == .inMemoryOnly(reason: "cannot open \(path): it is not a regular file: move it away"))
    #expect(store.records.isEmpty)
    store.put("key", bytes("value"))
    #expect(await store.close(within: .zero) == 1)
    #expect(try names(in: path) == [])
  }

  /// A store with a change that cannot be written, as there is a folder in place of its file.
  /// - Parameter delay: from one attempt to write to the next.
  private func unwritable(triedEvery delay: Duration) -> StateDatabase {
    mkdir(path, 0o700)
    let pacing = Pacing(gather: delay, apart: delay, retry: BackOff(first: delay, longest: delay))
    let store = StateDatabase(path: path, pacing: pacing)
    store.put("key", bytes("value"))
    return store
  }

  @Test func whatCouldNotBeWrittenAtTheStartIsWrittenLater() async throws {
    let store = unwritable(triedEvery: .milliseconds(10))
    #expect(store.trouble != nil)
    rmdir(path)
    try await eventually("it can be written") { await store.trouble == nil }
    #expect(await store.close(within: patience) == 0)
    #expect(try StateDatabase.records(path: path).texts == ["key": "value"])
  }

  /// A backup was restored meanwhile, which only the next run reads.
  @Test func aFileThatWasNotReadAtTheStartIsNotWritten() async throws {
    let store = unwritable(triedEvery: .seconds(60))
    rmdir(path)
    try await writeRecords(["key": "backup"], at: path)
    #expect(await store.close(within: patience) == 1)
    #expect(store.trouble?.contains("restart it") == true)
    #expect(try StateDatabase.records(path: path).texts == ["key": "backup"])
  }

  /// SQLite reports both as damage.
  @Test func aFileThatTheSystemCannotReadIsNotDamaged() {
    #expect(throws: StoreError(.circumstances, "cannot read /proc/self/mem: Input/output error")) {
      try DatabaseFile.readThrough("/proc/self/mem")
    }
  }

  @Test func pipeAtPathLeavesMemoryOnly() {
    mkfifo(path, 0o600)
    #expect(
      StateDatabase(path: path).opening
        == .inMemoryOnly(reason: "cannot open \(path): it is not a regular file: move it away"))
  }

  /// SQLite would wait for a writer without an end, or for a lock.
  @Test(arguments: ["-journal", "-wal"])
  func pipeBesideTheDatabaseIsNotOpened(suffix: String) async throws {
    try await writeRecords(["key": "value"], at: path)
    unlink(path + suffix)
    mkfifo(path + suffix, 0o600)
    let reason = "cannot open \(path)\(suffix): it is not a regular file: move it away"
    #expect(StateDatabase(path: path).opening == .unreadable(reason: reason))
    unlink(path + suffix)
    #expect(StateDatabase(path: path).opening == .opened)
  }

  @Test func pipeAsLockIsNotWaitedFor() {
    mkfifo(path + ".lock", 0o600)
    #expect(!StateDatabase.isInUse(path: path))
  }

  @Test func fileInsteadOfFolderLeavesMemoryOnly() throws {
    try folder.write("", to: "file")
    guard case .inMemoryOnly(let reason) = StateDatabase(path: folder.path + "/file/state.db").opening
    else {
      Issue.record("it was opened")
      return
    }
    #expect(reason.contains("Not a directory"))
  }

  @Test(arguments: ["", "/", "state.db", "/tmp/state\0.db", "/tmp/", "/proc/nowhere/state.db"])
  func unusablePathLeavesMemoryOnly(path: String) {
    guard case .inMemoryOnly = StateDatabase(path: path).opening else {
      Issue.record("it was opened")
      return
    }
  }

  @Test func missingFileIsReadAsEmpty() throws {
    #expect(try StateDatabase.records(path: path).isEmpty)
    #expect(try names(in: folder.path) == [])
  }

  @Test func readerDoesNotChangeAnUnusableDatabase() async throws {
    try await make("foreign")
    let before = try names(in: folder.path)
    #expect(throws: StoreError.self) { try StateDatabase.records(path: path) }
    #expect(try names(in: folder.path) == before)
  }
}
