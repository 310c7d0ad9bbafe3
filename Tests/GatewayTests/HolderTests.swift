import Configuration
import Testing

@testable import Gateway

@Suite struct HolderTests {
  private let this = GatewayID("this")!
  private let other = GatewayID("other")!

  private func notice(_ gateway: GatewayID, since: String? = nil) -> Holder.Notice {
    Holder.Notice(gateway: gateway, area: "Hall", connectedSince: since, wanted: ["period": 500])
  }

  @Test func whoGoesLiveHoldsIt() {
    var holder = Holder(this)
    #expect(holder.party == .nobody)
    #expect(holder.wentLive() == false)
    #expect(holder.party == .this)
    #expect(holder.wentLive() == false, "it was here before")
  }

  @Test func whatAnEarlierRunSaidIsThisGatewaysOwn() {
    var holder = Holder(this)
    #expect(holder.heard(notice(this, since: "2026-01-01T00:00:00.000Z"), liveSince: nil) == nil)
    #expect(holder.party == .this)
  }

  @Test func aDeviceThatIsHeldElsewhereIsLeftToTheOther() {
    var holder = Holder(this)
    _ = holder.wentLive()
    #expect(holder.heard(notice(other, since: "2026-01-01T00:00:00.000Z"), liveSince: nil) == .standBy)
    #expect(holder.party == .other(other))
    #expect(holder.heard(notice(this), liveSince: nil) == nil, "a late echo")
    #expect(holder.party == .other(other))
  }

  @Test func itComesBackWithTheNewsOfWhereItWas() {
    var holder = Holder(this)
    _ = holder.heard(notice(other), liveSince: nil)
    #expect(holder.wentLive() == true)
    #expect(holder.last == notice(other))
    #expect(holder.party == .this)
  }

  @Test func theLaterLinkIsTheOneThatIs() {
    var holder = Holder(this)
    _ = holder.wentLive()
    let here = "2026-01-01T00:00:10.000Z"
    #expect(holder.heard(notice(other, since: "2026-01-01T00:00:09.999Z"), liveSince: here) == .sayAgain)
    #expect(holder.heard(notice(other), liveSince: here) == .sayAgain, "the other's link has ended")
    #expect(holder.party == .this)
    #expect(holder.heard(notice(other, since: "2026-01-01T00:00:10.001Z"), liveSince: here) == .standBy)
    #expect(holder.party == .other(other))
  }

  @Test func anInfoThatWasTakenAwayIsNobodys() {
    var holder = Holder(this)
    _ = holder.heard(notice(other), liveSince: nil)
    #expect(holder.heard(nil, liveSince: nil) == nil)
    #expect(holder.party == .nobody)
    _ = holder.wentLive()
    #expect(holder.heard(nil, liveSince: "2026-01-01T00:00:10.000Z") == .sayAgain)
    #expect(holder.party == .this)
  }
}
