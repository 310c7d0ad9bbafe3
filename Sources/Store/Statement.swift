import CSQLite

/// A prepared statement, freed with this object.
final class Statement {
  private let handle: OpaquePointer
  private let database: OpaquePointer
  private let action: String
  private let path: String

  /// - Parameter action: for error texts.
  init(_ sql: String, _ database: OpaquePointer, _ action: String, _ path: String) throws(StoreError) {
    var prepared: OpaquePointer?
    let code = sqlite3_prepare_v2(database, sql, -1, &prepared, nil)
    guard code == SQLITE_OK, let prepared else { throw .sqlite(code, database, action, path) }
    handle = prepared
    self.database = database
    self.action = action
    self.path = path
  }

  deinit { sqlite3_finalize(handle) }

  /// Runs it with `values` for its parameters, as text.
  func run(_ values: [UInt8]...) throws(StoreError) {
    defer {
      // The results repeat an error that has been reported already.
      sqlite3_reset(handle)
      sqlite3_clear_bindings(handle)
    }
    for (index, value) in values.enumerated() {
      try check(bind(value, at: Int32(index + 1)))
    }
    while try next() {}
  }

  private func bind(_ value: [UInt8], at index: Int32) -> Int32 {
    value.withUnsafeBytes { bytes in
      // SQLITE_TRANSIENT: copy the bytes, which are invalid when the statement runs.
      let copied = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
      // A null pointer would mean NULL, not an empty text.
      guard let start = bytes.baseAddress else { return sqlite3_bind_text(handle, index, "", 0, copied) }
      return sqlite3_bind_text(
        handle, index, start.assumingMemoryBound(to: CChar.self), Int32(clamping: bytes.count), copied)
    }
  }

  /// Advances to the next row; false if there is none.
  func next() throws(StoreError) -> Bool {
    let code = sqlite3_step(handle)
    if code == SQLITE_ROW { return true }
    try check(code == SQLITE_DONE ? SQLITE_OK : code)
    return false
  }

  /// The bytes of a column of the current row, numbers as text.
  func bytes(_ column: Int32) -> [UInt8] {
    // In this order: the length depends on the type requested last.
    let start = sqlite3_column_blob(handle, column)
    let count = Int(sqlite3_column_bytes(handle, column))
    return start.map { [UInt8](UnsafeRawBufferPointer(start: $0, count: count)) } ?? []
  }

  func text(_ column: Int32) -> String { String(decoding: bytes(column), as: UTF8.self) }

  private func check(_ code: Int32) throws(StoreError) {
    guard code == SQLITE_OK else { throw .sqlite(code, database, action, path) }
  }
}
