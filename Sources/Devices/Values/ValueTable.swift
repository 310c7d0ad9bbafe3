import Configuration
import EventLoop
import GATT

/// The values that the program of one device has sent, by their names in topics. Of the names of a program that sends
/// ever new ones, a few become known each minute, and take each other's places.
struct ValueTable: Equatable, Sendable {
  struct Entry: Equatable, Sendable {
    /// The name as the program writes it.
    var written: String
    /// Whether it is a number, by its first two values.
    var isNumber: Bool
    /// Whether it was received twice.
    var isConfirmed: Bool
    /// The day on which it was last received, counted from 1970-01-01.
    var lastSeen: Int
    /// Grows with each new name in this run.
    var order = 0

    /// As it is stored.
    static func == (a: Entry, b: Entry) -> Bool {
      (a.written, a.isNumber, a.isConfirmed, a.lastSeen) == (b.written, b.isNumber, b.isConfirmed, b.lastSeen)
    }
  }

  enum Sighting: Equatable, Sendable {
    case accepted
    /// Two names of the program are the same in topics: the first one counts on this link.
    case sameKey(as: String)
    case tooMany
  }

  /// Names of a device, and new names in a minute.
  static let capacity = 32
  /// In bytes, as the program writes it.
  package static let longestName = 256
  /// After so many days without being received a value is removed.
  static let mostDaysUnseen = 30
  private static let window = Duration.seconds(60)

  private(set) var entries: [ValueKey: Entry]
  /// The names that were received on this link.
  private var seen: Set<ValueKey> = []
  private var order = 0
  private var windowEnd: Moment?
  private var newNames = 0

  init(_ entries: [ValueKey: Entry] = [:]) { self.entries = entries }

  mutating func linkUp() { seen = [] }

  mutating func receive(_ line: ValueLine, at now: Moment, today: Int) -> Sighting {
    let isNumber = if case .text = line.value { false } else { true }
    if var entry = entries[line.key] {
      if entry.written != line.name, seen.contains(line.key) { return .sameKey(as: entry.written) }
      entry.written = line.name
      if !entry.isConfirmed { (entry.isConfirmed, entry.isNumber) = (true, entry.isNumber && isNumber) }
      entry.lastSeen = max(entry.lastSeen, today)
      entries[line.key] = entry
    } else {
      guard admitsNewName(at: now) else { return .tooMany }
      order += 1
      entries[line.key] = Entry(
        written: line.name, isNumber: isNumber, isConfirmed: false, lastSeen: today, order: order)
    }
    seen.insert(line.key)
    return .accepted
  }

  private mutating func admitsNewName(at now: Moment) -> Bool {
    if windowEnd.map({ now >= $0 }) ?? true { (windowEnd, newNames) = (now + Self.window, 0) }
    guard newNames < Self.capacity else { return false }
    if entries.count >= Self.capacity {
      let once = entries.filter { !$0.value.isConfirmed }.min { $0.value.order < $1.value.order }
      guard let once else { return false }
      entries[once.key] = nil
    }
    newNames += 1
    return true
  }

  /// - Returns: whether there was such a value.
  mutating func remove(_ key: ValueKey) -> Bool { entries.removeValue(forKey: key) != nil }

  mutating func removeUnseen(today: Int) {
    entries = entries.filter { today - $0.value.lastSeen <= Self.mostDaysUnseen }
  }

  /// Another gateway, which has the device, knows these.
  mutating func replace(with other: [ValueKey: Entry]) {
    entries = [:]
    for (key, entry) in other.sorted(by: { $0.key < $1.key }).prefix(Self.capacity) { entries[key] = entry }
  }
}
