import EventLoop
import Glibc
import TestSupport
import Testing

@testable import Store

@LoopActor @Suite struct StateDatabaseTests {
  let folder: TemporaryFolder
  let path: String

  init() throws {
    folder = try TemporaryFolder()
    path = folder.path + "/state.db"
  }

  private func open() -> StateDatabase { StateDatabase(path: path) }

  // MARK: Sections

  @Test func sectionsAreSeparate() async throws {
    let first = open()
    first.section("home").put("key", bytes("1"))
    first.section("home").put("removal/a/b", bytes("2"))
    first.section("home_assistant").put("key", bytes("3"))
    first.section("home").put("gone", bytes("4"))
    first.section("home").put("gone", nil)
    #expect(first.trouble == nil)
    await first.close(within: patience)

    #expect(
      try StateDatabase.records(path: path).texts == [
        "home/key": "1", "home/removal/a/b": "2", "home_assistant/key": "3",
      ])
    let second = open()
    #expect(second.section("home").takeRecords().texts == ["key": "1", "removal/a/b": "2"])
    #expect(second.section("home_assistant").takeRecords().texts == ["key": "3"])
    #expect(second.section("hom").takeRecords().isEmpty)
    await second.close(within: patience)
    let sections = try StateDatabase.sections(path: path)
    #expect(sections.keys.sorted() == ["home", "home_assistant"])
    #expect(sections["home"]?.texts == ["key": "1", "removal/a/b": "2"])
  }

  @Test func withoutFolderDatabaseIsInMemory() async {
    let database = StateDatabase(path: nil)
    #expect(
      database.trouble
        == "there is no state folder: set STATE_DIRECTORY, XDG_STATE_HOME or HOME to an absolute path")
    database.section("a").put("key", bytes("value"))
    await database.close(within: patience)
  }

  @Test func damagedDatabaseIsSetAside() async throws {
    try folder.write(String(repeating: "no database at all ", count: 1000), to: "state.db")
    let database = open()
    #expect(database.trouble == nil)
    #expect(database.section("a").takeRecords().isEmpty)
    database.section("a").put("key", bytes("value"))
    await database.close(within: patience)
    #expect(try StateDatabase.sections(path: path)["a"]?.texts == ["key": "value"])
    #expect(try names(in: folder.path).contains { $0.hasPrefix("state.db.corrupt-") })
  }

  @Test func troubleLastsUntilWriteSucceeds() async throws {
    await open().close(within: patience)
    let connection = try SQLiteConnection(path)
    let pacing = Pacing(
      gather: .milliseconds(1), apart: .milliseconds(1),
      retry: BackOff(first: .milliseconds(5), longest: .milliseconds(20)))
    let database = StateDatabase(path: path, pacing: pacing)
    #expect(database.trouble == nil)
    try connection.execute("BEGIN EXCLUSIVE")
    database.section("a").put("key", bytes("value"))
    try await waitForTrouble(of: database) { $0?.contains("locked") == true }
    try connection.execute("COMMIT")
    try await waitForTrouble(of: database) { $0 == nil }
    await database.close(within: patience)
    #expect(try StateDatabase.sections(path: path)["a"]?.count == 1)
  }

  /// Waits until the trouble of `database`, read on the loop, satisfies `condition`.
  private func waitForTrouble(
    of database: StateDatabase, _ condition: @escaping @Sendable (String?) -> Bool
  ) async throws {
    try await deadline(patience, "another trouble") {
      while true {
        let isMet = await withCheckedContinuation { continuation in
          loop.onLoop { continuation.resume(returning: condition(database.trouble)) }
        }
        if isMet { return }
      }
    }
  }

  // MARK: Versions

  @Test func newDatabaseHasCurrentVersion() async throws {
    try folder.write("", to: "state.db")
    for _ in 0..<2 {
      await open().close(within: patience)
      #expect(try SQLiteConnection(path).text("PRAGMA user_version") == "1")
    }
  }

  @Test func aReaderChangesNothing() async throws {
    try await writeRecords(["a/1": "x"], at: path)
    let before = try contents(path)
    #expect(try StateDatabase.sections(path: path)["a"]?.texts == ["1": "x"])
    #expect(try contents(path) == before)
    #expect(try StateDatabase.sections(path: path + "-none").isEmpty)
  }

  @Test func newerDatabaseIsNotChanged() async throws {
    try await writeRecords(["a/key": "value"], at: path)
    try SQLiteConnection(path).execute("PRAGMA user_version = 99")
    let before = try contents(path)
    let known = try names(in: folder.path)
    let database = open()
    let trouble = try #require(database.trouble)
    #expect(trouble.contains("newer version") && trouble.contains("schema 99") && trouble.contains("knows 1"))
    #expect(trouble.contains(path) && trouble.contains("install the newer version"))
    #expect(database.section("a").takeRecords().isEmpty)
    database.section("a").put("key", bytes("other"))
    await database.close(within: patience)
    #expect(throws: StoreError.self) { try StateDatabase.sections(path: path) }
    #expect(throws: StoreError.self) { try StateDatabase.records(path: path) }

    let writer = try ChildProcess(program("store-writer"), ["open", path])
    #expect(try await writer.exitStatus(within: patience) == 0)
    let warnings = writer.text.split(separator: "\n").filter { $0.contains("warning state: ") }
    #expect(warnings.count == 1 && warnings[0].contains("schema 99"), "\(writer.text)")
    #expect(!writer.text.contains("damaged"))
    #expect(writer.text.contains("0 records, trouble: \(path) was written by a newer version"))

    #expect(try contents(path) == before)
    #expect(try names(in: folder.path) == known)
  }

  /// Its tables are unknown.
  @Test func newerDatabaseWithOtherTablesIsNotChanged() throws {
    try SQLiteConnection(path).execute(
      "CREATE TABLE other (a); PRAGMA application_id = \(0x6D62_6777); PRAGMA user_version = 99")
    let before = try contents(path)
    #expect(open().trouble?.contains("schema 99") == true)
    #expect(try contents(path) == before)
  }
}
