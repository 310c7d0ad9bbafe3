import Glibc

/// A point of time on the clock that runs through a suspend as well: what ``ContinuousClock`` tells, as a plain number.
///
/// `ContinuousClock.Instant` is a struct of unknown layout: whatever holds one is copied by way of its metadata, which
/// would be felt with every message and in every turn of the loop, as would the 128 bits of a `Duration`.
public struct Moment: Comparable, Sendable {
  /// Since some moment in the past, the same one for the life of the process.
  private let nanoseconds: Int64

  /// CLOCK_BOOTTIME (clock_gettime(2)); callable on any thread.
  public static var now: Moment {
    var time = timespec()
    clock_gettime(CLOCK_BOOTTIME, &time)
    return Moment(nanoseconds: Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec))
  }

  /// A duration of more than 146 years counts as so many.
  public static func + (moment: Moment, duration: Duration) -> Moment {
    let (seconds, attoseconds) = duration.components
    let most = Int64.max / 2 / 1_000_000_000
    let whole = max(-most, min(most, seconds)) * 1_000_000_000
    return Moment(nanoseconds: moment.nanoseconds + whole + attoseconds / 1_000_000_000)
  }

  /// How long after this one `other` is; negative when it is before.
  public func duration(to other: Moment) -> Duration { .nanoseconds(other.nanoseconds - nanoseconds) }

  /// Whether `a` is before `b`.
  public static func < (a: Moment, b: Moment) -> Bool { a.nanoseconds < b.nanoseconds }

  /// Whole ms until `other`, rounded up; 0 when that is past.
  func milliseconds(until other: Moment) -> Int64 {
    max(0, (other.nanoseconds - nanoseconds + 999_999) / 1_000_000)
  }
}
