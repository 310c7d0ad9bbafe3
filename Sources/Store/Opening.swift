/// The result of opening a state database.
package enum Opening: Sendable, Equatable {
  /// An existing or new database.
  case opened
  /// The file was damaged; there is a new one.
  case setAside(SetAside)
  /// The file was written by a newer version of the program, and is not used. Changes are kept in memory only.
  case newer(reason: String)
  /// Another process writes the file: it was not read, and changes are lost.
  case inUse(reason: String)
  /// The file cannot be read: what it has is not known, and may be later.
  case unreadable(reason: String)
  /// The file cannot be written; it was read, or there is none. Changes are kept in memory until it can be written.
  case inMemoryOnly(reason: String)
}

/// A database file that could not be used and was renamed.
package struct SetAside: Sendable, Equatable {
  /// The file's new path.
  package let path: String
  package let reason: String
}
