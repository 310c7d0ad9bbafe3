import Log
import Testing

@testable import Bridge

@Suite struct DuplicateIDGuardTests {
  private func time(_ text: String) -> Timestamp { Timestamp(text)! }

  private func connected() -> DuplicateIDGuard {
    var idGuard = DuplicateIDGuard(run: "mine", started: time("2026-01-01T00:00:10.000Z"))
    idGuard.connected()
    #expect(idGuard.state == .waiting)
    return idGuard
  }

  @Test func gatewayAloneIsAdmittedWhenTheBarrierArrives() {
    var idGuard = connected()
    #expect(idGuard.received(isOnline: false) == [])
    #expect(idGuard.barrierArrived() == [.admit])
    #expect(idGuard.state == .admitted)
    #expect(idGuard.timeout() == [])
  }

  @Test func earlierMessagesOfThisRunCountAsOwn() {
    var idGuard = connected()
    _ = idGuard.received(isOnline: true)
    _ = idGuard.received(run: "mine", started: time("2026-01-01T00:00:10.000Z"))
    #expect(idGuard.barrierArrived() == [.admit])
  }

  @Test func gatewayThatIsOnlineAndAnswersKeepsTheID() {
    var idGuard = connected()
    _ = idGuard.received(isOnline: true)
    _ = idGuard.received(run: "other", started: time("2026-01-01T00:00:00.000Z"))
    #expect(idGuard.barrierArrived() == [])
    #expect(idGuard.state == .asking)
    #expect(idGuard.answered() == [.reportConflict, .reconnect(after: .seconds(10))])
    #expect(idGuard.state == .refused)
    #expect(idGuard.timeout() == [])
    idGuard.disconnected()
    idGuard.connected()
    #expect(idGuard.state == .waiting)
    #expect(idGuard.answered() == [.reconnect(after: .seconds(10))], "it was reported before")
    idGuard.disconnected()
    idGuard.connected()
    #expect(idGuard.barrierArrived() == [.admit], "the other one has gone")
    idGuard.disconnected()
    idGuard.connected()
    #expect(idGuard.answered() == [.reportConflict, .reconnect(after: .seconds(10))])
  }

  @Test func theAnswerMayComeBeforeTheBarrier() {
    var idGuard = connected()
    #expect(idGuard.answered() == [.reportConflict, .reconnect(after: .seconds(10))])
    #expect(idGuard.barrierArrived() == [])
  }

  @Test func sessionIsAdmittedIfTheOtherGatewayDoesNotAnswer() {
    var idGuard = connected()
    _ = idGuard.received(isOnline: true)
    _ = idGuard.barrierArrived()
    #expect(idGuard.timeout() == [.admit])
  }

  @Test func sessionIsAdmittedIfTheBarrierNeverArrives() {
    var idGuard = connected()
    #expect(idGuard.timeout() == [.admit])
    #expect(idGuard.barrierArrived() == [])
  }

  @Test func lateWillIsCorrected() {
    var idGuard = connected()
    _ = idGuard.barrierArrived()
    #expect(idGuard.received(isOnline: true) == [])
    #expect(idGuard.received(isOnline: false) == [.republishOnline])
  }

  @Test func olderOfTwoSimultaneousStartsKeepsTheID() {
    var idGuard = connected()
    _ = idGuard.barrierArrived()
    #expect(idGuard.received(run: "mine", started: time("2026-01-01T00:00:10.000Z")) == [])
    #expect(idGuard.received(run: "younger", started: time("2026-01-01T00:00:10.001Z")) == [.republishInfo])
    let older = (run: "older", started: time("2026-01-01T00:00:09.999Z"))
    #expect(idGuard.received(run: older.run, started: older.started) == [.ask, .republishInfo])
    #expect(idGuard.isAdmitted)
    #expect(idGuard.received(run: older.run, started: older.started) == [], "it is asked once")
    #expect(idGuard.barrierArrived() == [])
    #expect(idGuard.answered() == [.reportConflict, .reconnect(after: .seconds(10))])
    #expect(!idGuard.isAdmitted)
  }

  /// A Pi begins in 1970, and publishes its start by the clock as it was set since.
  @Test func twoGatewaysWithAnIDAgreeWhichIsTheOlderAfterTheClockWasSet() {
    var idGuard = DuplicateIDGuard(run: "mine", started: time("1970-01-01T00:00:10.000Z"))
    idGuard.connected()
    _ = idGuard.barrierArrived()
    idGuard.started = time("2026-01-01T00:00:10.000Z")
    #expect(
      idGuard.received(run: "older", started: time("2026-01-01T00:00:09.999Z")) == [.ask, .republishInfo])
  }

  /// As of a bridge between brokers, which was interrupted.
  @Test func oldInfoOfARunThatHasEndedIsNoConflict() {
    var idGuard = connected()
    _ = idGuard.barrierArrived()
    for month in ["01", "02"] {
      let started = time("2025-\(month)-01T00:00:00.000Z")
      #expect(idGuard.received(run: "gone", started: started) == [.ask, .republishInfo])
      #expect(idGuard.received(isOnline: false) == [.republishOnline])
      #expect(idGuard.barrierArrived() == [])
      #expect(idGuard.timeout() == [] && idGuard.state == .admitted)
      #expect(idGuard.answered() == [], "it was not asked")
    }
    #expect(!idGuard.hasConflict)
  }

  /// As with a bridge between brokers that passes infos, and no requests.
  @Test func gatewaysThatCannotAskEachOtherDoNotPublishWithoutEnd() {
    var idGuard = connected()
    _ = idGuard.barrierArrived()
    let expected: [[DuplicateIDGuard.Action]] = [
      [.ask, .republishInfo], [.reportSilent], [], [.ask, .republishInfo], [],
    ]
    for (round, actions) in expected.enumerated() {
      if round == 3 {
        idGuard.disconnected()
        idGuard.connected()
        _ = idGuard.barrierArrived()
      }
      #expect(idGuard.received(run: "older", started: time("2026-01-01T00:00:09.999Z")) == actions)
      #expect(idGuard.received(run: "oldest", started: time("2026-01-01T00:00:00.000Z")) == [])
      _ = idGuard.timeout()
    }
    #expect(idGuard.state == .admitted && !idGuard.hasConflict)
  }

  @Test func conflictLastsUntilThisGatewayIsAdmitted() {
    var idGuard = connected()
    #expect(!idGuard.hasConflict)
    _ = idGuard.answered()
    #expect(idGuard.hasConflict)
    idGuard.disconnected()
    #expect(idGuard.hasConflict, "this gateway has withdrawn")
    idGuard.connected()
    #expect(idGuard.answered() == [.reconnect(after: .seconds(10))], "it was reported before")
    #expect(idGuard.hasConflict)
    idGuard.disconnected()
    idGuard.connected()
    _ = idGuard.barrierArrived()
    #expect(!idGuard.hasConflict)
  }
}
