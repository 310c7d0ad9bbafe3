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

  private static let version = "1"

  /// Once in a process.
  private static let library: Void = { csqlite_allocate_pages_singly() }()

  let path: String
  private var handle: OpaquePointer?
  /// Held as long as the database is open.
  private var lock: FileLock?
  /// Prepared at the first write, when there is a table for certain.
  private var statements: (put: Statement, delete: Statement)?
  private var hasTable = false

  /// Opens the file, which exists, and looks through it; changes nothing in it but what a transaction left half done.
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
    if case .readWrite(let lock, let maximumPages) = access {
      self.lock = lock
      try execute(
        "PRAGMA journal_mode = PERSIST; PRAGMA journal_size_limit = 65536; PRAGMA synchronous = FULL", "open")
      if let maximumPages { try execute("PRAGMA max_page_count = \(maximumPages)", "open") }
    }
    try examine()
  }

  deinit { close() }

  /// Closes the file and lets go of its lock. Harmless when repeated; nothing else may be called afterwards.
  func close() {
    statements = nil
    sqlite3_close_v2(handle)
    handle = nil
    lock = nil
  }

  /// Whether it is whole, and of the version that is known here.
  private func examine() throws(StoreError) {
    let condition = try value("PRAGMA quick_check(1)")
    guard condition == "ok" else { throw StoreError(.content, "cannot read \(path): \(condition)") }
    let version = try value("PRAGMA user_version")
    switch version {
    case Self.version:
      hasTable = true
    case "0":
      // The table is made at the first write: then a full disk does not prevent the start.
      guard try value("SELECT count(*) FROM sqlite_master") == "0" else {
        throw StoreError(.content, "cannot read \(path): it is a database of another program")
      }
    case _:
      throw StoreError(
        .content, "cannot read \(path): it is of version \(version), known here is \(Self.version)")
    }
  }

  private func value(_ sql: String) throws(StoreError) -> String {
    let statement = try prepare(sql, "read")
    return try statement.next() ? statement.text(0) : ""
  }

  func records() throws(StoreError) -> [String: [UInt8]] {
    guard hasTable else { return [:] }
    let rows = try prepare("SELECT key, value FROM record", "read")
    var records: [String: [UInt8]] = [:]
    while try rows.next() { records[rows.text(0)] = rows.bytes(1) }
    // The pages that were read: there is no second time.
    sqlite3_db_release_memory(handle)
    return records
  }

  /// Writes all of `changes`, or nothing; they are on the disk when it returns.
  func write(_ changes: [String: Change]) throws(StoreError) {
    if !hasTable {
      try transaction { () throws(StoreError) in
        try execute(
          """
          CREATE TABLE record (key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
          PRAGMA user_version = \(Self.version)
          """, "write to")
      }
      hasTable = true
    }
    let statements = try prepareOnce()
    try transaction { () throws(StoreError) in
      for (key, change) in changes {
        switch change {
        case .put(let value): try statements.put.run(Array(key.utf8), value)
        case .delete: try statements.delete.run(Array(key.utf8))
        }
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
