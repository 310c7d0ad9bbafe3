import Testing

@testable import Gateway

@Suite struct ClaimTests {
  private func claim() -> Claim {
    var claim = Claim(run: "mine", started: "2026-01-01T00:00:10.000Z")
    #expect(claim.connected() == [.ask])
    return claim
  }

  @Test func whereNobodyIsItIsHeldAsSoonAsTheQuestionHasComeRound() {
    var claim = claim()
    #expect(claim.heard(isOnline: false) == [])
    #expect(claim.cameRound() == [.admit])
    #expect(claim.state == .held)
    #expect(claim.timeout() == [])
  }

  @Test func whatThisRunHasSaidBeforeIsItsOwn() {
    var claim = claim()
    _ = claim.heard(isOnline: true)
    _ = claim.heard(run: "mine", started: "2026-01-01T00:00:10.000Z")
    #expect(claim.cameRound() == [.admit])
  }

  @Test func aGatewayThatIsOnlineAndAnswersKeepsTheID() {
    var claim = claim()
    _ = claim.heard(isOnline: true)
    _ = claim.heard(run: "other", started: "2026-01-01T00:00:00.000Z")
    #expect(claim.cameRound() == [])
    #expect(claim.state == .asking)
    #expect(claim.answered() == [.complain, .withdraw(.seconds(10))])
    #expect(claim.state == .refused)
    #expect(claim.timeout() == [])
    claim.disconnected()
    #expect(claim.connected() == [.ask])
    #expect(claim.answered() == [.withdraw(.seconds(10))], "it was said before")
    claim.disconnected()
    _ = claim.connected()
    #expect(claim.cameRound() == [.admit], "the other one has gone")
    claim.disconnected()
    _ = claim.connected()
    #expect(claim.answered() == [.complain, .withdraw(.seconds(10))])
  }

  @Test func theAnswerMayOvertakeTheQuestion() {
    var claim = claim()
    #expect(claim.answered() == [.complain, .withdraw(.seconds(10))])
    #expect(claim.cameRound() == [])
  }

  @Test func aGatewayThatDoesNotAnswerIsGone() {
    var claim = claim()
    _ = claim.heard(isOnline: true)
    _ = claim.cameRound()
    #expect(claim.timeout() == [.admit])
  }

  @Test func aQuestionThatNeverComesRoundHoldsUpNothing() {
    var claim = claim()
    #expect(claim.timeout() == [.admit])
    #expect(claim.cameRound() == [])
  }

  @Test func aWillThatComesLateIsContradicted() {
    var claim = claim()
    _ = claim.cameRound()
    #expect(claim.heard(isOnline: true) == [])
    #expect(claim.heard(isOnline: false) == [.sayOnline])
  }

  @Test func ofTwoThatBeginTogetherTheOlderStays() {
    var claim = claim()
    _ = claim.cameRound()
    #expect(claim.heard(run: "mine", started: "2026-01-01T00:00:10.000Z") == [])
    #expect(claim.heard(run: "younger", started: "2026-01-01T00:00:10.001Z") == [.sayInfo])
    #expect(
      claim.heard(run: "older", started: "2026-01-01T00:00:09.999Z") == [.complain, .withdraw(.seconds(10))])
  }
}
