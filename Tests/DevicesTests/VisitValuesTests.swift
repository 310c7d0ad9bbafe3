import EventLoop
import Testing

@testable import Devices

/// The first values that a visit waits for.
@LoopActor @Suite struct VisitValuesTests {
  /// - Returns: the properties whose values have not arrived.
  private func missing(within limit: Duration = Visit.limit, _ prepare: (Visit) -> Void) async -> [String] {
    let visit = Visit()
    prepare(visit)
    return await visit.missingValues(within: limit)
  }

  @Test func theLastValueEndsTheWait() async {
    let missing = await missing(within: .seconds(3600)) { visit in
      visit.awaits("level")
      loop.timer(after: .milliseconds(1)) { visit.awaitsNoLonger("level") }
    }
    #expect(missing == [])
  }

  @Test func aValueThatHasArrivedIsNotMissing() async {
    let missing = await missing(within: .milliseconds(1)) { visit in
      visit.awaits("level")
      visit.awaits("key")
      visit.awaitsNoLonger("level")
    }
    #expect(missing == ["key"])
  }

  @Test func endOfTheLinkReportsNoMissingValue() async {
    let missing = await missing { visit in
      visit.awaits("key")
      loop.timer(after: .milliseconds(1)) { visit.end() }
    }
    #expect(missing == [])
  }

  /// The link ended when the subscription had been answered: its task ends too, and the next visit does not wait for
  /// it.
  @Test func lateSubscriptionReplyIsNotAwaited() async {
    let missing = await missing { visit in
      visit.end()
      visit.awaits("level")
    }
    #expect(missing == [])
  }
}
