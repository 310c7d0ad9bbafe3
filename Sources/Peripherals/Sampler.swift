import EventLoop

/// The timing of a sensor's samples, which does not depend on subscribers. Samples that nobody receives are not
/// simulated one by one: ``skip(to:)`` skips them.
struct Sampler: Sendable {
  /// The time between two samples; a change becomes effective after the next one.
  var interval: Duration
  /// The time of the next sample.
  private(set) var next: Moment

  /// Skips the samples up to now.
  mutating func skip(to now: Moment) {
    guard next <= now else { return }
    let missed = Int(now.duration(to: next) / interval * -1) + 1
    next = next + interval * missed
  }

  /// Takes the sample that is due, and schedules the next one.
  mutating func sample(at now: Moment) {
    next = next + interval
    // The sampler continues from now after a delay of more than an interval, instead of catching up.
    if next <= now { next = now + interval }
  }
}

extension Sampler {
  /// A sampler that takes its first sample an interval from now.
  init(_ interval: Duration, at now: Moment) { self.init(interval: interval, next: now + interval) }
}
