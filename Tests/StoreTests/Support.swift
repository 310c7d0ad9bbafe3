import CSQLite
import EventLoop
import Glibc
import Store
import TestSupport

/// A separate connection to the database, like that of another program.
final class SQLiteConnection: @unchecked Sendable {
  // @unchecked: SQLite's connections are thread-safe.
  private var handle: OpaquePointer?

  init(_ path: String) throws {
    guard sqlite3_open(path, &handle) == SQLITE_OK else { throw Failure("\(path): cannot be opened") }
    sqlite3_busy_timeout(handle, 5000)
  }

  deinit { sqlite3_close(handle) }

  func execute(_ sql: String) throws {
    guard sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK else {
      throw Failure("\(sql): \(String(cString: sqlite3_errmsg(handle)))")
    }
  }

  /// The first column of the first row.
  func text(_ sql: String) throws -> String {
    var statement: OpaquePointer?
    sqlite3_prepare_v2(handle, sql, -1, &statement, nil)
    defer { sqlite3_finalize(statement) }
    guard sqlite3_step(statement) == SQLITE_ROW, let text = sqlite3_column_text(statement, 0) else {
      throw Failure("\(sql): \(String(cString: sqlite3_errmsg(handle)))")
    }
    return String(cString: text)
  }
}

func contents(_ path: String) throws -> [UInt8] {
  guard let stream = fopen(path, "r") else { throw Failure("\(path): errno \(errno)") }
  defer { fclose(stream) }
  var buffer = [UInt8](repeating: 0, count: 1 << 20)
  return Array(buffer[..<fread(&buffer, 1, buffer.count, stream)])
}

/// The permissions of a file or folder, in octal.
func permissions(_ path: String) -> String {
  var status = stat()
  return stat(path, &status) == 0 ? String(status.st_mode & 0o777, radix: 8) : "none"
}

func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

extension [String: [UInt8]] {
  /// The values as text.
  var texts: [String: String] { mapValues { String(decoding: $0, as: UTF8.self) } }
}

/// Writes records to a new or existing database, and closes it.
@LoopActor func writeRecords(_ values: [String: String], at path: String) async throws {
  let store = StateDatabase(path: path)
  guard store.opening == .opened else { throw Failure("\(store.opening)") }
  for (key, value) in values { store.put(key, bytes(value)) }
  guard await store.close(within: patience) == 0 else { throw Failure("not written") }
}
