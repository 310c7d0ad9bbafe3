import CSQLite
import Glibc

/// A failed operation on a file of the store.
package struct StoreError: Error, Sendable, Equatable, CustomStringConvertible {
  enum Cause: Sendable, Equatable {
    /// The file is damaged or not a state database: to be set aside.
    case content
    /// A newer version of the program has written it: not to be changed.
    case newer
    /// Another process writes the file.
    case inUse
    /// The disk, permissions: may be resolved later.
    case circumstances
  }

  let cause: Cause
  /// The operation with the path, and the reason given by SQLite or the system.
  package let description: String

  init(_ cause: Cause, _ description: String) {
    self.cause = cause
    self.description = description
  }

  /// Makes an error from the current `errno`.
  static func system(_ action: String, _ path: String) -> StoreError {
    let number = errno
    return StoreError(.circumstances, "cannot \(action) \(path): \(String(cString: strerror(number)))")
  }

  /// - Parameters:
  ///   - code: SQLite's (extended) result code.
  ///   - handle: the connection, which knows details; nil if there is none.
  static func sqlite(_ code: Int32, _ handle: OpaquePointer?, _ action: String, _ path: String) -> StoreError
  {
    var reason = String(cString: handle.map { sqlite3_errmsg($0) } ?? sqlite3_errstr(code))
    let primary = code & 0xFF
    if let handle, primary == SQLITE_IOERR || primary == SQLITE_CANTOPEN {
      // SQLite opens a file that it may not write for reading, and has no better reason than a bad descriptor then.
      var number = sqlite3_system_errno(handle)
      if number == EBADF, access(path, W_OK) != 0 { number = errno }
      if number != 0 { reason += ": \(String(cString: strerror(number)))" }
    }
    // SQLITE_ERROR: a statement does not match the tables.
    let isContent = [SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_FORMAT, SQLITE_ERROR].contains(primary)
    return StoreError(
      isContent ? .content : .circumstances, "cannot \(action) \(path): \(reason) (SQLite \(code))")
  }
}
