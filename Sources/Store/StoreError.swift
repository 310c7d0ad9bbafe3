import CSQLite
import Glibc

/// Something that could not be done with a file of the store.
package struct StoreError: Error, Sendable, Equatable, CustomStringConvertible {
  /// What the file itself is to blame for, and what the world around it is.
  enum Cause: Sendable, Equatable {
    /// It is no state database, or a damaged one: it has to go out of the way.
    case content
    /// A newer version of the program has written it: it is left alone.
    case newer
    /// The disk, its rights, another process: it may be better later.
    case circumstances
  }

  let cause: Cause
  /// What was tried, with the path, and why it failed, in the words of SQLite or of the system.
  package let description: String

  init(_ cause: Cause, _ description: String) {
    self.cause = cause
    self.description = description
  }

  /// The present `errno`.
  static func system(_ action: String, _ path: String) -> StoreError {
    let number = errno
    return StoreError(.circumstances, "cannot \(action) \(path): \(String(cString: strerror(number)))")
  }

  /// - Parameters:
  ///   - code: SQLite's (extended) result code.
  ///   - handle: the connection that it is from, which knows more; nil when there is none.
  static func sqlite(_ code: Int32, _ handle: OpaquePointer?, _ action: String, _ path: String) -> StoreError
  {
    var reason = String(cString: handle.map { sqlite3_errmsg($0) } ?? sqlite3_errstr(code))
    let primary = code & 0xFF
    if let handle, primary == SQLITE_IOERR || primary == SQLITE_CANTOPEN {
      let number = sqlite3_system_errno(handle)
      if number != 0 { reason += ": \(String(cString: strerror(number)))" }
    }
    // SQLITE_ERROR is what a statement gets that does not fit the tables.
    let isContent = [SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_FORMAT, SQLITE_ERROR].contains(primary)
    return StoreError(
      isContent ? .content : .circumstances, "cannot \(action) \(path): \(reason) (SQLite \(code))")
  }
}
