import BlueZ
import DBus
import EventLoop
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
      visit.awaits(first, of: "level")
      visit.awaits(Waiter<Void>(), of: "key")
      first.resume(.success(()))
      loop.timer(after: .milliseconds(1)) { visit.stopWaiting() }
    }
    #expect(missing == ["key"])
  }

  @Test func noValueIsMissingAfterTheLinkEnds() async {
    let missing = await missing { [loop] visit in
      visit.awaits(Waiter<Void>(), of: "key")
      loop.timer(after: .milliseconds(1)) { visit.end() }
    }
    #expect(missing == [])
  }

  /// The link ends while the subscription is being answered: the task that waits for the value ends too, and does not
  /// delay the next visit.
  @Test func subscriptionAnsweredAfterTheLinkEndsIsNotAwaited() async {
    let late = Waiter<Void>()
    let missing = await missing { visit in
      visit.end()
      visit.awaits(late, of: "level")
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
