import EventLoop
import Testing

@testable import Store

private let start = Moment.now

/// A moment of a test.
private func at(_ milliseconds: Int) -> Moment { start + .milliseconds(milliseconds) }

@Suite struct BacklogTests {
  private let a = Change.put([1])
  private let b = Change.put([2])
  private let new = Backlog<Change>(
    Pacing(
      gather: .milliseconds(50), apart: .seconds(1), early: 3,
      retry: BackOff(first: .seconds(2), longest: .seconds(4), spread: 0)),
    at: start)

  // MARK: Changes

  @Test func newestChangeOfEachKeyIsTaken() {
    var backlog = new
    #expect(backlog.deadline == nil)
    backlog.add("a", a, at: start)
    backlog.add("b", a, at: start)
    backlog.add("a", b, at: start)
    #expect(backlog.count == 2)
    let changes = backlog.take(at: at(50))
    #expect(changes == ["a": b, "b": a])
    #expect(backlog.count == 2)
    backlog.written(at: at(60))
    #expect(backlog.count == 0)
    #expect(backlog.deadline == nil)
  }

  @Test func aChangeDuringATransactionWaitsForTheNext() {
    var backlog = new
    backlog.add("a", a, at: start)
    _ = backlog.take(at: at(50))
    backlog.add("b", .delete, isUrgent: true, at: at(60))
    #expect(backlog.deadline == nil, "one transaction at a time")
    backlog.written(at: at(200))
    #expect(backlog.deadline == at(250))
    let changes = backlog.take(at: at(250))
    #expect(changes == ["b": .delete])
  }

  @Test func failedWriteIsRetriedUnlessANewerOneExists() {
    var backlog = new
    backlog.add("a", a, at: start)
    backlog.add("b", a, at: start)
    _ = backlog.take(at: at(50))
    backlog.add("a", .delete, at: at(60))
    #expect(backlog.count == 2)
    backlog.failed(at: at(100))
    #expect(backlog.count == 2)
    #expect(backlog.deadline == at(2100))
    let changes = backlog.take(at: at(2100))
    #expect(changes == ["a": .delete, "b": a])
  }

  @Test func changesAfterCloseAreIgnored() {
    var backlog = new
    backlog.add("a", a, at: start)
    backlog.close()
    backlog.add("b", a, at: start)
    #expect(backlog.deadline == nil, "its owner takes what waits at once")
    let changes = backlog.take(at: start)
    #expect(changes == ["a": a])
  }

  // MARK: Pacing

  @Test func whatMayWaitIsWrittenWithTheNextChange() {
    var backlog = new
    backlog.add("a", a, patience: .seconds(600), at: start)
    #expect(backlog.deadline == at(600_000))
    backlog.add("b", a, at: at(100))
    backlog.add("a", b, patience: .seconds(600), at: at(120))
    #expect(backlog.deadline == at(150))
    let changes = backlog.take(at: at(150))
    #expect(changes == ["a": b, "b": a])
  }

  @Test func changesAreGatheredFromTheFirst() {
    var backlog = new
    backlog.add("a", a, at: start)
    backlog.add("b", a, at: at(49))
    #expect(backlog.deadline == at(50))
  }

  @Test func transactionsAreASecondApart() {
    var backlog = new
    backlog.write(at: at(50))
    backlog.add("a", b, at: at(60))
    #expect(backlog.deadline == at(1050))
    backlog.write(at: at(1050))
    backlog.add("a", a, at: at(2040))
    #expect(backlog.deadline == at(2090), "it is gathered also after the pause")
  }

  @Test func urgentChangeIsUrgentUntilItIsTaken() {
    var backlog = new
    backlog.write(at: start)
    backlog.add("a", a, at: at(100))
    #expect(backlog.deadline == at(1000))
    backlog.add("b", a, isUrgent: true, at: at(200))
    backlog.add("c", a, at: at(210))
    backlog.add("d", a, isUrgent: true, at: at(220))
    #expect(backlog.deadline == at(250))
    let changes = backlog.take(at: at(250))
    #expect(changes.count == 4)
    backlog.written(at: at(250))
    backlog.add("a", a, at: at(300))
    #expect(backlog.deadline == at(1250))
  }

  @Test func urgentChangeDoesNotDelayOthers() {
    var backlog = new
    backlog.write(at: start)
    backlog.add("a", a, at: at(900))
    backlog.add("b", a, isUrgent: true, at: at(980))
    #expect(backlog.deadline == at(1000))
  }

  @Test func manyUrgentChangesWaitAsOthersDo() {
    var (backlog, now) = (new, 0)
    backlog.write(at: start)
    /// Puts an urgent change right after the last transaction.
    /// - Returns: the time until it is written.
    func wait() -> Int? {
      backlog.add("a", a, isUrgent: true, at: at(now))
      let wait = [50, 1000].first { backlog.deadline == at(now + $0) }
      now += wait ?? 0
      backlog.write(at: at(now))
      return wait
    }
    let waits = (0..<8).map { _ in wait() }
    #expect(waits == [50, 50, 50, 1000, 50, 1000, 50, 1000], "each pause allows one more")
    now += 1500
    backlog.write(at: at(now))
    let afterAPause = (0..<3).map { _ in wait() }
    #expect(afterAPause == [50, 50, 1000])
    now += 100_000
    backlog.write(at: at(now))
    let afterManyPauses = (0..<4).map { _ in wait() }
    #expect(afterManyPauses == [50, 50, 50, 1000], "three in a row, at most")
  }

  // MARK: Failures

  @Test func attemptsAreFurtherAndFurtherApartUntilOneSucceeds() {
    var (backlog, now) = (new, 0)
    backlog.add("a", a, at: start)
    for delay in [2000, 4000, 4000] {
      _ = backlog.take(at: at(now))
      backlog.failed(at: at(now))
      backlog.add("b", a, isUrgent: true, at: at(now))
      now += delay
      #expect(backlog.deadline == at(now), "also of what is urgent")
    }
    backlog.write(at: at(now))
    backlog.add("a", b, isUrgent: true, at: at(now))
    #expect(backlog.deadline == at(now + 50))
    _ = backlog.take(at: at(now))
    backlog.failed(at: at(now))
    #expect(backlog.deadline == at(now + 2000))
  }
}

extension Backlog<Change> {
  /// A transaction that takes no time.
  fileprivate mutating func write(at now: Moment) {
    _ = take(at: now)
    written(at: now)
  }
}

@Suite struct PacingTests {
  @Test func retriesAreAtMostAMinuteApart() {
    var retry = Pacing().retry
    #expect((1...8).map { _ in retry.next() } == [1, 2, 4, 8, 16, 32, 60, 60].map { Duration.seconds($0) })
  }
}
