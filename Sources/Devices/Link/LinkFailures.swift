/// Counts links in a row that failed in the same way, and what such a row means. A part of ``LinkMachine``.
struct LinkFailures: Sendable {
  /// No value could be read.
  private var unreadable = 0
  /// The services were not usable.
  private var unusable = 0
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
    unusable = 0
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

  /// The services are not usable. bluetoothd may have cached them from an earlier program of the peripheral: if a
  /// service has the same handles, it takes the characteristics from its cache.
  /// - Returns: whether to delete the cache: on the `links`-th unusable link in a row.
  mutating func wasUnusable(deletingAfter links: Int = 1) -> Bool {
    unusable += 1
    return unusable == links
  }

  /// There was a reading on the link.
  mutating func hadReading() { silent = 0 }

  /// The live link was ended without a reading.
  /// - Returns: whether to delete the cache, as of one that is not usable.
  mutating func wasSilent() -> Bool {
    silent += 1
    return silent == 1
  }
}
