import Log
import Testing

@testable import Web

@Suite struct HistoryTests {
  private static let begin = 29_000_000
  private static func time(_ minute: Int, seconds: Int = 0) -> Timestamp {
    Timestamp(milliseconds: Int64((begin + minute) * 60_000 + seconds * 1000))
  }

  private static func points(_ history: History, _ series: Int, hours: Int = 24, at minute: Int) -> [Float] {
    history.times(hours: hours, until: time(minute)).compactMap { history.value(series, at: $0) }
  }

  @Test func theLastValueOfAMinuteIsKeptFor24Hours() {
    var history = History()
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

  @Test func aGapAndAStepOfTheClockLeaveNothingOld() {
    var history = History()
    let one = history.add()
    for minute in 0..<1440 { history.set(one, 1, at: Self.time(minute)) }
    history.set(one, 2, at: Self.time(5000))
    #expect(Self.points(history, one, at: 5000) == [2])
    history.set(one, 3, at: Self.time(4000))
    #expect(Self.points(history, one, at: 4000) == [3])
    history.set(one, 4, at: Timestamp(milliseconds: -5))
    #expect(history.times(hours: 24, until: Timestamp(milliseconds: 0)).count == 1)
  }

  @Test("Many values have fewer points, in the same memory, and their places are used again")
  func manyValues() {
    var history = History()
    let first = history.add()
    for minute in 0..<1440 { history.set(first, Double(minute), at: Self.time(minute)) }
    let others = (0..<1000).map { _ in history.add() }
    #expect(history.step == 3)
    let points = Self.points(history, first, at: 1439)
    #expect(points.count == 480 && points.last == 1439 && points == points.sorted())
    #expect((1 + others.count) * 480 * 4 <= History.mostBytes)
    for other in others { history.remove(other) }
    let again = history.add()
    #expect(others.contains(again) && Self.points(history, again, at: 1439) == [])
  }
}
