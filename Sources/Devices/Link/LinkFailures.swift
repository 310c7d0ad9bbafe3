/// Counts links in a row that failed in the same way. A part of ``LinkMachine``.
struct LinkFailures: Sendable {
  enum Kind {
    /// It probably requires pairing: no value could be read, or it was said so.
    case unreadable
    /// Services were missing.
    case unsuitable
    /// Reading or subscribing was refused.
    case refused
    /// The link was live, and there was no reading.
    case silent
    /// The link ended before all was read and subscribed to, and there was no bond.
    case ended
  }

  private var counts: [Kind: Int] = [:]

  /// - Returns: how many there are in a row now.
  mutating func count(_ kind: Kind) -> Int {
    counts[kind, default: 0] += 1
    return counts[kind, default: 0]
  }

  /// A link has not failed in these ways.
  mutating func forget(_ kinds: Kind...) { for kind in kinds { counts[kind] = nil } }
}
