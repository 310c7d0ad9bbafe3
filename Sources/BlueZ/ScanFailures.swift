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
  public fileprivate(set) var step: Step
  /// Why the last attempt failed.
  public let reason: String
  package let since: Timestamp
  /// The failures in succession.
  public let count: Int
}

/// The failures of discovery in succession, and what follows from them.
struct ScanFailures {
  private var count = 0
  /// The recovery in progress; nil: discovery has not failed twice in succession, or is not needed.
  private(set) var recovery: Recovery?
  private var resetBackOff: BackOff
  /// The earliest time of the next reset, while discovery fails.
  private var nextReset = Moment.now

  /// - Parameter resetBackOff: between the first failure and a reset of the adapter, and between two resets.
  init(resetBackOff: BackOff) { self.resetBackOff = resetBackOff }

  var isEmpty: Bool { count == 0 }

  /// What a failure leads to.
  enum Reaction {
    /// The first failure in succession: the next attempt usually succeeds.
    case first
    /// The second failure in succession, which has begun the ``ScanFailures/recovery``.
    case problem
    /// A later failure in succession.
    case retry
    /// Like `retry`; the time until the next reset has passed, and the adapter may be reset.
    case reset
  }

  /// Discovery could not be started, or has ended although it should not. Another attempt always follows.
  /// - Parameter mayReset: whether the adapter may be reset.
  mutating func noteFailure(_ reason: String, mayReset: Bool) -> Reaction {
    count += 1
    if count > 1 {
      recovery = Recovery(
        step: recovery?.step ?? .retry, reason: reason, since: recovery?.since ?? .now, count: count)
    }
    switch count {
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

  mutating func clear() {
    (count, recovery) = (0, nil)
    resetBackOff.reset()
  }
}
