import CSQLite

/// A database file with a table of keys and values, both text.
///
/// Writes are rare, power cuts are not (a Raspberry Pi has no switch), and memory cards wear out. A rollback journal
/// with `synchronous=FULL` makes each transaction atomic and durable; it is overwritten rather than deleted
/// (`PERSIST`), so that the folder is not written to. Measured: 5 flushes and 17 KiB per transaction. A write-ahead log
/// would need 1 and 4 KiB, but also a file of shared memory: the database could not be read when the disk is full or
/// read-only, or by users without write access. Instead, ``StateStore`` writes the changes of a second in one
/// transaction.
///
/// Other programs may read the file at any time, for example the shell `sqlite3`.
final class Database: @unchecked Sendable {
  // @unchecked: one thread at a time. The thread that opened it hands it over to the store, whose mutex hands it from
  // one writer to the next.

  enum Access {
    case readOnly
    /// - Parameter maximumPages: the maximum size in pages of 4 KiB; nil: unlimited.
    case readWrite(FileLock, maximumPages: Int?)
  }

  /// SQLite's `application_id` of a state database: "mbgw".
  private static let application = 0x6D62_6777
  /// The layout of the records, SQLite's `user_version`.
  private static let version = 1

  /// Once per process.
  private static let library: Void = { csqlite_allocate_pages_singly() }()

  let path: String
  /// Whether there is no table yet.
  private(set) var isEmpty = false
  private var handle: OpaquePointer?
  /// Held while the database is open.
  private var lock: FileLock?
  /// Prepared for the first write, when the table exists.
  private var statements: (put: Statement, delete: Statement)?

  /// Opens the file, which must exist, and checks it; changes nothing except to roll back an incomplete transaction.
  /// - Throws: also if a newer version of the program has written it.
  init(_ path: String, _ access: Access) throws(StoreError) {
    _ = Self.library
    self.path = path
    let flags: Int32
    switch access {
    case .readOnly: flags = SQLITE_OPEN_READONLY
    case .readWrite: flags = SQLITE_OPEN_READWRITE
    }
    let code = sqlite3_open_v2(path, &handle, flags, nil)
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
    // In KiB: the table has a few pages, and is read once.
    try execute("PRAGMA cache_size = -64; PRAGMA mmap_size = 0", "open")
    // A consistent snapshot, also while a gateway is writing.
    if case .readOnly = access { try execute("BEGIN", "open") }
    isEmpty = try examine()
    if case .readWrite(let lock, let maximumPages) = access {
      self.lock = lock
      try execute(
        "PRAGMA journal_mode = PERSIST; PRAGMA journal_size_limit = 65536; PRAGMA synchronous = FULL", "open")
      if let maximumPages { try execute("PRAGMA max_page_count = \(maximumPages)", "open") }
    }
  }

  deinit { close() }

  /// Closes the file and releases its lock. Harmless when repeated; no other method may be called afterwards.
  func close() {
    statements = nil
    sqlite3_close_v2(handle)
    handle = nil
    lock = nil
  }

  /// Checks the file; returns whether it is empty.
  private func examine() throws(StoreError) -> Bool {
    let application = try number("PRAGMA application_id")
    let version = try number("PRAGMA user_version")
    // First, as the contents of a newer version are unknown.
    if application == Self.application, version > Self.version {
      throw StoreError(
        .newer,
        "\(path) was written by a newer version of the gateway (schema \(version), this version knows \(Self.version)): "
          + "install the newer version again, or move the file away to begin with an empty one")
    }
    let condition = try value("PRAGMA quick_check(1)")
    guard condition == "ok" else { throw StoreError(.content, "cannot read \(path): \(condition)") }
    if application == 0, version == 0, try number("SELECT count(*) FROM sqlite_master") == 0 { return true }
    let tables = try number("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'record'")
    guard application == Self.application, version == Self.version, tables == 1 else {
      throw StoreError(.content, "cannot read \(path): it is a database of another program")
    }
    return false
  }

  private func number(_ sql: String) throws(StoreError) -> Int { Int(try value(sql)) ?? 0 }

  private func value(_ sql: String) throws(StoreError) -> String {
    let statement = try prepare(sql, "read")
    return try statement.next() ? statement.text(0) : ""
  }

  func records() throws(StoreError) -> [String: [UInt8]] {
    if isEmpty { return [:] }
    let rows = try prepare("SELECT key, value FROM record", "read")
    var records: [String: [UInt8]] = [:]
    while try rows.next() { records[rows.text(0)] = rows.bytes(1) }
    // Release the pages: the records are only read once.
    sqlite3_db_release_memory(handle)
    return records
  }

  /// Creates the table, if the file is empty.
  func makeTable() throws(StoreError) {
    guard isEmpty else { return }
    try transaction { () throws(StoreError) in
      try execute(
        "CREATE TABLE record (key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID", "write to")
      try execute(
        "PRAGMA application_id = \(Self.application); PRAGMA user_version = \(Self.version)", "write to")
    }
    isEmpty = false
  }

  /// Writes all of `changes` atomically and durably.
  func write(_ changes: [String: Change]) throws(StoreError) {
    try makeTable()
    try transaction { () throws(StoreError) in try apply(changes) }
  }

  /// To be called in a transaction.
  private func apply(_ changes: [String: Change]) throws(StoreError) {
    let statements = try prepareOnce()
    for (key, change) in changes {
      switch change {
      case .put(let value): try statements.put.run(Array(key.utf8), value)
      case .delete: try statements.delete.run(Array(key.utf8))
      }
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

  private func transaction(_ body: () throws(StoreError) -> Void) throws(StoreError) {
    try execute("BEGIN IMMEDIATE", "write to")
    do throws(StoreError) {
      try body()
      try execute("COMMIT", "write to")
    } catch {
      // After some errors SQLite has rolled back already; this then fails harmlessly.
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
