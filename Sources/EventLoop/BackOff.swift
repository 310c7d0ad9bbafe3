/// Delays between attempts: doubled after each failure up to a limit, and randomised, so that clients that failed
/// together do not retry together.
public struct BackOff: Sendable, Equatable {
  private let first: Duration
  /// The longest delay.
  public let longest: Duration
  private let spread: Double
  private var span: Duration
  /// - Parameter spread: the share of each delay that is random: 0 none, 1 all of it.
  /// - Precondition: `first` is above zero and at most `longest`; `spread` is in 0...1.
  public init(first: Duration, longest: Duration, spread: Double = 0.3) {
    precondition(first > .zero && first <= longest && (0...1).contains(spread))
    self.first = first
    self.longest = longest
    self.spread = spread
    span = first
  }

  /// The delay before the next attempt.
  /// - Parameter chance: 0 for the shortest possible delay, 1 for the longest.
  public mutating func next(chance: Double = .random(in: 0...1)) -> Duration {
    let delay = span * (1 - spread * (1 - min(1, max(0, chance))))
    // Compared before doubling, so that it cannot overflow.
    span = span >= longest / 2 ? longest : span * 2
    return delay
  }

  /// An attempt succeeded: the next delay is the first again.
  public mutating func reset() { span = first }
}
