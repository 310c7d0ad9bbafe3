import EventLoop

/// The attempts to connect to peripherals and to pair with them, one at a time.
@LoopActor final class ConnectionQueue {
  private let mutex = AsyncMutex()
  /// The attempt in progress.
  private(set) var current: Attempt?
  /// Whether the central is stopping: attempts fail.
  var isClosed = false

  /// Whether an attempt is in progress or waiting.
  var isBusy: Bool { mutex.isLocked }

  /// Waits until no other attempt is in progress. Every call must be paired with ``end()``.
  ///
  /// - Parameter isPreferred: preferred attempts alternate with the others.
  func begin(_ attempt: Attempt, isPreferred: Bool) async {
    await mutex.lock(isPreferred: isPreferred)
    current = attempt
  }

  /// The attempt in progress has ended.
  func end() {
    current = nil
    mutex.unlock()
  }
}

/// An attempt to connect to a peripheral, or to pair with it.
@LoopActor final class Attempt {
  let peripheral: PeripheralID
  /// The pairing that is requested; nil for a connect alone.
  let pairing: Pairing?
  private var linkedSince: Moment?
  /// How long the link lasted, once it has ended; the shortest, if there were several.
  private(set) var shortestLink: Duration?
  /// Whether bluetoothd has ended a link by itself (it says so from 5.83 on).
  var wasEndedLocally = false

  init(_ peripheral: PeripheralID, pairing: Pairing? = nil) {
    self.peripheral = peripheral
    self.pairing = pairing
  }

  func linkBegan() { if linkedSince == nil { linkedSince = .now } }

  func linkEnded() {
    guard let linkedSince else { return }
    let duration = linkedSince.duration(to: .now)
    shortestLink = shortestLink.map { min($0, duration) } ?? duration
    self.linkedSince = nil
  }
}
