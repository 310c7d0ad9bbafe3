import EventLoop
import GATT
import Testing

@testable import Bridge

@Suite struct ReportLimiterTests {
  private let start = Moment.now
  private func at(_ milliseconds: Int) -> Moment { start + .milliseconds(milliseconds) }

  private func limiter(interval: Int = 0, change: Double = 0) -> ReportLimiter {
    ReportLimiter(Property.Report(minInterval: .milliseconds(interval), change: change))
  }

  // MARK: The interval

  @Test func theFirstValueIsPublishedAtOnce() {
    var limiter = limiter(interval: 1000, change: 100)
    #expect(limiter.update(1, at: start) == .publish)
  }

  @Test func aReadingNeedNotWaitForTheEndOfAnIntervalOfWhatWasKnown() {
    var limiter = limiter(interval: 1000, change: 2)
    #expect(limiter.update(20, at: start, isReading: false) == .publish)
    #expect(limiter.update(21, at: start) == .skip)
    #expect(limiter.update(22, at: start) == .publish)
    #expect(limiter.update(25, at: at(1)) == .wait(.milliseconds(999)))
  }

  @Test func valueAfterTheIntervalIsPublishedAtOnce() {
    var limiter = limiter(interval: 1000)
    _ = limiter.update(1, at: start)
    #expect(limiter.update(2, at: at(1000)) == .publish)
    #expect(limiter.update(3, at: at(2500)) == .publish)
  }

  @Test func theLastValueOfAnIntervalIsPublishedAtItsEnd() {
    var limiter = limiter(interval: 1000)
    _ = limiter.update(1, at: start)
    #expect(limiter.update(2, at: at(300)) == .wait(.milliseconds(700)))
    #expect(limiter.update(3, at: at(400)) == .skip)
    #expect(limiter.update(4, at: at(999)) == .skip)
    #expect(limiter.release(at: at(1000)) == 4)
    #expect(limiter.release(at: at(1000)) == nil, "once")
    // The next interval begins there.
    #expect(limiter.update(5, at: at(1500)) == .wait(.milliseconds(500)))
    #expect(limiter.release(at: at(2000)) == 5)
    #expect(limiter.update(6, at: at(3000)) == .publish)
  }

  /// The timer is late: the waiting value is replaced, and still published once.
  @Test func valueAfterTheIntervalWaitsForTheRunningTimer() {
    var limiter = limiter(interval: 1000)
    _ = limiter.update(1, at: start)
    _ = limiter.update(2, at: at(500))
    #expect(limiter.update(3, at: at(1001)) == .skip)
    #expect(limiter.release(at: at(1002)) == 3)
  }

  @Test func valueThatReturnsToThePublishedOneIsSkipped() {
    var limiter = limiter(interval: 1000)
    _ = limiter.update(1, at: start)
    _ = limiter.update(2, at: at(100))
    #expect(limiter.update(1, at: at(200)) == .skip)
    #expect(limiter.release(at: at(1000)) == nil)
    #expect(limiter.update(2, at: at(1100)) == .publish)
  }

  @Test func withoutAnIntervalEveryChangeIsPublished() {
    var limiter = limiter()
    for value in 1...5 { #expect(limiter.update(.integer(value), at: start) == .publish) }
    #expect(limiter.update(5, at: start) == .skip, "it has not changed")
  }

  /// The numbers are equal as numbers of 53 bits.
  @Test func everyChangeOfALargeNumberIsPublished() {
    var limiter = limiter()
    _ = limiter.update(.integer(1 << 53), at: start)
    #expect(limiter.update(.integer(1 << 53 + 1), at: start) == .publish)
  }

  // MARK: The change

  @Test func aSmallChangeIsSkippedUntilItAddsUp() {
    var limiter = limiter(change: 3)
    _ = limiter.update(10, at: start)
    #expect(limiter.update(12, at: at(1)) == .skip)
    #expect(limiter.update(8, at: at(2)) == .skip)
    #expect(limiter.update(13, at: at(3)) == .publish)
    #expect(limiter.update(11, at: at(4)) == .skip)
    #expect(limiter.update(10, at: at(5)) == .publish)
  }

  @Test func changeMayBeAFraction() {
    var limiter = limiter(change: 0.5)
    _ = limiter.update(.number(20), at: start)
    #expect(limiter.update(.number(20.25), at: at(1)) == .skip)
    #expect(limiter.update(.number(20.5), at: at(2)) == .publish)
    var any = self.limiter()
    _ = any.update(.number(20), at: start)
    #expect(any.update(.number(20), at: at(1)) == .skip)
    #expect(any.update(.number(20.001), at: at(1)) == .publish)
  }

  @Test func intervalAndChangeMustBothBeReached() {
    var limiter = limiter(interval: 1000, change: 3)
    _ = limiter.update(10, at: start)
    #expect(limiter.update(14, at: at(100)) == .wait(.milliseconds(900)))
    #expect(limiter.update(12, at: at(200)) == .skip)
    #expect(limiter.release(at: at(1000)) == nil, "the last one of the interval is near the published one")
    #expect(limiter.update(12, at: at(1100)) == .skip)
    #expect(limiter.update(13, at: at(1200)) == .publish)
  }

  // MARK: Other values

  @Test func changeAppliesToEachFieldOfARecord() {
    func record(_ fields: Int?...) -> Value { .record(fields.map { $0.map(Value.integer) }) }
    var limiter = limiter(change: 20)
    _ = limiter.update(record(0, 0, 1000), at: start)
    #expect(limiter.update(record(19, -19, 1019), at: at(1)) == .skip)
    #expect(limiter.update(record(0, -20, 1000), at: at(2)) == .publish)
    #expect(limiter.update(record(0, nil, 1000), at: at(3)) == .publish, "a field is absent")
    #expect(limiter.update(record(0, nil, 1000), at: at(4)) == .skip)
    #expect(limiter.update(record(0, -20, 1000), at: at(5)) == .publish, "it is there again")
  }

  @Test(arguments: [
    (Value.text("open"), Value.text("closed")), (.bool(false), .bool(true)), (.bytes([1]), .bytes([1, 0])),
    (.list([1, 2]), .list([1, 3])), (.text("7"), 7), (.record([1]), .record([1, 2])),
  ])
  func anyChangeOfOtherValuesIsPublished(one: Value, other: Value) {
    var limiter = limiter(change: 100)
    _ = limiter.update(one, at: start)
    #expect(limiter.update(one, at: at(1)) == .skip)
    #expect(limiter.update(other, at: at(2)) == .publish)
  }

  /// NaN is unequal to itself.
  @Test func aFieldThatBecomesNaNIsOneChange() {
    var limiter = limiter(change: 5)
    _ = limiter.update(.record([.number(1)]), at: start)
    #expect(limiter.update(.record([.number(.nan)]), at: at(1)) == .publish)
    #expect(limiter.update(.record([.number(.nan)]), at: at(2)) == .skip)
    #expect(limiter.update(.record([.number(1)]), at: at(3)) == .publish)
  }
}
