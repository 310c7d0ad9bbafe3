import EventLoop
import Log

/// A time that is corrected when the host's clock is set, as after the start of a host without a battery for its clock.
package struct ClockTime: Sendable, Equatable {
  private let time: Timestamp
  package let moment: Moment

  /// - Parameter moment: the moment that is `time` by the clock as it is set now.
  package init(_ time: Timestamp = .now, at moment: Moment = .now) {
    (self.time, self.moment) = (time, moment)
  }

  /// The time at another moment, as if the clock was never set.
  package func evenly(at other: Moment) -> Timestamp { time + moment.duration(to: other) }

  /// How far the clock was set, in whole minutes: a small correction changes nothing.
  package func shift(at other: Moment, _ now: Timestamp) -> Duration {
    let minutes = Double(now.milliseconds - evenly(at: other).milliseconds) / 60_000
    return .seconds(60 * Int64(minutes.rounded()))
  }

  /// The time by the clock as it is set now.
  package func current(at other: Moment = .now, _ now: Timestamp = .now) -> Timestamp {
    time + shift(at: other, now)
  }
}

/// A time by the clock as it is set now, whenever that is read.
@propertyWrapper package struct FollowsClock: Sendable, Equatable {
  private var time: ClockTime?

  package init() {}

  init(_ time: ClockTime) { self.time = time }

  package var wrappedValue: Timestamp? {
    get { time?.current() }
    set {
      let now = Timestamp.now.milliseconds
      time = newValue.map { ClockTime($0, at: .now + .milliseconds($0.milliseconds - now)) }
    }
  }
}
