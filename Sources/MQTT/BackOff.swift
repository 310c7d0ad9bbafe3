/// How long to wait before the next attempt: a random part of a span that doubles with each failure, so that
/// a returning broker is found soon and not run over by all its clients at once ("full jitter").
public struct BackOff: Sendable {
  public struct Limits: Sendable, Equatable {
    /// The span before the second attempt, and the longest there is.
    public var initial: Duration
    public var maximum: Duration

    public init(initial: Duration = .seconds(1), maximum: Duration = .seconds(60)) {
      self.initial = initial
      self.maximum = maximum
    }
  }

  private let limits: Limits
  private var span: Duration

  public init(_ limits: Limits) {
    self.limits = limits
    span = min(limits.initial, limits.maximum)
  }

  /// The next wait. `jitter` is a number in 0..<1.
  public mutating func next(jitter: Double) -> Duration {
    let wait = span * max(0, min(1, jitter))
    span = min(span * 2, limits.maximum)
    return wait
  }

  public mutating func reset() {
    span = min(limits.initial, limits.maximum)
  }
}
