/// How long to wait before the next attempt: longer after each that failed, up to a limit, and never quite the
/// same, so that many who failed together do not try again together.
struct BackOff: Sendable, Equatable {
  /// The first wait.
  let base: Duration
  /// By what each wait is longer than the one before.
  let factor: Double
  /// The longest wait.
  let cap: Duration
  /// The share of a wait that is left to chance: 0 none, 1 all of it.
  let jitter: Double

  private var current: Duration

  init(base: Duration, factor: Double = 2, cap: Duration, jitter: Double = 0.3) {
    precondition(base > .zero && base <= cap && factor >= 1 && (0...1).contains(jitter))
    self.base = base
    self.factor = factor
    self.cap = cap
    self.jitter = jitter
    self.current = base
  }

  /// The wait before the next attempt: between `1 - jitter` of its full length and all of it.
  mutating func next(using generator: inout some RandomNumberGenerator) -> Duration {
    let full = current
    // Compared before it is multiplied, so that no number of failures overflows.
    current = current >= cap / factor ? cap : current * factor
    return full * (1 - Double.random(in: 0...1, using: &generator) * jitter)
  }

  mutating func next() -> Duration {
    var generator = SystemRandomNumberGenerator()
    return next(using: &generator)
  }

  /// Something succeeded: the next wait is the first again.
  mutating func reset() {
    current = base
  }
}
