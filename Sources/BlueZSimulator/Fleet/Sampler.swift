/// When a sensor takes its samples, whether anyone listens or not. Those that nobody can see are not simulated one by
/// one: ``settle(at:)`` passes over them.
struct Sampler: Sendable {
  /// Between two samples; a change counts after the next one.
  var interval: Duration
  /// When the next sample is taken.
  private(set) var next: ContinuousClock.Instant

  init(interval: Duration, next: ContinuousClock.Instant) {
    self.interval = interval
    self.next = next
  }

  /// Passes over the samples up to now, so that ``next`` lies ahead.
  mutating func settle(at now: ContinuousClock.Instant) {
    guard next <= now else { return }
    let missed = Int(now.duration(to: next) / interval * -1) + 1
    next += interval * missed
  }

  /// Takes the sample that is due, and plans the next one.
  mutating func take(at now: ContinuousClock.Instant) {
    next += interval
    // Held up for longer than a period: go on from here rather than make up for what is lost.
    if next <= now { next = now + interval }
  }
}
