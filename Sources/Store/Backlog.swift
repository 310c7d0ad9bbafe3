/// A change of a key.
enum Change: Sendable, Equatable {
  case put([UInt8])
  case delete
}

/// The changes that are not written yet, the newest for each key, and the state of the writer.
struct Backlog: Sendable {
  enum Writer: Sendable {
    /// No changes. A change, or closing, → running.
    case none
    /// A thread uses the database. No more changes → none; the store is closed → ended.
    case running
    /// The database is closed. Final.
    case ended
  }

  private(set) var writer = Writer.none
  private(set) var isClosing = false
  /// Whether a change that is not taken yet is urgent.
  private(set) var isUrgent = false
  private var waiting: [String: Change] = [:]
  /// Changes that are being written.
  private var writing: [String: Change] = [:]

  /// The number of keys whose last change is not known to be written.
  var count: Int { waiting.count + writing.count { waiting[$0.key] == nil } }

  /// Adds a change; ignored after ``close()``.
  /// - Returns: whether the caller has to start the writer.
  mutating func add(_ key: String, _ change: Change, isUrgent: Bool = false) -> Bool {
    guard !isClosing else { return false }
    waiting[key] = change
    if isUrgent { self.isUrgent = true }
    return startWriter()
  }

  /// The pending changes are to be written, and the database to be closed.
  /// - Returns: whether the caller has to start the writer.
  mutating func close() -> Bool {
    isClosing = true
    return startWriter()
  }

  private mutating func startWriter() -> Bool {
    guard writer == .none else { return false }
    writer = .running
    return true
  }

  /// The writer could not be started; the next change tries again.
  mutating func writerNotStarted() { writer = .none }

  /// The changes to write now, and whether to close the database afterwards.
  mutating func take() -> (changes: [String: Change], isLast: Bool) {
    writing = waiting
    (waiting, isUrgent) = ([:], false)
    return (writing, isClosing)
  }

  mutating func written() { writing = [:] }

  /// Returns the taken changes to the queue, except for keys that have changed since.
  mutating func failed() {
    waiting.merge(writing) { newer, _ in newer }
    writing = [:]
  }

  /// Ends the writer if there are no changes; returns whether it has ended.
  mutating func release() -> Bool {
    guard waiting.isEmpty, !isClosing else { return false }
    writer = .none
    return true
  }

  /// The writer has closed the database.
  mutating func ended() { writer = .ended }
}
