import EventLoop
import Log
import Testing

@testable import Devices

@Suite struct ClockTimeTests {
  private static let hour = Duration.seconds(3600)

  /// A Pi without a clock begins at the time at which it was switched off.
  @Test(arguments: [14, -1, 496_000])
  func movesWithTheClock(hours: Int) {
    let (start, moment) = (Timestamp(milliseconds: 1_763_661_662_345), Moment.now)
    let end = ClockTime(start + Self.hour, at: moment + Self.hour)
    let jump = Self.hour * hours
    for seconds in [1, 1800, 7200] {
      let passed = Duration.seconds(seconds)
      #expect(end.current(at: moment + passed, start + passed) == start + Self.hour)
      #expect(end.current(at: moment + passed, start + passed + jump) == start + Self.hour + jump)
    }
  }

  @Test func whatFollowsTheClockIsReadAsItIsSetNow() {
    // The clock was at 1970, and has just been set.
    let set = FollowsClock(ClockTime(Timestamp(milliseconds: 1000)))
    let passed = set.wrappedValue.map { Timestamp.now.milliseconds - $0.milliseconds }
    #expect(passed.map { (-60_000...60_000).contains($0) } == true)
    var time = FollowsClock()
    #expect(time.wrappedValue == nil)
    for past in [Timestamp(milliseconds: 0), .now] {
      time.wrappedValue = past
      #expect(time.wrappedValue == past)
    }
  }

  @Test func aCorrectionByAFewSecondsChangesNothing() {
    let (start, moment) = (Timestamp.now, Moment.now)
    let time = ClockTime(start, at: moment)
    #expect(time.current(at: moment + Self.hour, start + Self.hour + .seconds(20)) == start)
  }
}
