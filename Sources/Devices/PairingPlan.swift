import BlueZ

/// When the gateway pairs with a device.
package enum PairingMode: Sendable, Equatable {
  /// Only by request.
  case never
  /// If no value can be read without pairing.
  case whenNeeded
  /// Before the first use of a link (`"pair": true` in config.json).
  case always

  /// - Parameter pair: the key of config.json.
  init(_ pair: Bool?) {
    switch pair {
    case true?: self = .always
    case false?: self = .never
    case nil: self = .whenNeeded
    }
  }
}

extension PairingMode: CustomStringConvertible {
  /// For the report of the command `check`.
  package var description: String {
    switch self {
    case .never: "by request"
    case .whenNeeded: "when needed"
    case .always: "always"
    }
  }
}

/// When a session pairs, and when it deletes a bond. A part of ``PeripheralSession``.
struct PairingPlan: Sendable {
  /// A request to unpair sets it to `never`.
  var mode: PairingMode
  /// Whether bluetoothd has a bond.
  var isPaired = false
  /// The next attempt to connect pairs first, whatever the mode.
  var isDue = false
  /// Whether the session has tried to pair by itself since it was last live.
  private(set) var hasTried = false
  /// Links in a row that ended at once although bluetoothd has a bond.
  private(set) var refusedLinks = 0

  /// After this many the bond counts as lost: a bad link may end as fast, but seldom several times in a row.
  private static let mostRefusedLinks = 3

  init(_ mode: PairingMode) { self.mode = mode }

  /// Whether the next attempt to connect pairs first.
  var pairsFirst: Bool { !isPaired && (isDue || mode == .always) }

  /// No value can be read.
  /// - Returns: whether the session pairs by itself.
  mutating func wasUnreadable() -> Bool {
    guard !isPaired, !hasTried, mode != .never else { return false }
    hasTried = true
    isDue = true
    return true
  }

  mutating func failed() { isDue = false }

  /// An attempt to connect failed in another way.
  mutating func linkFailed() { refusedLinks = 0 }

  mutating func connected() {
    isDue = false
    refusedLinks = 0
  }

  mutating func becameLive() { hasTried = false }

  /// - Returns: whether the peripheral has lost the bond.
  mutating func linkWasRefused() -> Bool {
    refusedLinks += 1
    return isDue || refusedLinks >= Self.mostRefusedLinks
  }

  /// A user wants to pair.
  /// - Returns: whether to delete the bond first, because the peripheral seems to have lost it.
  mutating func request(_ configured: PairingMode) -> Bool {
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
