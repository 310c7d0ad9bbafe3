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
  /// How often StartDiscovery failed in succession; only the first failure is logged.
  private var failures = 0
  /// Checks that discovery is still active.
  private var check: LoopTimer?
  /// Since when scanning has been paused for connects; nil when it is not.
  private var pausedSince: Moment?
  /// Scanning is resumed briefly although connects are waiting.
  private(set) var isBriefScan = false

  var isIdle: Bool {
    switch phase {
    case .off, .failed: true
    case .on, .changing: false
    }
  }

  func request(_ isRequested: Bool) { self.isRequested = isRequested }

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

  /// StartDiscovery has failed.
  /// - Returns: whether it is the first failure in succession.
  func startFailed() -> Bool {
    failures += 1
    return failures == 1
  }

  /// StartDiscovery has succeeded.
  /// - Returns: whether it had failed before.
  func startSucceeded() -> Bool {
    defer { failures = 0 }
    return failures > 0
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
