import BlueZ
import DBus
import EventLoop
import TestSupport
import Testing

@testable import Devices

/// The first values that a visit waits for.
@Suite struct VisitValuesTests {
  private let loop = EventLoop.onNewThread()

  /// - Parameter prepare: called on the loop.
  /// - Returns: the properties whose values have not arrived.
  private func missing(_ prepare: @Sendable (Visit) -> Void) async -> [String] {
    // It is never connected to the bus: only its isolation is used.
    let central = Central(adapter: "hci0", bus: .at("unix:path=/nowhere"), loop: loop) { _ in }
    let visit = Visit(loop)
    return await central.missing(visit, prepare)
  }

  @Test func aValueThatHasArrivedIsNotMissing() async {
    let missing = await missing { [loop] visit in
      let first = Waiter<Void>()
      visit.add(first, of: "level")
      visit.add(Waiter<Void>(), of: "key")
      first.resume(.success(()))
      loop.timer(after: .milliseconds(1)) { visit.stopWaiting() }
    }
    #expect(missing == ["key"])
  }

  @Test func endOfTheLinkReportsNoMissingValue() async {
    let missing = await missing { [loop] visit in
      visit.add(Waiter<Void>(), of: "key")
      loop.timer(after: .milliseconds(1)) { visit.end() }
    }
    #expect(missing == [])
  }

  /// The link ended when the subscription had been answered: its task ends too, and the next visit does not wait for
  /// it.
  @Test func lateSubscriptionReplyIsNotAwaited() async {
    let late = Waiter<Void>()
    let missing = await missing { visit in
      visit.end()
      visit.add(late, of: "level")
    }
    #expect(missing == [])
    await #expect(throws: CancellationError.self) { try await late.value() }
  }
}

extension Central {
  fileprivate func missing(_ visit: Visit, _ prepare: @Sendable (Visit) -> Void) async -> [String] {
    prepare(visit)
    return await visit.missingValues(on: self)
  }
}
