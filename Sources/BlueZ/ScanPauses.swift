import EventLoop

/// The pauses of scanning for connects, and the brief scans between them. Pure.
struct ScanPauses {
  /// Since when scanning has been paused for connects; nil when it is not.
  private var pausedSince: Moment?
  /// When discovery started; nil unless it runs.
  private var startedAt: Moment?
  /// When the last scan was paused that was long enough for all peripherals to be received; at first any.
  private var lastFullScan: Moment?
  private let fullScan: Duration
  /// Scanning is resumed briefly although connects are waiting.
  private(set) var isBriefScan = false

  /// - Parameter fullScan: how long it takes to receive all peripherals in range.
  init(fullScan: Duration) { self.fullScan = fullScan }

  /// A call that starts or stops discovery has ended.
  mutating func changed(isOn: Bool, at now: Moment) {
    startedAt = nil
    if isOn { (pausedSince, startedAt) = (nil, now) }
  }

  /// A pause begins, unless it has begun.
  mutating func begin(at now: Moment) {
    guard pausedSince == nil else { return }
    pausedSince = now
    if lastFullScan == nil || isFull(at: now) { lastFullScan = now }
    startedAt = nil
  }

  mutating func clear() { (pausedSince, startedAt, lastFullScan) = (nil, nil, nil) }

  private func isFull(at now: Moment) -> Bool { startedAt.map { $0.duration(to: now) >= fullScan } ?? false }

  /// Whether a connect has to wait for a brief scan, as scanning has been paused for `limit`.
  ///
  /// - Parameter isPreferred: otherwise scans that were too short do not count: where many advertise that were never
  ///   connected, the first one ends each scan, and hardly any other is received.
  func needsBriefScan(after limit: Duration, isPreferred: Bool, at now: Moment = .now) -> Bool {
    let since = isPreferred || isFull(at: now) ? pausedSince : lastFullScan
    return since.map { $0.duration(to: now) >= limit } ?? false
  }

  mutating func beginBriefScan() { isBriefScan = true }
  mutating func endBriefScan(at now: Moment = .now) {
    isBriefScan = false
    lastFullScan = now
  }
}
