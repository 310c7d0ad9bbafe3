import EventLoop
import Testing

@Suite struct BackOffTests {
  @Test func growsToItsLimitAndStartsAgain() {
    var backOff = BackOff(first: .seconds(1), longest: .seconds(10), spread: 0)
    #expect((0..<6).map { _ in backOff.next() } == [1, 2, 4, 8, 10, 10].map { Duration.seconds($0) })
    backOff.reset()
    #expect(backOff.next() == .seconds(1))
  }

  @Test func chanceShortensByItsShareAtMost() {
    var backOff = BackOff(first: .seconds(10), longest: .seconds(10), spread: 0.5)
    #expect(backOff.next(chance: 0) == .seconds(5))
    #expect(backOff.next(chance: 0.5) == .milliseconds(7500))
    #expect(backOff.next(chance: 1) == .seconds(10))
    let waits = (0..<1000).map { _ in backOff.next() }
    #expect(waits.allSatisfy { $0 >= .seconds(5) && $0 <= .seconds(10) })
    #expect(waits.min()! < .seconds(5.5) && waits.max()! > .seconds(9.5))
  }

  @Test func withAllLeftToChanceItCanBeNothing() {
    var backOff = BackOff(first: .seconds(1), longest: .seconds(3), spread: 1)
    #expect(backOff.next(chance: 0) == .zero)
    #expect(backOff.next(chance: 0.25) == .milliseconds(500))
    #expect(backOff.next(chance: 7) == .seconds(3))
  }

  @Test func neverOverflows() {
    var backOff = BackOff(first: .nanoseconds(1), longest: .seconds(86400), spread: 0)
    for _ in 0..<10_000 { _ = backOff.next() }
    #expect(backOff.next() == .seconds(86400))
  }
}
