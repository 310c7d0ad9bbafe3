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

  enum Value {
    case integer(Int64)
    case blob([UInt8])
  }

  /// Runs it with `values` for its parameters, and calls `body` at each row; false ends it.
  func run(
    _ values: Value..., body: (Statement) throws(StoreError) -> Bool = { _ throws(StoreError) in true }
  ) throws(StoreError) {
    defer {
      // Both calls return the error of the last step again, which has been reported.
      sqlite3_reset(handle)
      sqlite3_clear_bindings(handle)
    }
    try bind(values)
    while try next(), try body(self) {}
  }

  private func bind(_ values: [Value]) throws(StoreError) {
    for (index, value) in values.enumerated() {
      let index = Int32(index + 1)
      switch value {
      case .integer(let number): try check(sqlite3_bind_int64(handle, index, number))
      case .blob(let bytes): try check(bind(blob: bytes, at: index))
      }
    }
  }

  // SQLITE_TRANSIENT: copy the bytes, which are invalid when the statement runs.
  private static let copied = unsafeBitCast(-1, to: sqlite3_destructor_type.self)

  private func bind(blob: [UInt8], at index: Int32) -> Int32 {
    blob.isEmpty
      ? sqlite3_bind_zeroblob(handle, index, 0)
      : sqlite3_bind_blob(handle, index, blob, Int32(clamping: blob.count), Self.copied)
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
    // The order matters: the length depends on the type requested last.
    let start = sqlite3_column_blob(handle, column)
    let count = Int(sqlite3_column_bytes(handle, column))
    return start.map { [UInt8](UnsafeRawBufferPointer(start: $0, count: count)) } ?? []
  }

  func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }

  func text(_ column: Int32) -> String { String(decoding: bytes(column), as: UTF8.self) }

  private func check(_ code: Int32) throws(StoreError) {
    guard code == SQLITE_OK else { throw .sqlite(code, database, action, path) }
  }
}
