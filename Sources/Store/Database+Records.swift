extension Schema {
  /// The state of a gateway: keys and values, both text.
  static let records = Schema(
    application: 0x6D62_6777,  // "mbgw"
    version: 1, table: "record",
    columns: "(key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID")
}

/// A change of a key.
enum Change: Sendable, Equatable {
  case put([UInt8])
  case delete
}

extension Database {
  func records() throws(StoreError) -> [String: [UInt8]] {
    if isEmpty { return [:] }
    let rows = try prepare("SELECT key, value FROM record", "read")
    var records: [String: [UInt8]] = [:]
    while try rows.next() { records[rows.text(0)] = rows.bytes(1) }
    // The records are only read once.
    releaseMemory()
    return records
  }

  /// Writes all of `changes` atomically and durably.
  func write(_ changes: [String: Change]) throws(StoreError) {
    try makeTable()
    try transaction { () throws(StoreError) in
      for (key, change) in changes {
        let key = Array(key.utf8)
        switch change {
        case .put(let value):
          try statement("REPLACE INTO record (key, value) VALUES (CAST(? AS TEXT), CAST(? AS TEXT))")
            .run(.blob(key), .blob(value))
        case .delete: try statement("DELETE FROM record WHERE key = CAST(? AS TEXT)").run(.blob(key))
        }
      }
    }
  }
}
