/// How long to wait before the next attempt: twice as long after each that failed, up to a limit, and never
/// quite the same, so that many who failed together do not try again together.
public struct BackOff: Sendable, Equatable {
  /// The first wait.
  public let first: Duration
  /// The longest wait.
  public let longest: Duration
  /// The share of a wait that is left to chance: 0 none, 1 all of it.
  public let spread: Double

  private var span: Duration

  /// The first wait must be above zero and no longer than the longest, `spread` in 0...1: a trap otherwise.
  public init(first: Duration, longest: Duration, spread: Double = 0.3) {
    precondition(first > .zero && first <= longest && (0...1).contains(spread))
    self.first = first
    self.longest = longest
    self.spread = spread
    span = first
  }

  /// The wait before the next attempt.
  /// - Parameter chance: 0 for the shortest, 1 for the longest that it can be.
  public mutating func next(chance: Double = .random(in: 0...1)) -> Duration {
    let wait = span * (1 - spread * (1 - min(1, max(0, chance))))
    // Compared before it is doubled, so that no number of failures overflows.
    span = span >= longest / 2 ? longest : span * 2
    return wait
  }

  /// Something succeeded: the next wait is the first again.
  public mutating func reset() { span = first }
}
