import EventLoop

extension AdapterChoice {
  /// The device as one adapter knows it.
  struct Candidate {
    /// The adapter can be used.
    var isOn: Bool
    /// When it could last be used, unless it can now.
    var offSince: Moment?
    /// bluetoothd has an object for the device.
    var isKnown = false
    /// When bluetoothd removed that object last.
    var lostAt: Moment?
    var isConnected = false
    /// The adapter has a bond with the device; kept for a while if the adapter goes.
    var isPaired = false
    /// bluetoothd reports a signal strength, which may be old.
    var hasRSSI = false
    /// The last advertisement that the adapter received: its number, and its strength in dBm.
    var last: (number: Int, rssi: Int, at: Moment)?
    /// Attempts to connect since the last link that had readings, and when the last one was begun.
    var attempts = 0
    var lastAttempt: Moment?

    /// A bonded device can be connected to although no advertisement of it was received.
    var isInRange: Bool { isOn && isKnown && (hasRSSI || isConnected || isPaired) }

    func isReceived(at now: Moment) -> Bool {
      isOn && isKnown && (hasRSSI || isConnected || level(at: now) != nil)
    }

    /// Whether the device belongs to the adapter. An adapter that has gone may come back with its bond.
    /// - Parameter limit: how long the bond of an adapter that has gone counts.
    func hasBond(at now: Moment, limit: Duration) -> Bool {
      guard isPaired else { return false }
      guard let offSince, !isOn else { return isKnown }
      return offSince.duration(to: now) < limit
    }

    func level(at now: Moment) -> Int? {
      guard let last, last.at.duration(to: now) < AdapterChoice.signalLimit else { return nil }
      return last.rssi
    }

    func attempts(at now: Moment) -> Int {
      guard let lastAttempt, lastAttempt.duration(to: now) < AdapterChoice.attemptLimit else { return 0 }
      return attempts
    }

    mutating func attempt(at now: Moment) {
      attempts = attempts(at: now) + 1
      lastAttempt = now
    }

    mutating func outOfRange() {
      hasRSSI = false
      last = nil
      isConnected = false
    }
  }
}
