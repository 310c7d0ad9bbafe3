import EventLoop
import Testing

@testable import BlueZ

@Suite struct ScannerTests {
  private let scanner = Scanner(resetBackOff: BackOff(first: .seconds(60), longest: .seconds(3600)))

  @Test func itStartsAndStopsAsRequested() {
    #expect(scanner.beginChange(isAllowed: true) == nil)
    scanner.request(true)
    #expect(scanner.beginChange(isAllowed: false) == nil)
    #expect(scanner.beginChange(isAllowed: true) == .start)
    // One call at a time: what is requested meanwhile follows.
    scanner.request(false)
    #expect(scanner.beginChange(isAllowed: true) == nil)
    #expect(!scanner.isIdle)
    scanner.endChange(in: .on)
    #expect(scanner.beginChange(isAllowed: true) == .stop)
    scanner.endChange(in: .off)
    #expect(scanner.isIdle)
  }

  @Test func aFailureIsRetriedOnceItIsTime() {
    scanner.request(true)
    #expect(scanner.beginChange(isAllowed: true) == .start)
    #expect(scanner.failed("first", mayReset: true) == .first)
    scanner.endChange(in: .failed)
    #expect(scanner.beginChange(isAllowed: true) == nil)
    scanner.retry()
    #expect(scanner.beginChange(isAllowed: true) == .start)
    // Another program's discovery is none of this one's.
    #expect(!scanner.worked())
    scanner.endChange(in: .on)
    #expect(scanner.worked())
    #expect(!scanner.worked())
  }

  @Test func theSecondFailureInSuccessionIsAProblem() {
    scanner.request(true)
    _ = scanner.beginChange(isAllowed: true)
    scanner.endChange(in: .on)
    #expect(scanner.failed("first", mayReset: true) == .first)
    #expect(scanner.recovery?.reason == nil)
    #expect(scanner.worked())
    #expect(scanner.failed("first", mayReset: true) == .first)
    #expect(scanner.failed("second", mayReset: true) == .problem)
    #expect(scanner.recovery?.reason == "second")
    #expect(scanner.failed("third", mayReset: true) == .retry)
    #expect(scanner.recovery?.reason == "third")
    #expect(scanner.worked())
    #expect(scanner.recovery?.reason == nil)
  }

  @Test func afterALongTimeOfFailuresTheAdapterIsReset() {
    let scanner = Self.failing()
    while scanner.failed("no", mayReset: true) == .retry {}
    scanner.request(false)
    #expect(scanner.recovery?.reason == nil)
    #expect(scanner.failed("no", mayReset: true) == .first)
  }

  @Test func failuresWithoutAResetDoNotPostponeIt() {
    let scanner = Self.failing()
    let begin = Moment.now
    while begin.duration(to: .now) < .milliseconds(50) {
      #expect(scanner.failed("no", mayReset: false) == .retry)
    }
    #expect(scanner.failed("no", mayReset: true) == .reset)
  }

  @Test func theNextResetIsFurtherOff() {
    let scanner = Self.failing()
    var resets = 0
    // The delays are 2 ns, 4 ns and so on: few of them fit into the time that this takes.
    for _ in 0..<1000 where scanner.failed("no", mayReset: true) == .reset {
      resets += 1
      scanner.adapterTurnedOff(isReset: true)
      #expect(scanner.recovery?.reason == "no")
    }
    #expect((1..<60).contains(resets))
    scanner.adapterTurnedOff(isReset: false)
    #expect(scanner.recovery?.reason == nil)
    #expect(scanner.failed("no", mayReset: true) == .first)
    #expect(scanner.failed("no", mayReset: true) == .problem)
    // The first delay again.
    #expect(scanner.failed("no", mayReset: true) == .reset)
  }

  /// It has failed twice, and the first delay until a reset has passed.
  private static func failing() -> Scanner {
    let scanner = Scanner(
      resetBackOff: BackOff(first: .nanoseconds(1), longest: .seconds(3600), spread: 0))
    #expect(scanner.failed("no", mayReset: true) == .first)
    #expect(scanner.failed("no", mayReset: true) == .problem)
    return scanner
  }

  @Test func aPauseForConnectsIsTimed() {
    scanner.request(true)
    _ = scanner.beginChange(isAllowed: true)
    scanner.endChange(in: .on)
    #expect(!scanner.isPaused(for: .zero))
    scanner.pause()
    #expect(scanner.beginChange(isAllowed: false) == .stop)
    scanner.endChange(in: .off)
    #expect(scanner.isPaused(for: .zero))
    #expect(!scanner.isPaused(for: .seconds(3600)))
    // A start that fails does not end the pause.
    _ = scanner.beginChange(isAllowed: true)
    scanner.endChange(in: .failed)
    #expect(scanner.isPaused(for: .zero))
    scanner.retry()
    _ = scanner.beginChange(isAllowed: true)
    scanner.endChange(in: .on)
    #expect(!scanner.isPaused(for: .zero))
    // A scan that is no longer requested is not paused.
    scanner.pause()
    #expect(scanner.isPaused(for: .zero))
    scanner.request(false)
    #expect(!scanner.isPaused(for: .zero))
    scanner.pause()
    #expect(!scanner.isPaused(for: .zero))
  }

  @Test func pauseThatBeginsDuringAStartIsTimed() {
    scanner.request(true)
    #expect(scanner.beginChange(isAllowed: true) == .start)
    scanner.pause()
    scanner.endChange(in: .on)
    #expect(scanner.beginChange(isAllowed: false) == .stop)
    #expect(scanner.isPaused(for: .zero))
  }

  @Test func discoveryEndsWithTheAdapter() {
    scanner.request(true)
    _ = scanner.beginChange(isAllowed: true)
    scanner.endChange(in: .on)
    scanner.adapterTurnedOff(isReset: false)
    #expect(scanner.isIdle)
    #expect(scanner.beginChange(isAllowed: true) == .start)
    // The call in progress decides.
    scanner.adapterTurnedOff(isReset: false)
    #expect(!scanner.isIdle)
  }
}
