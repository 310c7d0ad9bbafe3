/// What is to be done about a key.
enum Change: Sendable, Equatable {
  case put([UInt8])
  case delete
}

/// The changes that are not on the disk yet, the newest for each key, and who writes them.
struct Backlog: Sendable {
  enum Writer: Sendable {
    /// Nobody: nothing waits. A change, or closing, → running.
    case none
    /// A thread has the database. When nothing waits any more → none; when the store is closed → ended.
    case running
    /// The database is closed; nothing is written any more.
    case ended
  }

  private(set) var writer = Writer.none
  private(set) var isClosing = false
  private var waiting: [String: Change] = [:]
  /// What the writer is about.
  private var inHand: [String: Change] = [:]

  /// The number of keys whose last change is not known to be on the disk.
  var count: Int { waiting.count + inHand.count { waiting[$0.key] == nil } }

  /// Something changed. After ``close()`` it counts no more.
  /// - Returns: whether the caller has to start the writer.
  mutating func add(_ key: String, _ change: Change) -> Bool {
    guard !isClosing else { return false }
    waiting[key] = change
    return claim()
  }

  /// What waits is to be written, and the database to be closed.
  /// - Returns: whether the caller has to start the writer.
  mutating func close() -> Bool {
    isClosing = true
    return claim()
  }

  private mutating func claim() -> Bool {
    guard writer == .none else { return false }
    writer = .running
    return true
  }

  /// The writer could not be started: the next change tries again.
  mutating func unclaim() { writer = .none }

  /// What the writer is to write now, and whether it is to close the database afterwards.
  mutating func take() -> (changes: [String: Change], isLast: Bool) {
    inHand = waiting
    waiting = [:]
    return (inHand, isClosing)
  }

  mutating func written() { inHand = [:] }

  /// What was taken waits again, except for what has changed meanwhile.
  mutating func failed() {
    waiting.merge(inHand) { newer, _ in newer }
    inHand = [:]
  }

  /// Whether the writer may go, and is gone then.
  mutating func release() -> Bool {
    guard waiting.isEmpty, !isClosing else { return false }
    writer = .none
    return true
  }

  /// The writer has closed the database.
  mutating func ended() { writer = .ended }
}
