import EventLoop

/// The attempts to connect to peripherals and to pair with them. They take turns: the kernel makes one link at a time.
@LoopActor final class ConnectionQueue {
  private let mutex = AsyncMutex()
  /// The attempt whose turn it is.
  private(set) var current: Attempt?
  /// The attempts that wait for services after their turn.
  private var resolving: [Attempt] = []
  /// Whether the central is stopping: attempts fail.
  var isClosed = false

  /// Whether an attempt has its turn or waits for it.
  var isBusy: Bool { mutex.isLocked }

  /// The peripherals with which attempts are in progress.
  var peripherals: Set<PeripheralID> { Set((resolving + [current].compactMap { $0 }).map(\.peripheral)) }

  /// The attempt in progress with a peripheral.
  func attempt(with peripheral: PeripheralID) -> Attempt? {
    resolving.first { $0.peripheral == peripheral } ?? (current?.peripheral == peripheral ? current : nil)
  }

  /// Whether the turn of an attempt with the peripheral is over, and the attempt is not.
  func isResolving(_ peripheral: PeripheralID) -> Bool {
    resolving.contains { $0.peripheral == peripheral }
  }

  /// Waits until it is the attempt's turn. Every call must be paired with ``end(_:)``.
  ///
  /// - Parameter isPreferred: preferred attempts alternate with the others.
  func begin(_ attempt: Attempt, isPreferred: Bool) async {
    await mutex.lock(isPreferred: isPreferred)
    current = attempt
  }

  /// The attempt goes on, and others have their turn.
  func endTurn(of attempt: Attempt) {
    resolving.append(attempt)
    nextTurn()
  }

  func end(_ attempt: Attempt) {
    if attempt === current { nextTurn() } else { resolving.removeAll { $0 === attempt } }
  }

  private func nextTurn() {
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
  /// Whether scanning is paused for it: a peripheral that was gone before has not gone with discovery.
  var pausesScan = false

  init(_ peripheral: PeripheralID, pairing: Pairing? = nil) {
    self.peripheral = peripheral
    self.pairing = pairing
  }

  /// Its own link is made now: an earlier one that has ended meanwhile does not count.
  func connects() { (linkedSince, shortestLink, wasEndedLocally) = (nil, nil, false) }

  func linkBegan() { if linkedSince == nil { linkedSince = .now } }

  func linkEnded() {
    guard let linkedSince else { return }
    let duration = linkedSince.duration(to: .now)
    shortestLink = shortestLink.map { min($0, duration) } ?? duration
    self.linkedSince = nil
  }
}
