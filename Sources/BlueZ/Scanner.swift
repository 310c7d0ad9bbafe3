import EventLoop
import Log

/// What is being done about an adapter that cannot scan.
public struct Recovery: Sendable, Equatable {
  /// What is tried, again and again; what a person can do is in `health`.
  public enum Step: String, Sendable {
    /// Discovery is started again.
    case retry
    /// The adapter was powered off and on, and discovery is started again.
    case resetAdapter = "reset_adapter"
  }

  /// The last step taken.
  public internal(set) var step: Step
  /// Why the last attempt failed.
  public let reason: String
  package let since: Timestamp
  /// The failures in succession.
  public let count: Int
}

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
  /// Whether the next discovery is to report the signal strength of each advertisement, by a filter for strengths. Without
  /// it bluetoothd reports only changes of 8 dB: 5.82 for some adapters, 5.88 for all. With it the kernel drops
  /// advertisements without a strength: so after silence the other way is tried.
  private var wantsStrengths = true
  /// How long discovery may report no advertisement: longer after each restart that did not help.
  private(set) var longestSilence: Duration
  private var silenceBackOff: BackOff
  /// How often discovery was started again in succession, and still reported nothing, since the last reset for silence.
  private var silences = 0
  /// How often the adapter was reset for silence, and nothing was received since.
  private var resetsForSilence = 0
  /// How often discovery has failed in succession.
  private var failures = 0
  /// The recovery in progress; nil: discovery has not failed twice in succession, or is not needed.
  private(set) var recovery: Recovery?
  private var resetBackOff: BackOff
  /// The earliest time of the next reset, while discovery fails.
  private var nextReset = Moment.now
  /// A timer that checks in `on` that discovery is still active, and in `failed` starts it again; cancelled by the next change.
  var timer: LoopTimer?
  /// Since when scanning has been paused for connects; nil when it is not.
  private var pausedSince: Moment?
  /// When discovery started; nil unless it is `on`.
  private var startedAt: Moment?
  /// When the last scan was paused that was long enough for all peripherals to be received; at first any.
  private var lastFullScan: Moment?
  private let fullScan: Duration
  /// The last peripherals that were gone when they were to be connected to. One with private addresses has ever new ids.
  private var gone: [PeripheralID] = []
  private static let mostGone = 100
  /// Scanning is resumed briefly although connects are waiting.
  private(set) var isBriefScan = false

  /// - Parameters:
  ///   - resetBackOff: between the first failure and a reset of the adapter, and between two resets.
  ///   - silenceBackOff: how long discovery may report no advertisement.
  ///   - fullScan: how long it takes to receive all peripherals in range.
  init(resetBackOff: BackOff, silenceBackOff: BackOff, fullScan: Duration) {
    self.resetBackOff = resetBackOff
    self.silenceBackOff = silenceBackOff
    longestSilence = self.silenceBackOff.next()
    self.fullScan = fullScan
  }

  var isIdle: Bool { phase == .off || phase == .failed }

  func request(_ isRequested: Bool, forEach: Bool = false) {
    (self.isRequested, wantsEach) = (isRequested, forEach)
    guard !isRequested else { return }
    clearPauses()
    clearFailures()
  }

  // MARK: Changes

  /// Whether discovery must be started again, as it reports too much or too little.
  var needsRestart: Bool { phase == .on && isRequested && reportsEach != wantsEach }

  /// Discovery is being started.
  /// - Returns: whether it is to report the data of each advertisement, and its strength.
  func takeFilter() -> (data: Bool, strength: Bool) {
    reportsEach = wantsEach
    return (reportsEach, wantsStrengths)
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
    startedAt = nil
    if phase == .on { (pausedSince, startedAt) = (nil, now) }
  }

  /// - Parameter isReset: whether the central turns it on again at once: that does not end a failure.
  func adapterTurnedOff(isReset: Bool) {
    if phase == .on || phase == .failed { phase = .off }
    timer?.cancel()
    clearPauses()
    if !isReset { clearFailures() }
  }

  /// Discovery has reported advertisements since the last check.
  func heard() {
    (silences, resetsForSilence) = (0, 0)
    silenceBackOff.reset()
    longestSilence = silenceBackOff.next()
  }

  /// Discovery has reported nothing for ``longestSilence``, and is started again.
  /// - Parameter mayReset: whether the adapter may be reset; if not, a reset that is due remains so.
  /// - Returns: whether the adapter is to be reset, which may have stopped receiving: after 12 minutes, then each hour.
  func heardNothing(mayReset: Bool) -> Bool {
    wantsStrengths.toggle()
    longestSilence = silenceBackOff.next()
    silences += 1
    guard mayReset, silences >= (resetsForSilence == 0 ? 5 : 12) else { return false }
    (silences, resetsForSilence) = (0, resetsForSilence + 1)
    return true
  }

  /// Whether the adapter was reset for that before, and nothing was received since.
  var wasResetInVain: Bool { resetsForSilence > 1 }

  // MARK: Faults

  /// What a failure leads to.
  enum Reaction {
    /// The first failure in succession: the next attempt usually succeeds.
    case first
    /// The second failure in succession, which has begun the ``Scanner/recovery``.
    case problem
    /// A later failure in succession.
    case retry
    /// Like `retry`; the time until the next reset has passed, and the adapter may be reset.
    case reset
  }

  /// Discovery could not be started, or has ended although it should not. Another attempt always follows.
  /// - Parameter mayReset: whether the adapter may be reset.
  func failed(_ reason: String, mayReset: Bool) -> Reaction {
    failures += 1
    if failures > 1 {
      recovery = Recovery(
        step: recovery?.step ?? .retry, reason: reason, since: recovery?.since ?? .now, count: failures)
    }
    switch failures {
    case 1:
      nextReset = .now + resetBackOff.next()
      return .first
    case 2: return .problem
    case _ where mayReset && nextReset <= .now:
      nextReset = .now + resetBackOff.next()
      recovery?.step = .resetAdapter
      return .reset
    default: return .retry
    }
  }

  /// An advertisement was received, or the adapter has discovered for some time. Ignored unless this central has
  /// started discovery, as another program may have.
  /// - Returns: whether a failure ends by it.
  func worked() -> Bool {
    guard phase == .on, failures > 0 else { return false }
    clearFailures()
    return true
  }

  private func clearFailures() {
    failures = 0
    recovery = nil
    resetBackOff.reset()
  }

  /// Ends the delay after a failure: discovery may start again.
  func retry() { if phase == .failed { phase = .off } }

  // MARK: Pauses

  /// A connect begins: scanning is not allowed until it ends.
  func pause(at now: Moment = .now) {
    guard isRequested, pausedSince == nil else { return }
    pausedSince = now
    if lastFullScan == nil || isFull(at: now) { lastFullScan = now }
    startedAt = nil
  }

  private func isFull(at now: Moment) -> Bool { startedAt.map { $0.duration(to: now) >= fullScan } ?? false }

  /// Whether a connect has to wait for a brief scan, as scanning has been paused for `limit`.
  ///
  /// - Parameter isPreferred: otherwise scans that were too short do not count: where many advertise that were never
  ///   connected, the first one ends each scan, and hardly any other is received.
  func needsBriefScan(after limit: Duration, isPreferred: Bool, at now: Moment = .now) -> Bool {
    let since = isPreferred || isFull(at: now) ? pausedSince : lastFullScan
    return since.map { $0.duration(to: now) >= limit } ?? false
  }

  private func clearPauses() { (pausedSince, startedAt, lastFullScan) = (nil, nil, nil) }

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

  func beginBriefScan() { isBriefScan = true }
  func endBriefScan(at now: Moment = .now) {
    isBriefScan = false
    lastFullScan = now
  }
}
