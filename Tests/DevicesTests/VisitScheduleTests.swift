import BlueZ
import EventLoop
import TestSupport
import Testing

@testable import Devices

@Suite struct VisitScheduleTests {
  private let start = Moment.now
  private func at(_ seconds: Int) -> Moment { start + .seconds(seconds) }

  /// Visited at `start`, every 600 s: overdue after 1260 s.
  private func visited() -> VisitSchedule {
    var schedule = VisitSchedule(interval: .seconds(600))
    #expect(!schedule.isOnline)
    #expect(schedule.visited(at: start) == [.online, .setTimer(.seconds(600))])
    return schedule
  }

  @Test func nothingIsScheduledBeforeTheFirstVisit() {
    var schedule = VisitSchedule(interval: .seconds(600))
    #expect(schedule.timer(at: at(10_000)) == [])
    #expect(schedule.stop() == [])
    #expect(schedule.isDue(before: at(1)))
  }

  @Test func theNextVisitIsDueAfterTheInterval() {
    var schedule = visited()
    #expect(schedule.timer(at: at(600)) == [.connect, .setTimer(.seconds(660))])
    #expect(schedule.isOnline)
    #expect(schedule.visited(at: at(603)) == [.online, .setTimer(.seconds(600))])
    #expect(schedule.timer(at: at(1203)) == [.connect, .setTimer(.seconds(660))])
  }

  @Test func isOfflineWhenAVisitIsOverdue() {
    var schedule = visited()
    _ = schedule.timer(at: at(600))
    #expect(schedule.timer(at: at(1260)) == [.offline, .connect])
    #expect(!schedule.isOnline)
    #expect(schedule.timer(at: at(5000)) == [.connect])
    #expect(schedule.visited(at: at(6000)) == [.online, .setTimer(.seconds(600))])
  }

  @Test func earlyTimerIsSetAgain() {
    var schedule = visited()
    #expect(schedule.timer(at: at(599)) == [.setTimer(.seconds(1))])
    _ = schedule.timer(at: at(600))
    #expect(schedule.timer(at: at(1259)) == [.connect, .setTimer(.seconds(1))])
  }

  @Test func deviceIsVisitedHereAfterAVisitMissedElsewhere() {
    var schedule = visited()
    #expect(schedule.visitedElsewhere(at: at(100)) == [.offline, .setTimer(.seconds(1260))])
    #expect(schedule.timer(at: at(700)) == [.setTimer(.seconds(660))])
    #expect(schedule.visitedElsewhere(at: at(700)) == [.setTimer(.seconds(1260))])
    #expect(schedule.timer(at: at(1960)) == [.connect])
  }

  @Test func stopReportsOfflineOnce() {
    var schedule = visited()
    #expect(schedule.stop() == [.offline])
    #expect(schedule.stop() == [])
  }

  private static let deadlines: [(seconds: Int, isDue: Bool)] = [
    (1, false), (599, false), (659, false), (660, true), (86_400, true),
  ]

  @Test(arguments: deadlines)
  func aCommandWaitsIfAVisitComesInTime(seconds: Int, isDue: Bool) {
    #expect(visited().isDue(before: at(seconds)) == isDue)
  }

  // MARK: The session

  private typealias Session = PeripheralSession

  private var live: Session {
    var session = Session(now: start, isOnDemand: true)
    #expect(session.seen(inRange: true) == [.connect])
    #expect(session.connected(.connected) == [.subscribe])
    #expect(session.subscribed(nil, at: start) == [.online, .cancelTimer])
    return session
  }

  private var idle: Session {
    var session = live
    #expect(session.visitEnded() == [.offline, .cancelTimer, .disconnect])
    #expect(session.disconnectCompleted() == [])
    #expect(session.state == .idle)
    return session
  }

  @Test func sessionIsIdleAfterTheVisit() {
    var session = idle
    #expect(session.seen(inRange: true) == [])
    #expect(session.seen(inRange: false) == [])
    #expect(session.disconnected(at: start) == [])
    #expect(session.adapterWentAway() == [])
    #expect(session.handedOver() == [])
    #expect(session.timer(at: start) == [])
    #expect(session.visitEnded() == [])
    #expect(session.state == .idle)
    #expect(session.stop() == [.cancelTimer])
  }

  @Test func aPermanentLinkIsNotEnded() {
    var session = Session(now: start)
    _ = session.seen(inRange: true)
    _ = session.connected(.connected)
    _ = session.subscribed(nil, at: start)
    #expect(session.visitEnded() == [])
    #expect(session.state == .live)
  }

  @Test func isConnectedOnDemand() {
    var session = idle
    #expect(session.demanded() == [.connect])
    #expect(session.state == .connecting)
    #expect(session.demanded() == [])
    session = idle
    #expect(session.reconnect() == [.connect])
  }

  @Test func outOfRangeDeviceIsConnectedWhenSeen() {
    var session = idle
    _ = session.seen(inRange: false)
    #expect(session.demanded() == [])
    #expect(session.state == .absent)
    #expect(session.seen(inRange: true) == [.connect])
  }

  @Test func demandDuringDisconnectIsMetAfterwards() {
    var session = live
    _ = session.visitEnded()
    #expect(session.demanded() == [])
    #expect(session.state == .leaving)
    #expect(session.disconnectCompleted() == [.connect])
  }

  @Test func demandBeforeTheVisitIsMetByIt() {
    var session = live
    #expect(session.unresponsive() == [.offline, .report(.unresponsive), .cancelTimer, .disconnect])
    #expect(session.demanded() == [])
    _ = session.disconnectCompleted()
    #expect(session.state == .waiting)
    _ = session.timer(at: start)
    _ = session.connected(.connected)
    _ = session.subscribed(nil, at: start)
    _ = session.visitEnded()
    #expect(session.disconnectCompleted() == [] && session.state == .idle)
  }

  @Test func failedVisitIsRetried() {
    var session = idle
    _ = session.demanded()
    let failed = session.connected(.failed(.transient("x")))
    #expect(failed.first == .report(.connectFailed("x")) && session.state == .waiting)
    #expect(session.timer(at: start) == [.connect])
  }

  @Test func deviceVisitedByAnotherGatewayIsLeftIdle() {
    var session = Session(now: start, isOnDemand: true)
    #expect(session.handedOver() == [.cancelTimer])
    #expect(session.state == .idle)
    #expect(session.seen(inRange: true) == [])
    session = live
    #expect(session.handedOver() == [.offline, .cancelTimer, .disconnect])
    #expect(session.disconnectCompleted() == [] && session.state == .idle)
  }

  @Test func visitThatAnotherGatewayHasMadeFirstIsGivenUp() {
    // The attempt to connect goes on; what it makes is ended, or is nothing.
    for result in [Session.Connection.connected, .unsuitable] {
      var session = Session(now: start, isOnDemand: true)
      _ = session.seen(inRange: true)
      #expect(session.handedOver() == [] && session.state == .connecting)
      #expect(session.connected(result) == [.cancelTimer, .disconnect])
      #expect(session.disconnectCompleted() == [] && session.state == .idle)
      #expect(session.demanded() == [.connect])
      #expect(session.connected(.connected) == [.subscribe])
    }
    var session = Session(now: start, isOnDemand: true)
    _ = session.seen(inRange: true)
    _ = session.handedOver()
    #expect(session.connected(.failed(.transient("x"))) == [] && session.state == .idle)

    session = Session(now: start, isOnDemand: true)
    _ = session.seen(inRange: true)
    _ = session.connected(.connected)
    #expect(session.handedOver() == [.cancelTimer, .disconnect])
    #expect(session.disconnectCompleted() == [] && session.state == .idle)

    session = live
    _ = session.unresponsive()
    #expect(session.handedOver() == [] && session.state == .leaving)
    #expect(session.disconnectCompleted() == [] && session.state == .idle, "it is not tried again")

    session = Session(now: start, isOnDemand: true)
    _ = session.seen(inRange: true)
    _ = session.handedOver()
    #expect(session.demanded() == [], "a visit is overdue")
    #expect(session.connected(.connected) == [.subscribe])
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
