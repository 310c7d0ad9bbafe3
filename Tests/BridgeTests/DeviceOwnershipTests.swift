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
      gateway: gateway, area: "Hall", connectedSince: since,
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
