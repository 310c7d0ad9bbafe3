import CSQLite

/// What a database file holds.
struct Schema: Sendable {
  /// SQLite's `application_id`.
  let application: Int
  /// The layout of its table, SQLite's `user_version`.
  let version: Int
  /// The name of its only table.
  let table: String
  /// The columns, as for `CREATE TABLE`.
  let columns: String
  /// Whether it is written to each second for hours, and read by this program alone.
  var isWrittenOften = false
}

/// A database file with one table.
///
/// Writes are rare, power cuts are not (a Raspberry Pi has no switch), and memory cards wear out. A rollback journal
/// with `synchronous=FULL` makes each transaction atomic and durable; it is overwritten rather than deleted
/// (`PERSIST`), so that the folder is not written to. Measured: 5 flushes and 28 KiB of pages per transaction. A write-ahead log
/// needs 1 and 6 KiB, but also a file of shared memory: the database could not be read when the disk is full or
/// read-only, or by users without write access. Instead, the changes of a second are written in one transaction.
///
/// Other programs may read the file at any time, for example the shell `sqlite3`; but not one that is written often: that has a
/// write-ahead log, and locks out other programs, so that the memory need not be shared.
final class Database: @unchecked Sendable {
  // @unchecked: one thread at a time. Its owner makes the next call when the one before has returned.

  /// Once per process.
  private static let library: Void = { csqlite_allocate_pages_singly() }()

  let path: String
  private let schema: Schema
  /// Whether there is no table yet.
  private(set) var isEmpty = false
  private var handle: OpaquePointer?
  private var lock: FileLock?
  /// Statements that are used again, by their SQL.
  private var statements: [String: Statement] = [:]

  /// Opens the file, which must exist, and checks it; changes nothing except to roll back an incomplete transaction.
  /// - Parameter lock: held while the database is open, to be written; nil: it is only read.
  /// - Throws: also if a newer version of the program has written it.
  init(_ path: String, _ schema: Schema, _ lock: FileLock? = nil) throws(StoreError) {
    _ = Self.library
    self.path = path
    self.schema = schema
    // SQLite would wait for the writer of a pipe.
    for suffix in ["-journal", "-wal"] { _ = try DatabaseFile.exists(path + suffix) }
    let code = sqlite3_open_v2(
      path, &handle, lock == nil ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE, nil)
    guard code == SQLITE_OK, let handle else {
      let error = StoreError.sqlite(code, handle, "open", path)
      // SQLite provides a handle even if it could not open the file.
      sqlite3_close_v2(handle)
      handle = nil
      throw error
    }
    sqlite3_extended_result_codes(handle, 1)
    // Milliseconds to wait for the locks of other programs.
    sqlite3_busy_timeout(handle, 1000)
    // First, as other pragmas read the file.
    if schema.isWrittenOften { try execute("PRAGMA locking_mode = EXCLUSIVE", "open") }
    // The size is in KiB: the table has a few pages, and is read once.
    try execute("PRAGMA cache_size = -64; PRAGMA mmap_size = 0", "open")
    // A consistent snapshot, also while a gateway is writing.
    if lock == nil { try execute("BEGIN", "open") }
    isEmpty = try examine()
    guard let lock else { return }
    self.lock = lock
    try execute("PRAGMA journal_size_limit = 65536; PRAGMA synchronous = FULL", "open")
    if !schema.isWrittenOften { try execute("PRAGMA journal_mode = PERSIST", "open") }
  }

  deinit { close() }

  /// Closes the file and releases its lock. Harmless when repeated; no other method may be called afterwards.
  func close() {
    statements = [:]
    sqlite3_close_v2(handle)
    handle = nil
    lock = nil
  }

  /// Checks the file; returns whether it is empty.
  private func examine() throws(StoreError) -> Bool {
    let application = try number("PRAGMA application_id")
    let version = try number("PRAGMA user_version")
    // First, as the contents of a newer version are unknown.
    if application == schema.application, version > schema.version {
      throw StoreError(
        .newer,
        "\(path) was written by a newer version of the gateway (schema \(version), this version knows \(schema.version)): "
          + "install the newer version again, or move the file away to begin with an empty one")
    }
    let condition = try value("PRAGMA quick_check(1)")
    guard condition == "ok" else { throw StoreError(.content, "cannot read \(path): \(condition)") }
    if application == 0, version == 0, try number("SELECT count(*) FROM sqlite_master") == 0 { return true }
    let tables = try number(
      "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = '\(schema.table)'")
    guard application == schema.application, version == schema.version, tables == 1 else {
      throw StoreError(.content, "cannot read \(path): it is a database of another program")
    }
    return false
  }

  func number(_ sql: String) throws(StoreError) -> Int { Int(try value(sql)) ?? 0 }

  private func value(_ sql: String) throws(StoreError) -> String {
    let statement = try prepare(sql, "read")
    return try statement.next() ? statement.text(0) : ""
  }

  /// Creates the table, if the file is empty.
  func makeTable() throws(StoreError) {
    guard isEmpty else { return }
    if schema.isWrittenOften { try execute("PRAGMA page_size = 1024; PRAGMA journal_mode = WAL", "write to") }
    try transaction { () throws(StoreError) in
      try execute("CREATE TABLE \(schema.table) \(schema.columns)", "write to")
      try execute(
        "PRAGMA application_id = \(schema.application); PRAGMA user_version = \(schema.version)", "write to")
    }
    isEmpty = false
  }

  /// A statement that is prepared once.
  func statement(_ sql: String, _ action: String = "write to") throws(StoreError) -> Statement {
    if let statement = statements[sql] { return statement }
    let new = try prepare(sql, action)
    statements[sql] = new
    return new
  }

  /// Returns the memory of pages that were read.
  func releaseMemory() { sqlite3_db_release_memory(handle) }

  /// Makes the changes of `body` atomically and durably.
  func transaction(_ body: () throws(StoreError) -> Void) throws(StoreError) {
    try execute("BEGIN IMMEDIATE", "write to")
    do throws(StoreError) {
      try body()
      try execute("COMMIT", "write to")
    } catch {
      // SQLite has rolled back already after some errors; this then fails harmlessly.
      sqlite3_exec(handle, "ROLLBACK", nil, nil, nil)
      throw error
    }
  }

  func prepare(_ sql: String, _ action: String) throws(StoreError) -> Statement {
    guard let handle else { throw StoreError(.circumstances, "cannot \(action) \(path): it is closed") }
    return try Statement(sql, handle, action, path)
  }

  func execute(_ sql: String, _ action: String) throws(StoreError) {
    let code = sqlite3_exec(handle, sql, nil, nil, nil)
    guard code == SQLITE_OK else { throw .sqlite(code, handle, action, path) }
  }
}
