/// Counts links in a row that failed in the same way, and what such a row means. A part of ``LinkMachine``.
struct LinkFailures: Sendable {
  /// No value could be read.
  private var unreadable = 0
  /// Services were missing.
  private var unsuitable = 0
  /// Reading or subscribing was refused.
  private var refused = 0
  /// The link was live, and there was no reading.
  private var silent = 0
  /// The link ended before all was read and subscribed to, and there was no bond.
  private var ended = 0

  /// A peripheral that refuses to pair ends the link when bluetoothd asks it to, after the first read. A bad link
  /// seldom ends so often at this point.
  private static let mostEnded = 5

  /// A value could be read, or could not for another reason.
  mutating func answered() {
    unreadable = 0
    ended = 0
  }

  mutating func becameLive() {
    answered()
    unsuitable = 0
    refused = 0
  }

  /// - Returns: whether it probably requires pairing.
  mutating func wasUnreadable() -> Bool {
    unreadable += 1
    return unreadable > 1
  }

  /// The link has ended before all was read and subscribed to.
  /// - Returns: whether it probably refuses to pair.
  mutating func endedEarly(isPaired: Bool) -> Bool {
    if !isPaired { ended += 1 }
    return ended >= Self.mostEnded
  }

  /// Services are missing. bluetoothd may have cached them from an earlier program of the peripheral: if a service has the
  /// same handles, it takes the characteristics from its cache.
  /// - Returns: whether to delete the cache.
  mutating func wasUnsuitable() -> Bool {
    unsuitable += 1
    return unsuitable == 1
  }

  /// Reading or subscribing was refused, which may be due to the cache, too.
  /// - Returns: whether to delete the cache.
  mutating func wasRefused() -> Bool {
    refused += 1
    return refused == 2
  }

  /// There was a reading on the link.
  mutating func hadReading() { silent = 0 }

  /// The live link was ended without a reading.
  /// - Returns: whether to delete the cache, as of one whose services are missing.
  mutating func wasSilent() -> Bool {
    silent += 1
    return silent == 1
  }
}
