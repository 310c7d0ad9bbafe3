import Testing

@testable import Store

@Suite struct BacklogTests {
  private let a = Change.put([1])
  private let b = Change.put([2])

  @Test func firstChangeStartsWriter() {
    var backlog = Backlog()
    let starts = [backlog.add("a", a), backlog.add("b", a), backlog.add("a", b)]
    #expect(starts == [true, false, false])
    #expect(backlog.count == 2)
    let (changes, isLast) = backlog.take()
    #expect(changes == ["a": b, "b": a])
    #expect(!isLast)
    #expect(backlog.count == 2)
    backlog.written()
    #expect(backlog.count == 0)
  }

  @Test func writerEndsWhenNothingIsQueued() {
    var backlog = Backlog()
    _ = backlog.add("a", a)
    _ = backlog.take()
    let late = backlog.add("b", .delete)
    #expect(!late)
    backlog.written()
    let endsAtOnce = backlog.release()
    #expect(!endsAtOnce)
    #expect(backlog.take().changes == ["b": .delete])
    backlog.written()
    let endsThen = backlog.release()
    #expect(endsThen)
    let startsAgain = backlog.add("c", a)
    #expect(startsAgain)
  }

  @Test func failedWriteIsRetriedUnlessANewerOneExists() {
    var backlog = Backlog()
    _ = backlog.add("a", a)
    _ = backlog.add("b", a)
    _ = backlog.take()
    _ = backlog.add("a", .delete)
    #expect(backlog.count == 2)
    backlog.failed()
    #expect(backlog.count == 2)
    let ends = backlog.release()
    #expect(!ends)
    #expect(backlog.take().changes == ["a": .delete, "b": a])
  }

  @Test func changesAfterCloseAreIgnored() {
    var backlog = Backlog()
    let starts = backlog.close()
    #expect(starts)
    let startsWriter = backlog.add("a", a)
    #expect(!startsWriter)
    let ends = backlog.release()
    #expect(!ends)
    let (changes, isLast) = backlog.take()
    #expect(changes.isEmpty && isLast)
    backlog.ended()
    let startsAgain = backlog.close()
    #expect(!startsAgain)
  }

  @Test func urgentChangeIsUrgentUntilItIsTaken() {
    var backlog = Backlog()
    _ = backlog.add("a", a)
    #expect(!backlog.isUrgent)
    _ = backlog.add("b", a, isUrgent: true)
    _ = backlog.add("c", a)
    #expect(backlog.isUrgent)
    _ = backlog.take()
    #expect(!backlog.isUrgent)
  }

  @Test func startOfWriterIsRetried() {
    var backlog = Backlog()
    _ = backlog.add("a", a)
    backlog.writerNotStarted()
    let starts = backlog.add("b", a)
    #expect(starts)
    #expect(backlog.take().changes == ["a": a, "b": a])
  }
}

@Suite struct PacingTests {
  @Test func retriesAreAtMostAMinuteApart() {
    var retry = Pacing().retry
    #expect((1...8).map { _ in retry.next() } == [1, 2, 4, 8, 16, 32, 60, 60].map { Duration.seconds($0) })
  }
}
