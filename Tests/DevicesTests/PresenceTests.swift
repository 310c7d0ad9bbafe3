import EventLoop
import Testing

@testable import Devices

@LoopActor @Suite struct PresenceTests {
  private let start = Moment.now
  private func at(_ seconds: Int) -> Moment { start + .seconds(seconds) }

  /// Visited at `start`, every 600 s: overdue after 1260 s.
  private func visited() -> Presence {
    var presence = Presence(interval: .seconds(600))
    #expect(!presence.isOnline)
    #expect(presence.visited(at: start) == [.online] && presence.deadline == nil)
    #expect(presence.linkEnded(at: at(2)) == [] && presence.deadline == at(600))
    return presence
  }

  @Test func nothingIsScheduledBeforeTheFirstVisit() {
    var presence = Presence(interval: .seconds(600))
    #expect(presence.deadline == nil && presence.timer(at: at(10_000)) == [])
    #expect(presence.stop() == [])
    #expect(presence.isDue(before: at(1)))
  }

  @Test func theNextVisitIsDueAfterTheInterval() {
    var presence = visited()
    #expect(presence.timer(at: at(599)) == [])
    #expect(presence.timer(at: at(600)) == [.visit] && presence.isOnline)
    #expect(presence.visited(at: at(603)) == [.online])
    #expect(presence.linkEnded(at: at(605)) == [] && presence.deadline == at(1203))
    #expect(presence.timer(at: at(1203)) == [.visit])
  }

  @Test func aVisitThatLastsLongerThanTheIntervalIsFollowedByTheNextOne() {
    var presence = visited()
    _ = presence.timer(at: at(600))
    _ = presence.visited(at: at(603))
    #expect(presence.timer(at: at(4000)) == [] && presence.isOnline, "the link lasts")
    #expect(presence.linkEnded(at: at(4000)) == [] && presence.deadline == at(4000))
    #expect(presence.timer(at: at(4000)) == [.visit] && presence.isOnline)
    #expect(presence.deadline == at(4660))
    #expect(presence.timer(at: at(4660)) == [.offline, .visit])
  }

  @Test func isOfflineWhenAVisitIsOverdue() {
    var presence = visited()
    _ = presence.timer(at: at(600))
    #expect(presence.deadline == at(1260))
    #expect(presence.timer(at: at(1260)) == [.offline, .visit])
    // The session connects as soon as it can.
    #expect(!presence.isOnline && presence.deadline == nil)
    #expect(presence.visited(at: at(6000)) == [.online])
    #expect(presence.linkEnded(at: at(6002)) == [] && presence.deadline == at(6600))
  }

  @Test func deviceIsVisitedHereAfterAVisitMissedElsewhere() {
    var presence = visited()
    #expect(presence.visitedElsewhere(at: at(100)) == [.offline] && presence.deadline == at(1360))
    #expect(presence.timer(at: at(700)) == [])
    #expect(presence.visitedElsewhere(at: at(700)) == [] && presence.deadline == at(1960))
    #expect(presence.timer(at: at(1960)) == [.visit])
  }

  @Test func whatIsOnlyHeardIsOnlineForSomeTimeAfterEachValue() {
    var presence = Presence(interval: nil)
    #expect(presence.heard(for: .seconds(60), at: start) == [.online] && presence.isOnline)
    #expect(presence.heard(for: .seconds(60), at: at(50)) == [] && presence.deadline == at(110))
    #expect(presence.timer(at: at(60)) == [] && presence.timer(at: at(110)) == [.offline])
    #expect(!presence.isOnline && presence.deadline == nil)
    _ = presence.changeLimit(to: nil)
    #expect(presence.deadline == nil, "it is offline")
    #expect(presence.heard(for: .seconds(60), at: at(200)) == [.online])
    _ = presence.changeLimit(to: .seconds(20))
    #expect(presence.deadline == at(220))
    _ = presence.changeLimit(to: nil)
    #expect(presence.deadline == nil && presence.isOnline)
    #expect(presence.stop() == [.offline])
  }

  @Test func stopReportsOfflineOnce() {
    var presence = visited()
    #expect(presence.stop() == [.offline] && presence.deadline == nil)
    #expect(presence.stop() == [])
  }

  @Test func isOnlineBetweenTwoTurnsUntilTheNextOneIsOverdue() {
    var presence = Presence(interval: nil)
    #expect(presence.visited(at: start) == [.online] && presence.deadline == nil)
    _ = presence.turnEnds(nextAfter: .seconds(100), at: at(60))
    #expect(presence.linkEnded(at: at(61)) == [] && presence.isOnline && presence.deadline == at(320))
    #expect(presence.visited(at: at(170)) == [.online] && presence.deadline == nil)
    _ = presence.turnEnds(nextAfter: .seconds(100), at: at(230))
    #expect(presence.linkEnded(at: at(231)) == [] && presence.timer(at: at(489)) == [])
    #expect(presence.timer(at: at(490)) == [.offline] && presence.deadline == nil)
  }

  @Test func withoutVisitsItIsOfflineWhenItsLinkEnds() {
    var presence = Presence(interval: nil)
    _ = presence.visited(at: start)
    #expect(presence.linkEnded(at: at(1)) == [.offline] && presence.linkEnded(at: at(2)) == [])
    #expect(!presence.isDue(before: at(100_000)))
    _ = presence.visited(at: at(10))
    _ = presence.turnEnds(nextAfter: .seconds(100), at: at(20))
    #expect(presence.visitedElsewhere(at: at(30)) == [.offline] && presence.deadline == nil)
  }

  private nonisolated static let deadlines: [(seconds: Int, isDue: Bool)] = [
    (1, false), (599, false), (659, false), (660, true), (86_400, true),
  ]

  @Test(arguments: deadlines)
  func aCommandWaitsIfAVisitComesInTime(seconds: Int, isDue: Bool) {
    #expect(visited().isDue(before: at(seconds)) == isDue)
  }

  @Test func aCommandDoesNotWaitForAVisitThatTheOtherGatewayWouldMakeFirst() {
    var presence = visited()
    _ = presence.visitedElsewhere(at: start)
    #expect(!presence.isDue(before: at(1319)) && presence.isDue(before: at(1320)))
  }

  // MARK: Commands of a sequence

  @Test func commandForThisLinkDoesNotWaitForANewOne() {
    var bench = Bench()
    #expect(bench.commandForThisLink("a", 5) == ["a: failed the link was lost"])
    _ = bench.linkUp()
    _ = bench.holds(1)
    #expect(bench.commandForThisLink("b", 5) == ["write 5"])
    #expect(bench.linkDown() == ["b: timeout the link was lost during the write: it may have taken effect"])
    #expect(bench.linkUp() == ["read"])
    #expect(bench.holds(1) == ["publish 1"])
  }
}
