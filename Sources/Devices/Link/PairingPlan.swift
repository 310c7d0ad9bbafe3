import Configuration

/// When a session pairs, and when it deletes a bond. A part of ``LinkMachine``.
struct PairingPlan: Sendable {
  /// A request to unpair sets it to `ask`.
  var mode: Configuration.PairingMode
  /// The next attempt to connect pairs first, whatever the mode.
  var isDue = false
  /// Links in a row that ended at once although bluetoothd has a bond.
  var refusedLinks = 0

  /// After this many the bond counts as lost: a bad link may end as fast, but seldom several times in a row.
  private static let mostRefusedLinks = 3

  init(_ mode: Configuration.PairingMode) { self.mode = mode }

  /// Whether the next attempt to connect pairs first, if there is no bond.
  var pairsFirst: Bool { isDue || mode == .always }

  mutating func connected() {
    isDue = false
    refusedLinks = 0
  }

  /// - Returns: whether the peripheral has lost the bond.
  mutating func linkWasRefused() -> Bool {
    refusedLinks += 1
    return isDue || refusedLinks >= Self.mostRefusedLinks
  }
}
