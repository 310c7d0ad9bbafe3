import Configuration
import EventLoop

/// The values that the program of one device has sent, by their names in topics. At most 32 new
/// names become known each minute; once the table is full, a new one replaces the oldest that came only once, or one that has not
/// come for a day.
package struct ValueTable: Equatable, Sendable {
  package struct Entry: Equatable, Sendable {
    /// The name as the program writes it.
    var written: String
    /// Whether the first two values of the name were numbers, or two later ones in a row.
    var isNumber: Bool
    /// Whether each value of the name so far was true or false.
    var isBool: Bool
    /// Whether the name was received twice.
    var isConfirmed: Bool
    /// The unit of the first number on a link that has one behind it, or of two later ones in a row.
    var unit: String?
    /// The day on which the name was last received, counted from 1970-01-01.
    var lastSeen: Int

    /// Grows with each new name in this run.
    fileprivate var order = 0
    /// When the name was last received in this run.
    fileprivate var seen: Moment?
    fileprivate var isSeenOnLink = false
    /// How many of the last values were numbers, in a row; counted up to two.
    fileprivate var numbers = 0
    /// The unit of the last number, if it was another one than that of the values.
    fileprivate var otherUnit: String?

    package init(
      written: String, isNumber: Bool, isBool: Bool = false, isConfirmed: Bool, unit: String? = nil,
      lastSeen: Int
    ) {
      self.written = written
      self.isNumber = isNumber
      self.isBool = isBool
      self.isConfirmed = isConfirmed
      self.unit = unit
      self.lastSeen = lastSeen
    }

    /// Compares what is stored of two entries.
    package static func == (a: Entry, b: Entry) -> Bool {
      a.written == b.written && a.unit == b.unit
        && (a.isNumber, a.isBool, a.isConfirmed, a.lastSeen)
          == (b.isNumber, b.isBool, b.isConfirmed, b.lastSeen)
    }

    fileprivate mutating func receive(_ value: ProgramValue, at now: Moment, today: Int) {
      written = value.name.written
      isBool = isBool && value.isBool
      numbers = value.isNumber ? min(numbers + 1, 2) : 0
      if !isConfirmed { (isConfirmed, isNumber) = (true, isNumber && value.isNumber) }
      if numbers == 2 { isNumber = true }
      if value.isNumber, !isSeenOnLink || unit == nil { unit = value.unit }
      lastSeen = max(lastSeen, today)
      (seen, isSeenOnLink) = (now, true)
    }

    /// The number has another unit than those before it on the link. The second one in a row counts: the program has changed it.
    fileprivate mutating func isInOtherUnit(_ value: ProgramValue) -> Bool {
      guard isSeenOnLink, let unit, let new = value.unit, new != unit else {
        if value.isNumber { otherUnit = nil }
        return false
      }
      if new == otherUnit {
        (self.unit, otherUnit) = (new, nil)
        return false
      }
      otherUnit = new
      return true
    }

    /// Whether the name was not received for a day.
    fileprivate func isOld(at now: Moment, today: Int) -> Bool {
      today - lastSeen > 1 || seen.map { now >= $0 + .seconds(86_400) } ?? false
    }
  }

  enum Sighting: Equatable, Sendable {
    case accepted
    /// Two names of the program are the same in topics: the first one counts on this link.
    case sameKey(as: String)
    /// The value is not a number, although the values of its name are numbers.
    case noNumber
    /// The number has another unit than the values of its name.
    case otherUnit
    case tooMany
  }

  /// The maximum number of names of a device, and of new names in a minute.
  package static let capacity = 32
  /// The maximum length of a name as the program writes it, in bytes.
  package static let longestName = 256
  /// The days without being received after which a value is removed.
  static let mostDaysUnseen = 30
  private static let window = Duration.seconds(60)

  private(set) var entries: [ValueKey: Entry]
  /// How many times what is stored of an entry was changed.
  private(set) var changes = 0
  private var order = 0
  private var windowEnd: Moment?
  private var newNames = 0

  init(_ entries: [ValueKey: Entry] = [:]) { self.entries = entries }

  mutating func linkUp() { for key in entries.keys { entries[key]?.isSeenOnLink = false } }

  /// - Parameter isNumber: whether it is one by the configuration.
  mutating func receive(_ value: ProgramValue, isNumber: Bool = false, at now: Moment, today: Int) -> Sighting
  {
    let key = value.name.key
    if let index = entries.index(forKey: key) {
      let before = entries.values[index]
      guard !before.isSeenOnLink || before.written == value.name.written else {
        return .sameKey(as: before.written)
      }
      if entries.values[index].isInOtherUnit(value) { return .otherUnit }
      entries.values[index].receive(value, at: now, today: today)
      if entries.values[index] != before { changes += 1 }
      return value.isNumber || !isNumber && !entries.values[index].isNumber ? .accepted : .noNumber
    }
    guard value.isNumber || !isNumber else { return .noNumber }
    guard admitsNewName(at: now, today: today) else { return .tooMany }
    order += 1
    var entry = Entry(
      written: value.name.written, isNumber: value.isNumber, isBool: value.isBool, isConfirmed: false,
      unit: value.unit,
      lastSeen: today)
    (entry.order, entry.seen, entry.isSeenOnLink) = (order, now, true)
    entry.numbers = value.isNumber ? 1 : 0
    entries[key] = entry
    changes += 1
    return .accepted
  }

  private mutating func admitsNewName(at now: Moment, today: Int) -> Bool {
    if windowEnd.map({ now >= $0 }) ?? true { (windowEnd, newNames) = (now + Self.window, 0) }
    guard newNames < Self.capacity else { return false }
    if entries.count >= Self.capacity {
      let once = entries.filter { !$0.value.isConfirmed }.min { $0.value.order < $1.value.order }
      let old = entries.filter { $0.value.isOld(at: now, today: today) }.min {
        $0.value.lastSeen < $1.value.lastSeen
      }
      guard let replaced = once ?? old else { return false }
      entries[replaced.key] = nil
    }
    newNames += 1
    return true
  }

  /// - Returns: whether there was such a value.
  mutating func remove(_ key: ValueKey) -> Bool { entries.removeValue(forKey: key) != nil }

  /// - Parameter uncounted: see ``DeviceManager/expireDevices(today:)``.
  mutating func removeUnseen(today: Int, uncounted: Int = 0) {
    if uncounted != 0 {
      for (key, entry) in entries { entries[key]?.lastSeen = max(0, min(entry.lastSeen + uncounted, today)) }
    }
    entries = entries.filter { today - $0.value.lastSeen <= Self.mostDaysUnseen }
  }

  /// Takes over what another gateway, which has the device, knows.
  mutating func replace(with other: [ValueKey: Entry]) {
    entries = [:]
    for (key, entry) in other.sorted(by: { $0.key < $1.key }).prefix(Self.capacity) { entries[key] = entry }
  }
}
