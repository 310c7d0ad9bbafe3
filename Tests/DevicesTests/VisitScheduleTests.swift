import EventLoop
import Testing

@testable import Devices

@LoopActor @Suite struct VisitScheduleTests {
  private let start = Moment.now
  private func at(_ seconds: Int) -> Moment { start + .seconds(seconds) }

  /// Visited at `start`, every 600 s: overdue after 1260 s.
  private func visited() -> VisitSchedule {
    var schedule = VisitSchedule(interval: .seconds(600))
    #expect(!schedule.isOnline)
    #expect(schedule.visited(at: start) == [.online] && schedule.deadline == at(600))
    return schedule
  }

  @Test func nothingIsScheduledBeforeTheFirstVisit() {
    var schedule = VisitSchedule(interval: .seconds(600))
    #expect(schedule.deadline == nil && schedule.timer(at: at(10_000)) == [])
    #expect(schedule.stop() == [])
    #expect(schedule.isDue(before: at(1)))
  }

  @Test func theNextVisitIsDueAfterTheInterval() {
    var schedule = visited()
    #expect(schedule.timer(at: at(599)) == [])
    #expect(schedule.timer(at: at(600)) == [.connect] && schedule.isOnline)
    #expect(schedule.visited(at: at(603)) == [.online] && schedule.deadline == at(1203))
    #expect(schedule.timer(at: at(1203)) == [.connect])
  }

  @Test func isOfflineWhenAVisitIsOverdue() {
    var schedule = visited()
    _ = schedule.timer(at: at(600))
    #expect(schedule.deadline == at(1260))
    #expect(schedule.timer(at: at(1260)) == [.offline, .connect])
    // The session connects as soon as it can.
    #expect(!schedule.isOnline && schedule.deadline == nil)
    #expect(schedule.visited(at: at(6000)) == [.online] && schedule.deadline == at(6600))
  }

  @Test func deviceIsVisitedHereAfterAVisitMissedElsewhere() {
    var schedule = visited()
    #expect(schedule.visitedElsewhere(at: at(100)) == [.offline] && schedule.deadline == at(1360))
    #expect(schedule.timer(at: at(700)) == [])
    #expect(schedule.visitedElsewhere(at: at(700)) == [] && schedule.deadline == at(1960))
    #expect(schedule.timer(at: at(1960)) == [.connect])
  }

  @Test func whatIsOnlyHeardIsOnlineForSomeTimeAfterEachValue() {
    var schedule = VisitSchedule(interval: nil)
    #expect(schedule.heard(for: .seconds(60), at: start) == [.online] && schedule.isOnline)
    #expect(schedule.heard(for: .seconds(60), at: at(50)) == [] && schedule.deadline == at(110))
    #expect(schedule.timer(at: at(60)) == [] && schedule.timer(at: at(110)) == [.offline])
    #expect(!schedule.isOnline && schedule.deadline == nil)
    #expect(schedule.heard(for: .seconds(60), at: at(200)) == [.online])
    #expect(schedule.stop() == [.offline])
  }

  @Test func stopReportsOfflineOnce() {
    var schedule = visited()
    #expect(schedule.stop() == [.offline] && schedule.deadline == nil)
    #expect(schedule.stop() == [])
  }

  @Test func isOnlineBetweenTwoTurnsUntilTheNextOneIsOverdue() {
    var schedule = VisitSchedule(interval: nil)
    #expect(schedule.visited(at: start) == [.online] && schedule.deadline == nil)
    schedule.turnEnds(nextAfter: .seconds(100), at: at(60))
    #expect(schedule.linkEnded() == [] && schedule.isOnline && schedule.deadline == at(320))
    #expect(schedule.visited(at: at(170)) == [.online] && schedule.deadline == nil)
    schedule.turnEnds(nextAfter: .seconds(100), at: at(230))
    #expect(schedule.linkEnded() == [] && schedule.timer(at: at(489)) == [])
    #expect(schedule.timer(at: at(490)) == [.offline] && schedule.deadline == nil)
  }

  @Test func withoutVisitsItIsOfflineWhenItsLinkEnds() {
    var schedule = VisitSchedule(interval: nil)
    _ = schedule.visited(at: start)
    #expect(schedule.linkEnded() == [.offline] && schedule.linkEnded() == [])
    #expect(!schedule.isDue(before: at(100_000)))
    _ = schedule.visited(at: at(10))
    schedule.turnEnds(nextAfter: .seconds(100), at: at(20))
    #expect(schedule.visitedElsewhere(at: at(30)) == [.offline] && schedule.deadline == nil)
  }

  private nonisolated static let deadlines: [(seconds: Int, isDue: Bool)] = [
    (1, false), (599, false), (659, false), (660, true), (86_400, true),
  ]

  @Test(arguments: deadlines)
  func aCommandWaitsIfAVisitComesInTime(seconds: Int, isDue: Bool) {
    #expect(visited().isDue(before: at(seconds)) == isDue)
  }

  // MARK: Commands of a sequence

  @Test func commandForThisLinkDoesNotWaitForANewOne() {
    var bench = Bench()
    #expect(bench.commandForThisLink("a", 5) == ["a: failed the link was lost"])
    _ = bench.linkUp()
    _ = bench.holds(1)
    #expect(bench.commandForThisLink("b", 5) == ["write 5"])
    #expect(bench.linkDown() == ["b: failed the link was lost"])
    #expect(bench.linkUp() == ["read"])
    #expect(bench.holds(1) == ["publish 1"])
  }
}
