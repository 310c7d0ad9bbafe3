import Configuration

/// When a session pairs, and when it deletes a bond. A part of ``PeripheralSession``.
struct PairingPlan: Sendable {
  /// A request to unpair sets it to `ask`.
  var mode: Configuration.PairingMode
  /// Whether bluetoothd has a bond.
  var isPaired = false
  /// The next attempt to connect pairs first, whatever the mode.
  var isDue = false
  /// Links in a row that ended at once although bluetoothd has a bond.
  private(set) var refusedLinks = 0

  /// After this many the bond counts as lost: a bad link may end as fast, but seldom several times in a row.
  private static let mostRefusedLinks = 3

  init(_ mode: Configuration.PairingMode) { self.mode = mode }

  /// Whether the next attempt to connect pairs first.
  var pairsFirst: Bool { !isPaired && (isDue || mode == .always) }

  mutating func failed() { isDue = false }

  /// An attempt to connect failed in another way.
  mutating func linkFailed() { refusedLinks = 0 }

  mutating func connected() {
    isDue = false
    refusedLinks = 0
  }

  /// - Returns: whether the peripheral has lost the bond.
  mutating func linkWasRefused() -> Bool {
    refusedLinks += 1
    return isDue || refusedLinks >= Self.mostRefusedLinks
  }

  /// A user wants to pair.
  /// - Returns: whether to delete the bond first, because the peripheral seems to have lost it.
  mutating func request(_ configured: Configuration.PairingMode) -> Bool {
    mode = configured
    isDue = true
    return isPaired && refusedLinks > 0
  }

  /// The bond is deleted.
  mutating func forget() {
    isPaired = false
    refusedLinks = 0
  }
}
