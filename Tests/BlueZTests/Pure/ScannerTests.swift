import EventLoop
import Testing

@testable import BlueZ

@LoopActor @Suite struct ScannerTests {
  private let scanner = Scanner(
    resetBackOff: BackOff(first: .seconds(60), longest: .seconds(3600)),
    silenceBackOff: BackOff(first: .seconds(30), longest: .seconds(300), spread: 0), fullScan: .seconds(3))

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

  /// A peripheral may have another address, and so another id, every few minutes.
  @Test func theLastPeripheralsThatWereGoneAreKept() {
    let ids = (0...100).map { PeripheralID(path: "/\($0)") }
    for id in ids { scanner.noteGone(id) }
    #expect(!scanner.takeGone(ids[0]))
    #expect(scanner.takeGone(ids[1]) && scanner.takeGone(ids[100]))
    #expect(!scanner.takeGone(ids[100]))
  }

  /// Nothing may be there, or what is there has no signal strength.
  @Test func silenceIsCheckedLessOftenAndInBothWays() {
    #expect(scanner.silence.longestSilence == .seconds(30) && scanner.takeFilter().strength)
    var silences: [Duration] = []
    for _ in 0..<5 {
      _ = scanner.silence.heardNothing(mayReset: true)
      silences.append(scanner.silence.longestSilence)
    }
    #expect(silences == [60, 120, 240, 300, 300].map { .seconds($0) })
    #expect(!scanner.takeFilter().strength)
    // What helped stays.
    scanner.silence.heard()
    #expect(scanner.silence.longestSilence == .seconds(30) && !scanner.takeFilter().strength)
  }

  /// Where nothing advertises, one reset is news.
  @Test func resetsForSilenceAreRareAndInVainAfterTheFirst() {
    func resetsInVain(of silences: Int) -> [Bool] {
      (0..<silences).compactMap { _ in
        scanner.silence.heardNothing(mayReset: true) ? scanner.silence.wasResetInVain : nil
      }
    }
    #expect(resetsInVain(of: 29) == [false, true, true])
    scanner.silence.heard()
    #expect(resetsInVain(of: 5) == [false])
  }

  /// As when the last link has ended.
  @Test func aResetForSilenceIsDueUntilItIsAllowed() {
    for _ in 0..<20 { #expect(scanner.silence.heardNothing(mayReset: false) == false) }
    #expect(scanner.silence.heardNothing(mayReset: true) && !scanner.silence.wasResetInVain)
    for _ in 0..<11 { #expect(scanner.silence.heardNothing(mayReset: true) == false) }
    #expect(scanner.silence.heardNothing(mayReset: true) && scanner.silence.wasResetInVain)
  }

  @Test func aFailureIsRetriedOnceItIsTime() {
    scanner.request(true)
    #expect(scanner.beginChange(isAllowed: true) == .start)
    #expect(scanner.failures.noteFailure("first", mayReset: true) == .first)
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
    #expect(scanner.failures.noteFailure("first", mayReset: true) == .first)
    #expect(scanner.failures.recovery?.reason == nil)
    #expect(scanner.worked())
    #expect(scanner.failures.noteFailure("first", mayReset: true) == .first)
    #expect(scanner.failures.noteFailure("second", mayReset: true) == .problem)
    #expect(scanner.failures.recovery?.reason == "second")
    #expect(scanner.failures.noteFailure("third", mayReset: true) == .retry)
    #expect(scanner.failures.recovery?.reason == "third")
    #expect(scanner.worked())
    #expect(scanner.failures.recovery?.reason == nil)
  }

  @Test func afterALongTimeOfFailuresTheAdapterIsReset() {
    let scanner = Self.failing()
    while scanner.failures.noteFailure("no", mayReset: true) == .retry {}
    scanner.request(false)
    #expect(scanner.failures.recovery?.reason == nil)
    #expect(scanner.failures.noteFailure("no", mayReset: true) == .first)
  }

  @Test func failuresWithoutAResetDoNotPostponeIt() {
    let scanner = Self.failing()
    let begin = Moment.now
    while begin.duration(to: .now) < .milliseconds(50) {
      #expect(scanner.failures.noteFailure("no", mayReset: false) == .retry)
    }
    #expect(scanner.failures.noteFailure("no", mayReset: true) == .reset)
  }

  @Test func theNextResetIsFurtherOff() {
    let scanner = Self.failing()
    var resets = 0
    // The delays are 2 ns, 4 ns and so on: few of them fit into the time that this takes.
    for _ in 0..<1000 where scanner.failures.noteFailure("no", mayReset: true) == .reset {
      resets += 1
      scanner.adapterTurnedOff(isReset: true)
      #expect(scanner.failures.recovery?.reason == "no")
    }
    #expect((1..<60).contains(resets))
    scanner.adapterTurnedOff(isReset: false)
    #expect(scanner.failures.recovery?.reason == nil)
    #expect(scanner.failures.noteFailure("no", mayReset: true) == .first)
    #expect(scanner.failures.noteFailure("no", mayReset: true) == .problem)
    // The first delay again.
    #expect(scanner.failures.noteFailure("no", mayReset: true) == .reset)
  }

  /// It has failed twice, and the first delay until a reset has passed.
  private static func failing() -> Scanner {
    let scanner = Scanner(
      resetBackOff: BackOff(first: .nanoseconds(1), longest: .seconds(3600), spread: 0),
      silenceBackOff: BackOff(first: .seconds(30), longest: .seconds(300)), fullScan: .seconds(3))
    #expect(scanner.failures.noteFailure("no", mayReset: true) == .first)
    #expect(scanner.failures.noteFailure("no", mayReset: true) == .problem)
    return scanner
  }

  private func isPaused(for limit: Duration) -> Bool {
    scanner.pauses.needsBriefScan(after: limit, isPreferred: true)
  }

  @Test func aPauseForConnectsIsTimed() {
    scanner.request(true)
    _ = scanner.beginChange(isAllowed: true)
    scanner.endChange(in: .on)
    #expect(!isPaused(for: .zero))
    scanner.pause()
    #expect(scanner.beginChange(isAllowed: false) == .stop)
    scanner.endChange(in: .off)
    #expect(isPaused(for: .zero))
    #expect(!isPaused(for: .seconds(3600)))
    // A start that fails does not end the pause.
    _ = scanner.beginChange(isAllowed: true)
    scanner.endChange(in: .failed)
    #expect(isPaused(for: .zero))
    scanner.retry()
    _ = scanner.beginChange(isAllowed: true)
    scanner.endChange(in: .on)
    #expect(!isPaused(for: .zero))
    // A scan that is no longer requested is not paused.
    scanner.pause()
    #expect(isPaused(for: .zero))
    scanner.request(false)
    #expect(!isPaused(for: .zero))
    scanner.pause()
    #expect(!isPaused(for: .zero))
  }

  @Test func pauseThatBeginsDuringAStartIsTimed() {
    scanner.request(true)
    #expect(scanner.beginChange(isAllowed: true) == .start)
    scanner.pause()
    scanner.endChange(in: .on)
    #expect(scanner.beginChange(isAllowed: false) == .stop)
    #expect(isPaused(for: .zero))
  }

  /// Each scan ends with the first advertisement, as every advertiser is connected to, and fails after 5 s.
  @Test func shortScansAreNoScansToOneThatWasNeverConnected() {
    var now = Moment.now
    var briefScans: [Int] = []
    scanner.request(true)
    for attempt in 0..<12 {
      _ = scanner.beginChange(isAllowed: true)
      scanner.endChange(in: .on, at: now)
      now = now + .milliseconds(100)
      #expect(!scanner.pauses.needsBriefScan(after: .seconds(15), isPreferred: true, at: now))
      if scanner.pauses.needsBriefScan(after: .seconds(15), isPreferred: false, at: now) {
        briefScans.append(attempt)
        scanner.pauses.beginBriefScan()
        now = now + .seconds(3)
        scanner.pauses.endBriefScan(at: now)
      }
      scanner.pause(at: now)
      _ = scanner.beginChange(isAllowed: false)
      scanner.endChange(in: .off, at: now)
      now = now + .seconds(5)
    }
    #expect(briefScans == [3, 6, 9])
  }

  @Test func aScanThatWasLongEnoughCounts() {
    let start = Moment.now
    scanner.request(true)
    for second in [0, 20] {
      _ = scanner.beginChange(isAllowed: true)
      scanner.endChange(in: .on, at: start + .seconds(second))
      let end = start + .seconds(second + 3)
      #expect(!scanner.pauses.needsBriefScan(after: .seconds(15), isPreferred: false, at: end))
      scanner.pause(at: end)
      _ = scanner.beginChange(isAllowed: false)
      scanner.endChange(in: .off, at: end)
    }
    #expect(!scanner.pauses.needsBriefScan(after: .seconds(15), isPreferred: false, at: start + .seconds(37)))
    #expect(scanner.pauses.needsBriefScan(after: .seconds(15), isPreferred: false, at: start + .seconds(38)))
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
