import CSQLite

/// The database of one file: a table of keys and values, both text.
///
/// How it is kept on the disk. Writes are rare (somebody changed something), power cuts are not (a Raspberry Pi has no
/// switch), and cards wear out. A rollback journal with `synchronous=FULL` makes each transaction whole and lasting,
/// whenever the process or the power ends; it is kept and overwritten (`PERSIST`), so that the folder is not written to.
/// Measured: 5 flushes and 17 KiB for a transaction. A write-ahead log would do with 1 and 4 KiB, but wants a file of
/// shared memory: it cannot be read when the disk is full or read-only, nor by somebody who may not write there. So the
/// flushes are saved by writing seldom instead: ``StateStore`` makes one transaction of what is put within a second.
///
/// Others may read the file at any time, with the shell `sqlite3` too.
final class Database: @unchecked Sendable {
  // @unchecked: used by one thread at a time. The one that opened it hands it over to the store, whose mutex hands it
  // from one writer to the next.

  enum Access {
    case readOnly
    /// - Parameter maximumPages: pages of 4 KiB that it may grow to; nil for as many as there is room for.
    case readWrite(FileLock, maximumPages: Int?)
  }

  /// SQLite's `application_id` of a state database: "mbgw". Those of before there were schema versions have 0, and the
  /// `user_version` 1.
  private static let application = 0x6D62_6777

  /// Once in a process.
  private static let library: Void = { csqlite_allocate_pages_singly() }()

  let path: String
  /// The schema version that is written.
  private let schema: Int
  /// The schema version of what is there; nil where there is nothing yet.
  private(set) var version: Int?
  private var handle: OpaquePointer?
  /// Held as long as the database is open.
  private var lock: FileLock?
  /// Prepared at the first write, when there is a table for certain.
  private var statements: (put: Statement, delete: Statement)?

  /// Opens the file, which exists, and looks through it; changes nothing in it but what a transaction left half done.
  /// - Throws: also where it is of a newer version than `schema`.
  init(_ path: String, _ access: Access, _ schema: Schema) throws(StoreError) {
    _ = Self.library
    self.path = path
    self.schema = schema.version
    let flags: Int32
    switch access {
    case .readOnly: flags = SQLITE_OPEN_READONLY
    case .readWrite: flags = SQLITE_OPEN_READWRITE
    }
    let code = sqlite3_open_v2(path, &handle, flags, nil)
    guard code == SQLITE_OK, let handle else {
      let error = StoreError.sqlite(code, handle, "open", path)
      // There is one even when it could not be opened.
      sqlite3_close_v2(handle)
      handle = nil
      throw error
    }
    sqlite3_extended_result_codes(handle, 1)
    // For others that read or write at the moment.
    sqlite3_busy_timeout(handle, 1000)
    // KiB: the table is a few pages, and read once.
    try execute("PRAGMA cache_size = -64; PRAGMA mmap_size = 0", "open")
    // What is read is of one moment, also while a gateway is writing.
    if case .readOnly = access { try execute("BEGIN", "open") }
    version = try examine()
    if case .readWrite(let lock, let maximumPages) = access {
      self.lock = lock
      try execute(
        "PRAGMA journal_mode = PERSIST; PRAGMA journal_size_limit = 65536; PRAGMA synchronous = FULL", "open")
      if let maximumPages { try execute("PRAGMA max_page_count = \(maximumPages)", "open") }
    }
  }

  deinit { close() }

  /// Closes the file and lets go of its lock. Harmless when repeated; nothing else may be called afterwards.
  func close() {
    statements = nil
    sqlite3_close_v2(handle)
    handle = nil
    lock = nil
  }

  /// Whether it is whole, and of which schema version; nil where there is nothing in it.
  private func examine() throws(StoreError) -> Int? {
    let application = try number("PRAGMA application_id")
    let stored = try number("PRAGMA user_version")
    let isOld = application == 0 && stored <= 1
    let version = isOld ? 0 : stored
    // First: what else is in there, only the newer version knows.
    if application == 0 || application == Self.application, version > schema {
      throw StoreError(
        .newer,
        "\(path) was written by a newer version of the gateway (schema \(version), this version knows \(schema)): "
          + "install the newer version again, or move the file away to begin with an empty one")
    }
    let condition = try value("PRAGMA quick_check(1)")
    guard condition == "ok" else { throw StoreError(.content, "cannot read \(path): \(condition)") }
    if application == 0, stored == 0, try number("SELECT count(*) FROM sqlite_master") == 0 { return nil }
    let tables = try number("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'record'")
    guard isOld || application == Self.application, version >= 0, tables == 1 else {
      throw StoreError(.content, "cannot read \(path): it is a database of another program")
    }
    return version
  }

  private func number(_ sql: String) throws(StoreError) -> Int { Int(try value(sql)) ?? 0 }

  private func value(_ sql: String) throws(StoreError) -> String {
    let statement = try prepare(sql, "read")
    return try statement.next() ? statement.text(0) : ""
  }

  func records() throws(StoreError) -> [String: [UInt8]] {
    guard version != nil else { return [:] }
    let rows = try prepare("SELECT key, value FROM record", "read")
    var records: [String: [UInt8]] = [:]
    while try rows.next() { records[rows.text(0)] = rows.bytes(1) }
    // The pages that were read: there is no second time.
    sqlite3_db_release_memory(handle)
    return records
  }

  /// Makes the table, where there is nothing yet.
  func makeTable() throws(StoreError) {
    guard version == nil else { return }
    try transaction { () throws(StoreError) in
      try execute(
        "CREATE TABLE record (key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID", "write to")
      try writeVersion()
    }
    version = schema
  }

  /// In a transaction.
  private func writeVersion() throws(StoreError) {
    try execute(
      "PRAGMA application_id = \(Self.application); PRAGMA user_version = \(schema)", "write to")
  }

  /// Writes all of `changes`, or nothing; they are on the disk when it returns.
  func write(_ changes: [String: Change]) throws(StoreError) {
    try makeTable()
    try transaction { () throws(StoreError) in try apply(changes) }
  }

  /// Writes the records `new` and the present schema version in place of the records `old` and theirs, or nothing; they
  /// are on the disk when it returns.
  /// - Parameter prepare: called before anything is changed, while no other program can change anything either.
  func replaceAll(
    _ old: [String: [UInt8]], by new: [String: [UInt8]], after prepare: () throws(StoreError) -> Void
  ) throws(StoreError) {
    var changes = new.filter { old[$0.key] != $0.value }.mapValues(Change.put)
    for key in old.keys where new[key] == nil { changes[key] = .delete }
    // A transaction that reads first: while one that writes is open, the database cannot be copied.
    try transaction("BEGIN") { () throws(StoreError) in
      guard try records() == old else {
        throw StoreError(.circumstances, "cannot write to \(path): another program is changing it")
      }
      try prepare()
      try apply(changes)
      try writeVersion()
    }
    version = schema
  }

  /// In a transaction.
  private func apply(_ changes: [String: Change]) throws(StoreError) {
    let statements = try prepareOnce()
    for (key, change) in changes {
      switch change {
      case .put(let value): try statements.put.run(Array(key.utf8), value)
      case .delete: try statements.delete.run(Array(key.utf8))
      }
    }
  }

  /// Writes what the database holds into the file at `path`, which is there and empty; it is on the disk when it returns.
  func copy(to path: String) throws(StoreError) {
    var copy: OpaquePointer?
    let code = sqlite3_open_v2(path, &copy, SQLITE_OPEN_READWRITE, nil)
    defer { sqlite3_close_v2(copy) }
    guard code == SQLITE_OK else { throw .sqlite(code, copy, "open", path) }
    // Nothing is rolled back in it: it counts when it is complete.
    sqlite3_exec(copy, "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = FULL", nil, nil, nil)
    guard let backup = sqlite3_backup_init(copy, "main", handle, "main") else {
      throw .sqlite(sqlite3_errcode(copy), copy, "write to", path)
    }
    let step = sqlite3_backup_step(backup, -1)
    let finish = sqlite3_backup_finish(backup)
    guard step == SQLITE_DONE, finish == SQLITE_OK else {
      throw .sqlite(finish == SQLITE_OK ? step : finish, copy, "write to", path)
    }
  }

  private func prepareOnce() throws(StoreError) -> (put: Statement, delete: Statement) {
    if let statements { return statements }
    let new = (
      put: try prepare("REPLACE INTO record (key, value) VALUES (?, ?)", "write to"),
      delete: try prepare("DELETE FROM record WHERE key = ?", "write to")
    )
    statements = new
    return new
  }

  private func transaction(
    _ begin: String = "BEGIN IMMEDIATE", _ body: () throws(StoreError) -> Void
  ) throws(StoreError) {
    try execute(begin, "write to")
    do throws(StoreError) {
      try body()
      try execute("COMMIT", "write to")
    } catch {
      // After some errors SQLite has done it already; then this fails, and nothing is lost by that.
      sqlite3_exec(handle, "ROLLBACK", nil, nil, nil)
      throw error
    }
  }

  private func prepare(_ sql: String, _ action: String) throws(StoreError) -> Statement {
    guard let handle else { throw StoreError(.circumstances, "cannot \(action) \(path): it is closed") }
    return try Statement(sql, handle, action, path)
  }

  private func execute(_ sql: String, _ action: String) throws(StoreError) {
    let code = sqlite3_exec(handle, sql, nil, nil, nil)
    guard code == SQLITE_OK else { throw .sqlite(code, handle, action, path) }
  }
}
