import Glibc

/// A point in time of the clock that includes suspends, like ``ContinuousClock``'s, as a plain integer.
///
/// `ContinuousClock.Instant` is a struct of unknown layout, copied by way of its metadata, and `Duration` has 128 bits:
/// both are measurable costs for every message and iteration.
public struct Moment: Comparable, Sendable {
  /// The time since an arbitrary moment in the past.
  private let nanoseconds: Int64

  /// CLOCK_BOOTTIME (clock_gettime(2)); callable on any thread.
  public static var now: Moment {
    var time = timespec()
    clock_gettime(CLOCK_BOOTTIME, &time)
    return Moment(nanoseconds: Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec))
  }

  /// Durations are clamped to ±146 years.
  public static func + (moment: Moment, duration: Duration) -> Moment {
    let (seconds, attoseconds) = duration.components
    let most = Int64.max / 2 / 1_000_000_000
    let whole = max(-most, min(most, seconds)) * 1_000_000_000
    return Moment(nanoseconds: moment.nanoseconds + whole + attoseconds / 1_000_000_000)
  }

  /// The time from this moment to `other`; negative if `other` is earlier.
  public func duration(to other: Moment) -> Duration { .nanoseconds(other.nanoseconds - nanoseconds) }

  /// Whether `a` is earlier.
  public static func < (a: Moment, b: Moment) -> Bool { a.nanoseconds < b.nanoseconds }

  /// Whole ms until `other`, rounded up; 0 if it is past.
  func milliseconds(until other: Moment) -> Int64 {
    max(0, (other.nanoseconds - nanoseconds + 999_999) / 1_000_000)
  }
}
