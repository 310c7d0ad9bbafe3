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
    #expect(scanner.failed("first") == .log)
    #expect(scanner.failed("second") == .retry)
    #expect(scanner.problem == "second")
    scanner.endChange(in: .failed)
    #expect(scanner.beginChange(isAllowed: true) == nil)
    scanner.retry()
    #expect(scanner.beginChange(isAllowed: true) == .start)
    // Another program's discovery is none of this one's.
    #expect(!scanner.discoveryBegan())
    scanner.endChange(in: .on)
    #expect(scanner.discoveryBegan())
    #expect(!scanner.discoveryBegan())
    #expect(scanner.problem == nil)
  }

  @Test func afterALongTimeOfFailuresTheAdapterIsReset() {
    let scanner = Scanner(resetBackOff: BackOff(first: .nanoseconds(1), longest: .seconds(3600)))
    #expect(scanner.failed("no") == .log)
    while scanner.failed("no") == .retry {}
    scanner.request(false)
    #expect(scanner.problem == nil)
    #expect(scanner.failed("no") == .log)
  }

  @Test func aPauseForConnectsIsTimed() {
    scanner.request(true)
    _ = scanner.beginChange(isAllowed: true)
    scanner.endChange(in: .on)
    #expect(!scanner.isPaused(for: .zero))
    #expect(scanner.beginChange(isAllowed: false) == .stop)
    scanner.endChange(in: .off)
    #expect(scanner.isPaused(for: .zero))
    #expect(!scanner.isPaused(for: .seconds(3600)))
    _ = scanner.beginChange(isAllowed: true)
    scanner.endChange(in: .on)
    #expect(!scanner.isPaused(for: .zero))
  }

  @Test func discoveryEndsWithTheAdapter() {
    scanner.request(true)
    _ = scanner.beginChange(isAllowed: true)
    scanner.endChange(in: .on)
    scanner.adapterTurnedOff()
    #expect(scanner.isIdle)
    #expect(scanner.beginChange(isAllowed: true) == .start)
    // The call in progress decides.
    scanner.adapterTurnedOff()
    #expect(!scanner.isIdle)
  }
}
