import EventLoop
import Log
import Testing

@testable import Web

@Suite struct HistoryTests {
  private static let begin = (moment: Moment.now, time: Timestamp(milliseconds: 29_000_000 * 60_000))
  private static func time(_ minute: Int, seconds: Int = 0) -> Moment {
    begin.moment + .seconds(minute * 60 + seconds)
  }

  private static func points(_ history: History, _ series: Int, hours: Int = 24, at minute: Int) -> [Float] {
    history.times(hours: hours, until: time(minute)).compactMap { history.value(series, at: $0) }
  }

  @Test func theLastValueOfAMinuteIsKeptFor24Hours() {
    var history = History(from: Self.begin.moment, Self.begin.time)
    let one = history.add()
    history.set(one, 1, at: Self.time(0))
    history.set(one, 2, at: Self.time(0, seconds: 59))
    history.set(one, 3, at: Self.time(2))
    #expect(Self.points(history, one, at: 2) == [2, 3])
    #expect(Self.points(history, one, hours: 1, at: 70) == [])
    #expect(Self.points(history, one, hours: 2, at: 70) == [2, 3])
    for minute in 3..<2000 { history.set(one, Double(minute), at: Self.time(minute)) }
    #expect(Self.points(history, one, at: 1999) == (560..<2000).map(Float.init))
  }

  @Test func aGapLeavesNothingOld() {
    var history = History(from: Self.begin.moment, Self.begin.time)
    let one = history.add()
    for minute in 0..<1440 { history.set(one, 1, at: Self.time(minute)) }
    history.set(one, 2, at: Self.time(5000))
    #expect(Self.points(history, one, at: 5000) == [2])
  }

  @Test(
    "A step of the host's clock loses no point, and moves all of them by as many minutes",
    arguments: [(-1, 0), (1, 0), (-3600, -60), (3600, 60), (-100_000, -1667), (1_700_000_000, 28_333_333)])
  func steps(seconds: Int, minutes: Int) {
    var history = History(from: Self.begin.moment, Self.begin.time)
    let one = history.add()
    for minute in 0..<1440 { history.set(one, Double(minute), at: Self.time(minute, seconds: 30)) }
    let end = Self.time(1439, seconds: 31)
    let clock = Self.begin.time + .seconds(1439 * 60 + 31 + seconds)
    history.set(one, 1439, at: end)
    #expect(Self.points(history, one, at: 1439) == (0..<1440).map(Float.init))
    #expect(history.shift(at: end, clock) == .seconds(minutes * 60))
  }

  @Test("Many values have fewer points, in the same memory, and leave room when they end")
  func manyValues() {
    var history = History(from: Self.begin.moment, Self.begin.time)
    let first = history.add()
    for minute in 0..<1440 { history.set(first, Double(minute), at: Self.time(minute)) }
    let others = (0..<1000).map { _ in history.add() }
    #expect(history.step == 3)
    let points = Self.points(history, first, at: 1439)
    #expect(points.count == 480 && points.last == 1439 && points == points.sorted())
    #expect((1 + others.count) * 480 * 4 <= History.mostBytes)
    let before = history.times(hours: 24, until: Self.time(1439))
    for other in others { history.remove(other) }
    #expect(before.map { history.value(first, at: $0) } == points, "each has its time")
    let again = history.add()
    #expect(Self.points(history, again, at: 1439) == [])
    #expect(!others.contains(again), "a column of a table that is being read stays empty")
    #expect(history.step == 1, "there is room for each minute again")
    history.set(first, 1440, at: Self.time(1440))
    history.set(first, 1441, at: Self.time(1441))
    let kept = points.dropFirst() + [1440, 1441]
    #expect(Self.points(history, first, at: 1441) == Array(kept))
  }
}
