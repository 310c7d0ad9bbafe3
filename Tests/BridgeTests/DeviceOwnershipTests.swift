import Configuration
import JSON
import Testing

@testable import Bridge
@testable import Devices

@Suite struct DeviceOwnershipTests {
  private let this = GatewayID("this")!
  private let other = GatewayID("other")!

  private func notice(_ gateway: GatewayID, since: String? = nil) -> DeviceOwnership.Notice {
    DeviceOwnership.Notice(
      gateway: gateway, area: "Hall", liveSince: since,
      desired: JSONObject([JSONObject.Member(name: "period", value: .integer(500))]))
  }

  @Test func gatewayOwnsADeviceThatIsOnlineThere() {
    var ownership = DeviceOwnership(this)
    #expect(ownership.owner == .unknown)
    #expect(ownership.cameOnline() == false)
    #expect(ownership.owner == .this)
    #expect(ownership.cameOnline() == false, "it was here before")
  }

  @Test func infoOfAnEarlierRunCountsAsOwn() {
    var ownership = DeviceOwnership(this)
    #expect(ownership.received(notice(this, since: "2026-01-01T00:00:00.000Z"), liveSince: nil) == nil)
    #expect(ownership.owner == .this)
  }

  @Test func deviceOwnedByAnotherGatewayIsReleased() {
    var ownership = DeviceOwnership(this)
    _ = ownership.cameOnline()
    #expect(ownership.received(notice(other, since: "2026-01-01T00:00:00.000Z"), liveSince: nil) == .release)
    #expect(ownership.owner == .other(other))
    #expect(ownership.received(notice(this), liveSince: nil) == nil, "an outdated info of this gateway")
    #expect(ownership.owner == .other(other))
  }

  @Test func previousOwnerIsKnownWhenTheDeviceReturns() {
    var ownership = DeviceOwnership(this)
    _ = ownership.received(notice(other), liveSince: nil)
    #expect(ownership.cameOnline() == true)
    #expect(ownership.last == notice(other))
    #expect(ownership.owner == .this)
  }

  @Test func laterLinkDeterminesTheOwner() {
    var ownership = DeviceOwnership(this)
    _ = ownership.cameOnline()
    let here = "2026-01-01T00:00:10.000Z"
    #expect(
      ownership.received(notice(other, since: "2026-01-01T00:00:09.999Z"), liveSince: here) == .republish)
    #expect(ownership.received(notice(other), liveSince: here) == .republish, "the other's link has ended")
    #expect(ownership.owner == .this)
    #expect(ownership.received(notice(other, since: "2026-01-01T00:00:10.001Z"), liveSince: here) == .release)
    #expect(ownership.owner == .other(other))
  }

  @Test func twoLinksOfTheSameAgeHaveOneOwner() {
    let time = "2026-01-01T00:00:10.000Z"
    var (here, there) = (DeviceOwnership(this), DeviceOwnership(other))
    _ = here.cameOnline()
    _ = there.cameOnline()
    #expect(here.received(notice(other, since: time), liveSince: time) == .republish)
    #expect(there.received(notice(this, since: time), liveSince: time) == .release)
  }

  @Test func gatewayThatVisitedTheDeviceKeepsIt() {
    let (there, here) = ("2026-01-01T00:00:05.000Z", "2026-01-01T00:00:10.000Z")
    var ownership = DeviceOwnership(this)
    _ = ownership.cameOnline()
    #expect(ownership.received(notice(other), liveSince: here, keepsOwner: true) == .republish, "no visit")
    #expect(ownership.received(notice(other, since: there), liveSince: here, keepsOwner: true) == .release)
    #expect(ownership.owner == .other(other))
    // Taken over when a visit was overdue: the same `info` again is no visit.
    _ = ownership.cameOnline()
    #expect(ownership.received(notice(other, since: there), liveSince: here, keepsOwner: true) == .republish)
    #expect(ownership.owner == .this)
  }

  @Test func infoWithoutANewVisitIsTold() {
    var ownership = DeviceOwnership(this)
    for (since, isNew) in [
      ("2026-01-01T00:00:05.000Z", true), ("2026-01-01T00:00:05.000Z", false),
      ("2026-01-01T00:00:10.000Z", true), (nil, false), (nil, false),
    ] {
      #expect(ownership.received(notice(other, since: since), liveSince: nil) == .release)
      #expect(ownership.hasNewLink == isNew)
    }
    _ = ownership.received(notice(GatewayID("third")!, since: "2026-01-01T00:00:10.000Z"), liveSince: nil)
    #expect(ownership.hasNewLink)
  }

  @Test func clearedInfoLeavesTheDeviceWithoutOwner() {
    var ownership = DeviceOwnership(this)
    _ = ownership.received(notice(other), liveSince: nil)
    #expect(ownership.received(nil, liveSince: nil) == nil)
    #expect(ownership.owner == .unknown)
    _ = ownership.cameOnline()
    #expect(ownership.received(nil, liveSince: "2026-01-01T00:00:10.000Z") == .republish)
    #expect(ownership.owner == .this)
  }
}
