import EventLoop
import Testing

@testable import BlueZ

@Suite struct ScannerTests {
  private let scanner = Scanner()

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
    #expect(scanner.startFailed())
    #expect(!scanner.startFailed())
    scanner.endChange(in: .failed)
    #expect(scanner.beginChange(isAllowed: true) == nil)
    scanner.retry()
    #expect(scanner.beginChange(isAllowed: true) == .start)
    #expect(scanner.startSucceeded())
    #expect(!scanner.startSucceeded())
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
