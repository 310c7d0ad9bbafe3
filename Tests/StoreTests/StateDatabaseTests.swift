import EventLoop
import Glibc
import TestSupport
import Testing

@testable import Store

/// The same migration as that of `store-writer migrate`.
private let doubling = Schema(version: 1, migrations: [{ doubled($0) }])

private func doubled(_ records: [String: [UInt8]]) -> [String: [UInt8]] {
  Dictionary(uniqueKeysWithValues: records.map { ("a/\($0)", $1 + $1) })
}

@Suite struct StateDatabaseTests {
  let folder: TemporaryFolder
  let path: String
  private let long = String(repeating: "x", count: 400)

  init() throws {
    folder = try TemporaryFolder()
    path = folder.path + "/state.db"
  }

  private func open(_ schema: Schema = doubling, maximumPages: Int? = nil) -> StateDatabase {
    StateDatabase(
      path: path, schema: schema, loop: EventLoop(), pacing: Pacing(), maximumPages: maximumPages)
  }

  /// Writes a database in the format from before schema versions.
  private func writeOriginal(_ values: [String: String]) throws {
    let connection = try SQLiteConnection(path)
    try connection.execute(
      "CREATE TABLE record (key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"
        + "PRAGMA user_version = 1")
    for (key, value) in values {
      try connection.execute("INSERT INTO record VALUES ('\(key)', '\(value)')")
    }
  }

  // MARK: Sections

  @Test func sectionsAreSeparate() throws {
    let first = open()
    first.section("home").put("key", bytes("1"))
    first.section("home").put("removal/a/b", bytes("2"))
    first.section("home_assistant").put("key", bytes("3"))
    first.section("home").put("gone", bytes("4"))
    first.section("home").put("gone", nil)
    #expect(first.trouble == nil)
    first.close()

    #expect(
      try StateStore.records(path: path, schema: doubling).texts == [
        "home/key": "1", "home/removal/a/b": "2", "home_assistant/key": "3",
      ])
    let second = open()
    #expect(second.section("home").records.texts == ["key": "1", "removal/a/b": "2"])
    #expect(second.section("home_assistant").records.texts == ["key": "3"])
    #expect(second.section("hom").records.isEmpty)
    second.close()
    let sections = try StateDatabase.sections(path: path, schema: doubling)
    #expect(sections.keys.sorted() == ["home", "home_assistant"])
    #expect(sections["home"]?.texts == ["key": "1", "removal/a/b": "2"])
  }

  @Test func withoutFolderDatabaseIsInMemory() {
    let database = StateDatabase(path: nil, schema: doubling, loop: EventLoop())
    #expect(database.trouble == "there is no state folder: set STATE_DIRECTORY, XDG_STATE_HOME or HOME")
    database.section("a").put("key", bytes("value"))
    database.close()
  }

  @Test func damagedDatabaseIsSetAside() throws {
    try folder.write(String(repeating: "no database at all ", count: 1000), to: "state.db")
    let database = open()
    #expect(database.trouble == nil)
    #expect(database.section("a").records.isEmpty)
    database.section("a").put("key", bytes("value"))
    database.close()
    #expect(try StateDatabase.sections(path: path, schema: doubling)["a"]?.texts == ["key": "value"])
    #expect(try names(in: folder.path).contains { $0.hasPrefix("state.db.corrupt-") })
  }

  @Test func troubleLastsUntilWriteSucceeds() async throws {
    let loop = EventLoop.onNewThread()
    defer { loop.stop() }
    open().close()
    let connection = try SQLiteConnection(path)
    try connection.execute("CREATE TABLE filler (bytes BLOB); INSERT INTO filler VALUES (zeroblob(30000))")
    let pacing = Pacing(
      gather: .milliseconds(1), apart: .milliseconds(1),
      retry: BackOff(first: .milliseconds(5), longest: .milliseconds(20)))
    let database = StateDatabase(path: path, schema: doubling, loop: loop, pacing: pacing, maximumPages: 11)
    #expect(database.trouble == nil)
    database.section("a").put("key", bytes(String(repeating: "x", count: 20_000)))
    try await waitForTrouble(of: database, on: loop) { $0?.contains("full") == true }
    try connection.execute("DROP TABLE filler")
    try await waitForTrouble(of: database, on: loop) { $0 == nil }
    database.close()
    #expect(try StateDatabase.sections(path: path, schema: doubling)["a"]?.count == 1)
  }

  /// Waits until the trouble of `database`, read on the loop, satisfies `condition`.
  private func waitForTrouble(
    of database: StateDatabase, on loop: EventLoop, _ condition: @escaping @Sendable (String?) -> Bool
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

  @Test func newDatabaseHasCurrentVersion() throws {
    let calls = Record<Int>()
    let schema = Schema(
      version: 1,
      migrations: [
        { records in
          calls.append(records.count)
          return records
        }
      ])
    try folder.write("", to: "state.db")
    for _ in 0..<2 {
      open(schema).close()
      #expect(try SQLiteConnection(path).text("PRAGMA user_version") == "1")
    }
    #expect(calls.elements.isEmpty)
    #expect(try names(in: folder.path).allSatisfy { !$0.contains("schema") })
  }

  /// Whether the database is from before schema versions, or has schema 0.
  @Test(arguments: [true, false])
  func olderDatabaseIsMigratedAndCopied(isOriginal: Bool) throws {
    let old = ["1": "x", "2": "yz", "empty": ""]
    if isOriginal { try writeOriginal(old) } else { try writeRecords(old, at: path) }
    let database = open()
    #expect(database.trouble == nil)
    let new = ["1": "xx", "2": "yzyz", "empty": ""]
    #expect(database.section("a").records.texts == new)
    database.section("a").put("1", nil)
    database.close()
    #expect(try SQLiteConnection(path).text("PRAGMA user_version") == "1")
    #expect(open().section("a").records.texts == ["2": "yzyz", "empty": ""])

    let copy = path + ".schema-0"
    #expect(permissions(copy) == "600")
    #expect(try StateStore.records(path: copy).texts == old)
    #expect(
      try names(in: folder.path) == ["state.db", "state.db-journal", "state.db.lock", "state.db.schema-0"])
  }

  @Test func migrationsRunInOrder() throws {
    func tag(_ tag: String) -> Migration {
      { records in records.mapValues { $0 + bytes(tag) } }
    }
    try writeRecords(["a/key": "0"], at: path)
    let last = Schema(version: 3, migrations: [tag("1"), tag("2"), tag("3")])
    let middle = Schema(version: 1, migrations: [tag("1")])
    let first = open(middle)
    #expect(first.section("a").records.texts == ["key": "01"])
    first.close()
    let second = open(last)
    #expect(second.section("a").records.texts == ["key": "0123"])
    second.close()
    #expect(try StateStore.records(path: path + ".schema-0").texts == ["a/key": "0"])
    #expect(try StateStore.records(path: path + ".schema-1", schema: middle).texts == ["a/key": "01"])
  }

  @Test func copyOfEarlierAttemptIsReplaced() throws {
    try writeRecords(["1": "x"], at: path)
    try folder.write("unfinished", to: "state.db.schema-0.new")
    try folder.write("earlier", to: "state.db.schema-0")
    let database = open()
    #expect(database.trouble == nil)
    database.close()
    #expect(try StateStore.records(path: path + ".schema-0").texts == ["1": "x"])
    #expect(try !names(in: folder.path).contains("state.db.schema-0.new"))
  }

  @Test func newerDatabaseIsNotChanged() async throws {
    try writeRecords(["a/key": "value"], at: path)
    try SQLiteConnection(path).execute("PRAGMA user_version = 99")
    let before = try contents(path)
    let known = try names(in: folder.path)
    let database = open()
    let trouble = try #require(database.trouble)
    #expect(trouble.contains("newer version") && trouble.contains("schema 99") && trouble.contains("knows 1"))
    #expect(trouble.contains(path) && trouble.contains("install the newer version"))
    #expect(database.section("a").records.isEmpty)
    database.section("a").put("key", bytes("other"))
    database.close()
    #expect(throws: StoreError.self) { try StateDatabase.sections(path: path, schema: doubling) }
    #expect(throws: StoreError.self) { try StateStore.records(path: path) }

    let writer = try ChildProcess(program("store-writer"), ["migrate", path])
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
    try SQLiteConnection(path).execute("CREATE TABLE other (a); PRAGMA user_version = 99")
    let before = try contents(path)
    #expect(open().trouble?.contains("schema 99") == true)
    #expect(try contents(path) == before)
  }

  // MARK: A migration that fails

  @Test func migrationOfFullDatabaseChangesNothing() throws {
    let old = Dictionary(uniqueKeysWithValues: (0..<20).map { ("\($0)", long) })
    try writeRecords(old, at: path)
    let before = try contents(path)
    let database = open(maximumPages: before.count / 4096)
    #expect(database.trouble == "cannot write to \(path): database or disk is full (SQLite 13)")
    // Old records are available, and new ones are not stored.
    let records = try StateStore.records(path: path)
    #expect(database.section("a").records == doubled(records).withoutSection)
    database.section("a").put("key", bytes("value"))
    database.close()
    #expect(try contents(path) == before)
    #expect(try StateStore.records(path: path).texts == old)

    let again = open()
    #expect(again.trouble == nil)
    #expect(again.section("a").records.count == 20)
    again.close()
  }

  @Test func databaseIsNotMigratedIfCopyFails() throws {
    try writeRecords(["1": "x"], at: path)
    let before = try contents(path)
    // Nothing can be renamed to a folder.
    mkdir(path + ".schema-0", 0o700)
    let database = open()
    #expect(database.trouble == "cannot make \(path).schema-0: Is a directory")
    #expect(database.section("a").records.texts == ["1": "xx"])
    database.close()
    #expect(try contents(path) == before)
    #expect(try !names(in: folder.path).contains("state.db.schema-0.new"))
  }

  @Test func readerMigratesInMemoryOnly() throws {
    try writeOriginal(["1": "x"])
    let before = try contents(path)
    #expect(try StateDatabase.sections(path: path, schema: doubling)["a"]?.texts == ["1": "xx"])
    #expect(try contents(path) == before)
    #expect(try names(in: folder.path) == ["state.db"])
    #expect(try StateDatabase.sections(path: path + "-none", schema: doubling).isEmpty)
  }

  // MARK: A process that is killed

  @Test func killDuringMigrationKeepsOldDatabase() async throws {
    try writeRecords(["1": "x"], at: path)
    let before = try contents(path)
    let writer = try ChildProcess(program("store-writer"), ["die", path])
    #expect(try await writer.exitStatus(within: patience) == 128 + SIGKILL)
    #expect(try contents(path) == before)
    #expect(open().section("a").records.texts == ["1": "xx"])
  }

  /// The kernel kills the process at the write that exceeds the file size limit, of the copy or of the database.
  @Test func killAtAnyWriteKeepsOldOrNewDatabase() async throws {
    let old = Dictionary(uniqueKeysWithValues: (100..<300).map { ("\($0)", long) })
    try writeRecords(old, at: path)
    let original = try contents(path)
    var killed = (copying: 0, writing: 0)
    var isMigrated = false
    let part = original.count / 5
    for limit in stride(from: part, through: 20 * part, by: part) where !isMigrated {
      for name in try names(in: folder.path) { unlink("\(folder.path)/\(name)") }
      try folder.write(original, to: "state.db")
      let writer = try ChildProcess(
        "/usr/bin/prlimit", ["--core=0", "--fsize=\(limit)", program("store-writer"), "migrate", path])
      let status = try await writer.exitStatus(within: patience)
      isMigrated = status == 0
      #expect(isMigrated || status == 128 + SIGXFSZ, "\(status): \(writer.text)")
      if !isMigrated {
        if try names(in: folder.path).contains("state.db.schema-0.new") {
          killed.copying += 1
        } else if try contents(path).count > original.count {
          killed.writing += 1
          // The database is partly new, and there is the journal that reverts it: it begins with D9.
          #expect(try contents(path + "-journal").first == 0xD9)
        }
      }
      try expectDatabase(old, isMigrated: isMigrated, "limit \(limit)")
    }
    #expect(isMigrated)
    #expect(killed.copying > 1 && killed.writing > 1, "\(killed)")
  }

  private func expectDatabase(_ old: [String: String], isMigrated: Bool, _ comment: Comment) throws {
    do {
      let connection = try SQLiteConnection(path)
      #expect(try connection.text("PRAGMA integrity_check") == "ok", comment)
      #expect(try connection.text("PRAGMA user_version") == (isMigrated ? "1" : "0"), comment)
      #expect(
        try connection.text("SELECT group_concat(DISTINCT length(value)) FROM record WHERE key <> 'a/new'")
          == (isMigrated ? "800" : "400"), comment)
    }
    let database = open()
    #expect(database.trouble == nil, comment)
    var records = database.section("a").records
    if isMigrated { #expect(records.removeValue(forKey: "new") == bytes("new")) }
    #expect(records.texts == old.mapValues { $0 + $0 }, comment)
    database.close()
    #expect(try StateStore.records(path: path + ".schema-0").texts == old, comment)
  }
}

extension [String: [UInt8]] {
  /// The records of the section `a`, with the keys that they have in it.
  fileprivate var withoutSection: Self {
    Self(uniqueKeysWithValues: map { (String($0.key.dropFirst("a/".count)), $0.value) })
  }
}
