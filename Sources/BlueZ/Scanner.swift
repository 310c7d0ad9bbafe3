import EventLoop

/// The state of discovery. Calls are made one at a time; changes requested meanwhile follow.
@LoopActor final class Scanner {
  enum Phase {
    /// No discovery → changing.
    case off
    /// StartDiscovery or StopDiscovery is in progress → on, off, failed.
    case changing
    /// Discovering → changing; off when the adapter goes.
    case on
    /// StartDiscovery failed; to be retried → off.
    case failed
  }

  enum Change {
    case start, stop
  }

  private(set) var phase = Phase.off
  /// Whether the user of the central wants to scan.
  private(set) var isRequested = false
  /// Whether the user of the central wants to know of each advertisement.
  private(set) var wantsEach = false
  /// Whether the discovery that was started last reports each advertisement.
  private var reportsEach = false
  var silence: SilenceWatch
  var pauses: ScanPauses
  var failures: ScanFailures
  /// A timer that checks in `on` that discovery is still active, and in `failed` starts it again; cancelled by the next change.
  var timer: LoopTimer?
  /// The last peripherals that were gone when they were to be connected to. One with private addresses has ever new ids.
  private var gone: [PeripheralID] = []
  private static let mostGone = 100

  init(resetBackOff: BackOff, silenceBackOff: BackOff, fullScan: Duration) {
    failures = ScanFailures(resetBackOff: resetBackOff)
    silence = SilenceWatch(silenceBackOff)
    pauses = ScanPauses(fullScan: fullScan)
  }

  var isIdle: Bool { phase == .off || phase == .failed }

  func request(_ isRequested: Bool, forEach: Bool = false) {
    (self.isRequested, wantsEach) = (isRequested, forEach)
    guard !isRequested else { return }
    pauses.clear()
    failures.clear()
  }

  // MARK: Changes

  /// Whether discovery must be started again, as it reports too much or too little.
  var needsRestart: Bool { phase == .on && isRequested && reportsEach != wantsEach }

  /// Discovery is being started.
  /// - Returns: whether it is to report the data of each advertisement, and its strength.
  func takeFilter() -> (data: Bool, strength: Bool) {
    reportsEach = wantsEach
    return (reportsEach, silence.wantsStrengths)
  }

  /// Begins the change that is necessary.
  /// - Parameter isAllowed: whether the adapter may scan now.
  /// - Returns: nil: none.
  func beginChange(isAllowed: Bool) -> Change? {
    switch (phase, isRequested && isAllowed) {
    case (.off, true):
      beginChange()
      return .start
    case (.on, false):
      // A start that was in progress when the pause began has ended it.
      pause()
      beginChange()
      return .stop
    case (.failed, false):
      phase = .off
      return nil
    case (.off, false), (.on, true), (.changing, _), (.failed, true):
      return nil
    }
  }

  /// Discovery is started or stopped.
  func beginChange() {
    phase = .changing
    timer?.cancel()
  }

  /// The change has ended in this phase.
  func endChange(in phase: Phase, at now: Moment = .now) {
    self.phase = phase
    pauses.changed(isOn: phase == .on, at: now)
  }

  /// - Parameter isReset: whether the central turns it on again at once: that does not end a failure.
  func adapterTurnedOff(isReset: Bool) {
    if phase == .on || phase == .failed { phase = .off }
    timer?.cancel()
    pauses.clear()
    if !isReset { failures.clear() }
  }

  /// An advertisement was received, or the adapter has discovered for some time. Ignored unless this central has
  /// started discovery, as another program may have.
  /// - Returns: whether a failure ends by it.
  func worked() -> Bool {
    guard phase == .on, !failures.isEmpty else { return false }
    failures.clear()
    return true
  }

  /// Ends the delay after a failure: discovery may start again.
  func retry() { if phase == .failed { phase = .off } }

  /// A connect begins: scanning is not allowed until it ends.
  func pause(at now: Moment = .now) {
    if isRequested { pauses.begin(at: now) }
  }

  /// The peripheral was gone when it was to be connected to, after discovery had stopped.
  func noteGone(_ id: PeripheralID) {
    gone.append(id)
    if gone.count > Self.mostGone { gone.removeFirst() }
  }

  /// Whether the peripheral was gone at the last attempt: the next one begins like any other.
  func takeGone(_ id: PeripheralID) -> Bool {
    guard let index = gone.firstIndex(of: id) else { return false }
    gone.remove(at: index)
    return true
  }

  /// bluetoothd has ended: its ids are no longer valid.
  func forgetGone() { gone = [] }
}
