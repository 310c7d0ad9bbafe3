import EventLoop

/// The state of discovery. Calls are made one at a time; changes requested meanwhile follow.
final class Scanner {
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
  /// Why bluetoothd does not scan although it should; nil: it does, or need not.
  private(set) var problem: String?
  /// Until the adapter is reset for that.
  private var resetBackOff: BackOff
  private var nextReset = Moment.now
  /// Checks that discovery is still active.
  private var check: LoopTimer?
  /// Since when scanning has been paused for connects; nil when it is not.
  private var pausedSince: Moment?
  /// Scanning is resumed briefly although connects are waiting.
  private(set) var isBriefScan = false

  /// - Parameter resetBackOff: between the first failure and a reset of the adapter, and between two resets.
  init(resetBackOff: BackOff) { self.resetBackOff = resetBackOff }

  var isIdle: Bool {
    switch phase {
    case .off, .failed: true
    case .on, .changing: false
    }
  }

  func request(_ isRequested: Bool) {
    self.isRequested = isRequested
    if !isRequested { problem = nil }
  }

  // MARK: Changes

  /// Begins the change that is necessary.
  /// - Parameter isAllowed: whether the adapter may scan now.
  /// - Returns: nil: none.
  func beginChange(isAllowed: Bool) -> Change? {
    switch (phase, isRequested && isAllowed) {
    case (.off, true):
      beginChange()
      return .start
    case (.on, false):
      if isRequested { pausedSince = .now }
      beginChange()
      return .stop
    case (.failed, false):
      phase = .off
      return nil
    case (.off, false), (.on, true), (.changing, _), (.failed, true):
      return nil
    }
  }

  /// bluetoothd has stopped scanning by itself: StopDiscovery follows.
  func beginRestart() { beginChange() }

  private func beginChange() {
    phase = .changing
    check?.cancel()
  }

  /// The change has ended in this phase.
  func endChange(in phase: Phase) {
    self.phase = phase
    if case .on = phase { pausedSince = nil }
  }

  func adapterTurnedOff() {
    switch phase {
    case .on, .failed: phase = .off
    case .off, .changing: break
    }
    check?.cancel()
  }

  // MARK: Faults

  /// What a failure leads to.
  enum Reaction {
    /// It is the first in succession: to be logged.
    case log
    /// It has lasted for long.
    case reset
    case retry
  }

  /// Discovery could not be started, or has ended without a signal.
  func failed(_ reason: String) -> Reaction {
    let isFirst = problem == nil
    problem = reason
    guard isFirst || nextReset <= .now else { return .retry }
    nextReset = .now + resetBackOff.next()
    return isFirst ? .log : .reset
  }

  /// bluetoothd reports that it discovers.
  /// - Returns: whether discovery had failed before.
  func discoveryBegan() -> Bool {
    // In other phases another program may have started it.
    guard case .on = phase, problem != nil else { return false }
    problem = nil
    resetBackOff.reset()
    return true
  }

  /// After a failure: it is time to start again.
  func retry() { if case .failed = phase { phase = .off } }

  /// - Parameter timer: at its end it is checked whether bluetoothd still scans.
  func check(after timer: LoopTimer) { check = timer }

  // MARK: Pauses

  /// Whether scanning has been paused for connects for at least `limit`.
  func isPaused(for limit: Duration) -> Bool {
    guard let pausedSince else { return false }
    return pausedSince.duration(to: .now) >= limit
  }

  func beginBriefScan() { isBriefScan = true }
  func endBriefScan() { isBriefScan = false }
}
