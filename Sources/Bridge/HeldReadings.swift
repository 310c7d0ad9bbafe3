import Devices

/// Readings of a new link while `info` still names another gateway, to be published when the device is online here. Pure.
struct HeldReadings {
  /// The number of held readings beyond which the oldest are dropped.
  private static let most = 1000
  private var readings: [Reading] = []

  var isEmpty: Bool { readings.isEmpty }

  /// - Returns: whether the reading is not to be published now: later, or not at all.
  mutating func keeps(_ reading: Reading, isOwnedByOther: Bool, _ session: SessionState) -> Bool {
    guard isOwnedByOther || !readings.isEmpty else { return false }
    // Otherwise it is of the old link, which ends a little after another gateway has taken the device over.
    guard session == .subscribing else { return true }
    if readings.count == Self.most { readings.removeFirst() }
    readings.append(reading)
    return true
  }

  mutating func sessionChanged(_ session: SessionState) {
    if session != .subscribing, session != .live { readings = [] }
  }

  mutating func take() -> [Reading] {
    defer { readings = [] }
    return readings
  }
}
