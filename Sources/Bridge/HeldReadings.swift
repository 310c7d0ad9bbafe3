import Devices

/// Readings of a new link while `info` still names another gateway, to be published when the device is online here. Pure.
struct HeldReadings {
  /// The number of held readings beyond which the oldest are dropped.
  private static let most = 1000
  private var readings: [Reading] = []

  /// - Returns: whether to publish the reading now. Otherwise one of a new link is held, also behind others, to keep their order.
  ///   One of the old link, which ends a little after another gateway has taken the device over, is dropped.
  mutating func passOrHold(_ reading: Reading, isOwnedByOther: Bool, _ session: SessionState) -> Bool {
    guard isOwnedByOther || !readings.isEmpty else { return true }
    guard session == .subscribing else { return false }
    if readings.count == Self.most { readings.removeFirst() }
    readings.append(reading)
    return false
  }

  mutating func sessionChanged(_ session: SessionState) {
    if session != .subscribing, session != .live { readings = [] }
  }

  mutating func take() -> [Reading] {
    defer { readings = [] }
    return readings
  }
}
