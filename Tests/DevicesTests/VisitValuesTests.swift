import BlueZ
import DBus
import EventLoop
import TestSupport
import Testing

@testable import Devices

/// The first values that a visit waits for.
@LoopActor @Suite struct VisitValuesTests {
  /// - Returns: the properties whose values have not arrived.
  private func missing(_ prepare: (Visit) -> Void) async -> [String] {
    let visit = Visit()
    prepare(visit)
    return await visit.missingValues(on: Central(adapter: "hci0", bus: .at("unix:path=/nowhere")) { _ in })
  }

  @Test func aValueThatHasArrivedIsNotMissing() async {
    let missing = await missing { visit in
      let first = Waiter<Void>()
      visit.add(first, of: "level")
      visit.add(Waiter<Void>(), of: "key")
      first.resume(.success(()))
      loop.timer(after: .milliseconds(1)) { visit.stopWaiting() }
    }
    #expect(missing == ["key"])
  }

  @Test func endOfTheLinkReportsNoMissingValue() async {
    let missing = await missing { visit in
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
