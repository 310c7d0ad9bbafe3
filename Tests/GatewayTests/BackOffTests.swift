import Testing

@testable import Gateway

@Suite struct BackOffTests {
  @Test func growsToItsCapAndStartsAgain() {
    var backOff = BackOff(base: .seconds(1), factor: 2, cap: .seconds(10), jitter: 0)
    #expect((0..<6).map { _ in backOff.next() } == [1, 2, 4, 8, 10, 10].map { Duration.seconds($0) })
    backOff.reset()
    #expect(backOff.next() == .seconds(1))
  }

  @Test func jitterShortensByItsShareAtMost() {
    var random = SplitMix64(state: 7)
    var backOff = BackOff(base: .seconds(10), factor: 1, cap: .seconds(10), jitter: 0.3)
    let waits = (0..<1000).map { _ in backOff.next(using: &random) }
    #expect(waits.allSatisfy { $0 >= .seconds(7) && $0 <= .seconds(10) })
    #expect(waits.min()! < .seconds(7.1) && waits.max()! > .seconds(9.9))
  }

  @Test func theSameChanceGivesTheSameWaits() {
    func waits() -> [Duration] {
      var random = SplitMix64(state: 1)
      var backOff = BackOff(base: .milliseconds(500), cap: .seconds(60))
      return (0..<8).map { _ in backOff.next(using: &random) }
    }
    #expect(waits() == waits())
  }

  @Test func neverOverflows() {
    var backOff = BackOff(base: .nanoseconds(1), factor: 1000, cap: .seconds(86400), jitter: 0)
    for _ in 0..<10_000 { _ = backOff.next() }
    #expect(backOff.next() == .seconds(86400))
  }
}
