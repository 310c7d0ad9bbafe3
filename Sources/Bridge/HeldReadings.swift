import Configuration
import Devices

/// Readings of a new link while `info` still names another gateway, to be published when the device is online here. Pure.
struct HeldReadings {
  struct Entry {
    let reading: Reading
    /// The value of the program that it is of; nil: of the property.
    let value: ValueKey?
  }

  /// The number of held readings beyond which the oldest are dropped.
  private static let most = 1000
  private var entries: [Entry] = []

  /// - Returns: whether to publish the reading now. Otherwise one of a new link is held. One of the old link, which ends a little
  ///   after another gateway has taken the device over, is dropped.
  mutating func passes(_ entry: Entry, isOwnedByOther: Bool, _ session: SessionState) -> Bool {
    guard isOwnedByOther || !entries.isEmpty else { return true }
    guard session == .subscribing else { return false }
    if entries.count == Self.most { entries.removeFirst() }
    entries.append(entry)
    return false
  }

  mutating func sessionChanged(_ session: SessionState) {
    if session != .subscribing, session != .live { entries = [] }
  }

  mutating func take() -> [Entry] {
    defer { entries = [] }
    return entries
  }
}
