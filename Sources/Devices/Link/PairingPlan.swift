import Configuration

/// When a session pairs, and when it deletes a bond. A part of ``LinkMachine``.
struct PairingPlan: Sendable {
  /// A request to unpair sets it to `ask`.
  var mode: Configuration.PairingMode
  /// The next attempt to connect pairs first, whatever the mode.
  var isDue = false
  /// Links in a row that were not encrypted although bluetoothd has a bond.
  private var refusedLinks = 0
  /// Whether the peripheral may have lost the bond: a request to pair replaces it.
  var mayBeLost = false

  /// The number of refused links in a row after which the bond counts as lost: a bad link may end as fast as one that
  /// is refused, but seldom several times in a row.
  private static let mostRefusedLinks = 3

  init(_ mode: Configuration.PairingMode) { self.mode = mode }

  /// Whether the next attempt to connect pairs first, if there is no bond.
  var pairsFirst: Bool { isDue || mode == .always }

  mutating func connected() {
    isDue = false
    bondHolds()
  }

  /// What has happened to links so far is no sign of a lost bond.
  mutating func bondHolds() { (refusedLinks, mayBeLost) = (0, false) }

  /// - Returns: whether the peripheral has lost the bond.
  mutating func linkWasRefused() -> Bool {
    refusedLinks += 1
    mayBeLost = true
    return isDue || refusedLinks >= Self.mostRefusedLinks
  }
}
