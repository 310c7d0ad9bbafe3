import Configuration
import GATT
import Log
import Testing

@testable import Bridge
@testable import Devices

@Suite struct OwnershipMachineTests {
  private typealias Machine = OwnershipMachine
  private typealias Notice = OwnershipMachine.Notice
  private static let this = GatewayID("this")!
  private static let other = GatewayID("other")!
  private static let address = BluetoothAddress(truncating: 1)
  private static let id = DeviceID(address)

  /// A machine, and what is the case at its gateway.
  private struct Bench {
    var machine = Machine(OwnershipMachineTests.this, OwnershipMachineTests.id, OwnershipMachineTests.address)
    var here = Machine.Here()

    mutating func online(_ second: Int?) -> [Machine.Action] {
      here.onlineSince = second.map(time)
      return machine.availabilityChanged(here)
    }

    mutating func received(_ notice: Notice?, isOwnerOnline: Bool = true) -> [Machine.Action] {
      guard let notice else { return machine.cleared(OwnershipMachineTests.id) }
      var here = here
      if isOwnerOnline { here.online.insert(notice.gateway) } else { here.online.remove(notice.gateway) }
      return machine.received(notice, here)
    }

    /// Another gateway is online.
    mutating func settle() -> [Machine.Action] {
      var here = here
      here.online.insert(OwnershipMachineTests.other)
      return machine.settle(here)
    }
  }

  private static func notice(
    _ gateway: GatewayID = other, under id: DeviceID = id, since second: Int? = nil,
    of address: BluetoothAddress? = address, revision: Int = 0, isDeleted: Bool = false
  ) -> Notice {
    Notice(
      gateway: gateway, id: id, area: "Hall", liveSince: second.map(time), address: address,
      handover: Handover(isDeleted: isDeleted, revision: revision))
  }

  private static func takenOver(_ notice: Notice, hasNewLink: Bool = true) -> [Machine.Action] {
    [.release, .setOwner(notice.handover, isTakenOver: true, hasNewLink: hasNewLink)]
  }

  /// Between its turns a device stays online.
  @Test("Where clocks differ, it is owned by the gateway that is connected to it, not by the one that was")
  func clocksThatDiffer() {
    var (ahead, behind) = (Bench(), Bench())
    var notice = Self.notice(since: 1)
    notice.hasLink = true
    _ = ahead.online(99)
    _ = ahead.settle()
    #expect(ahead.received(notice) == Self.takenOver(notice))
    notice = Self.notice(since: 99)
    behind.here.hasLink = true
    _ = behind.online(1)
    _ = behind.settle()
    #expect(behind.received(notice) == [.setOwner(notice.handover), .publish])
    // Nobody is connected to it.
    behind.here.hasLink = false
    #expect(behind.received(notice) == Self.takenOver(notice))
  }

  /// Several gateways hear it: it stays with its owner while that one hears it, and no other hears it much better.
  @Test func oneThatIsOnlyHeardStaysWithItsOwner() {
    var bench = Bench()
    bench.here = Machine.Here(onlineSince: time(3), isExclusive: false, rssi: -60, online: [Self.other])
    func notice(_ rssi: Int, since second: Int? = 2) -> Notice {
      var notice = Self.notice(since: second)
      (notice.isExclusive, notice.rssi) = (false, Int8(rssi))
      return notice
    }
    _ = bench.received(notice(-69))
    #expect(bench.machine.isOwnedByOther)
    #expect(bench.online(3) == [] && bench.machine.isOwnedByOther)
    // The owner is killed.
    bench.here.online = []
    let taken: [Machine.Action] = [.moved(notice(-69)), .setOwner(nil), .publish]
    #expect(bench.online(3) == taken && bench.machine.owner == .this)
    // Another one has published it meanwhile, but hears it badly; then one that hears it as well.
    #expect(bench.received(notice(-70)).last == .publish && bench.machine.owner == .this)
    _ = bench.received(notice(-65))
    #expect(bench.machine.isOwnedByOther)
    // It no longer hears it.
    #expect(bench.received(notice(-65, since: nil)).last == .publish && bench.machine.owner == .this)
    // It has removed it.
    _ = bench.received(notice(-65))
    #expect(bench.received(nil) == [.noOwner(Handover())] && bench.machine.owner == .unknown)
    #expect(bench.online(3) == [.setOwner(nil), .publish] && bench.machine.owner == .this)
  }

  /// One whose silence means nothing does not go offline at a gateway that hears it no more: who hears it later has it.
  @Test func ownerThatHasNotHeardASilentDeviceForAMinuteLosesIt() {
    func heard(_ milliseconds: Int64?) -> Timestamp? {
      milliseconds.map { Timestamp(milliseconds: 1_767_225_600_000 + $0) }
    }
    func notice(_ milliseconds: Int64?) -> Notice {
      var notice = Self.notice(since: 2)
      (notice.isExclusive, notice.rssi) = (false, -60)
      // The clock there is an hour behind.
      notice.lastHeard = heard(milliseconds.map { $0 - 3_600_000 })
      notice.heardSince = heard(milliseconds)
      return notice
    }
    var bench = Bench()
    bench.here = Machine.Here(
      onlineSince: time(1), isExclusive: false, rssi: -60, lastHeard: heard(0), online: [Self.other])
    _ = bench.received(notice(0))
    #expect(bench.machine.isOwnedByOther)
    // Silence here, silence there; a press that is heard here; one whose time is not known there.
    bench.here.lastHeard = heard(60_000)
    #expect(bench.online(1) == [] && bench.machine.isOwnedByOther)
    bench.here.lastHeard = heard(60_001)
    var before = bench
    #expect(bench.online(1) == [.moved(notice(0)), .setOwner(nil), .publish])
    #expect(bench.machine.owner == .this)
    _ = before.received(notice(nil))
    #expect(before.online(1) == [] && before.machine.isOwnedByOther)
    // The owner has heard it as well, and its `info` is here in time.
    _ = before.received(notice(60_000))
    #expect(before.online(1) == [] && before.machine.isOwnedByOther)

    // As the owner sees it: an `info` of before does not count, one of a gateway that has heard it later does.
    #expect(bench.received(notice(0)).last == .publish && bench.machine.owner == .this)
    // How well it was heard here before does not count.
    bench.here.rssi = -40
    let later = notice(120_002)
    #expect(bench.received(later) == Self.takenOver(later, hasNewLink: false))
    #expect(bench.machine.owner == .other(Self.other))
  }

  @Test func gatewayOwnsADeviceThatIsOnlineThere() {
    var bench = Bench()
    #expect(bench.machine.owner == .unknown)
    #expect(bench.online(1) == [.publish])
    #expect(bench.machine.owner == .this)
    #expect(bench.online(nil) == [.publish])
    #expect(bench.machine.owner == .this)
  }

  @Test func infoOfAnEarlierRunCountsAsOwn() {
    var bench = Bench()
    let notice = Self.notice(Self.this, since: 1, revision: 4)
    #expect(bench.received(notice) == [.setOwner(notice.handover), .publish])
    #expect(bench.machine.owner == .this)
    #expect(bench.received(Self.notice(Self.this, of: BluetoothAddress(truncating: 2))) == [])
    #expect(bench.settle() == [.setOwner(nil), .publish])
  }

  @Test func deviceOwnedByAnotherGatewayIsReleased() {
    var bench = Bench()
    _ = bench.online(1)
    _ = bench.online(nil)
    let notice = Self.notice(since: 2)
    #expect(bench.received(notice) == Self.takenOver(notice))
    #expect(bench.machine.owner == .other(Self.other))
    #expect(bench.machine.owner == .other(Self.other))
    #expect(bench.settle() == [])
  }

  /// It was on its way to the broker when another gateway took the device over: the others take this one for the owner.
  @Test func lastInfoAtTheBrokerNamesTheOwner() {
    var bench = Bench()
    _ = bench.received(Self.notice(since: 2))
    _ = bench.settle()
    let late = Self.notice(Self.this, since: 1)
    #expect(bench.received(late) == [.setOwner(late.handover), .publish])
    #expect(bench.machine.owner == .this)
    _ = bench.received(Self.notice(since: 2))
    let current = Self.notice(Self.this)
    bench.here.isUpToDate = true
    let actions: [Machine.Action] = [.setOwner(current.handover), .publishAvailability]
    #expect(bench.received(current) == actions, "the info is not to be corrected")
  }

  /// Another gateway has cleared it meanwhile, or the broker has lost it.
  @Test func infoThatOnlyTheBrokerHadIsPublishedOnTheNextConnection() {
    var bench = Bench()
    bench.here = Machine.Here(onlineSince: time(1), isExclusive: false, rssi: -60)
    var (own, other) = (Self.notice(Self.this, since: 1), Self.notice(since: 1))
    (own.isExclusive, other.isExclusive, other.rssi) = (false, false, -60)
    _ = bench.settle()
    _ = bench.received(other)
    bench.here.isUpToDate = true
    #expect(bench.received(own).last == .publishAvailability)
    #expect(bench.received(own) == [.setOwner(own.handover)])
    bench.machine.awaitRetained()
    #expect(bench.settle() == [.publish])
    bench.machine.awaitRetained()
    #expect(bench.settle() == [], "the client has it again")
  }

  @Test func ownerThatHasRemovedTheDeviceInAnOutageIsForgotten() {
    var bench = Bench()
    _ = bench.received(Self.notice())
    #expect(bench.settle() == [])
    bench.machine.awaitRetained()
    #expect(bench.settle() == [.noOwner(nil)])
    #expect(bench.machine.owner == .unknown)
  }

  @Test func previousOwnerIsKnownWhenTheDeviceReturns() {
    var bench = Bench()
    _ = bench.received(Self.notice())
    #expect(bench.online(1) == [.moved(Self.notice()), .publish])
    #expect(bench.machine.owner == .this)
  }

  @Test func laterLinkDeterminesTheOwner() {
    var bench = Bench()
    _ = bench.settle()
    _ = bench.online(10)
    for notice in [Self.notice(since: 9), Self.notice()] {
      #expect(bench.received(notice) == [.setOwner(notice.handover), .publish])
    }
    #expect(bench.machine.owner == .this)
    #expect(bench.received(Self.notice(since: 11)) == Self.takenOver(Self.notice(since: 11)))
  }

  @Test func twoLinksOfTheSameAgeHaveOneOwner() {
    let notice = Self.notice(since: 10)
    var (here, there) = (Bench(), Bench())
    there.machine = Machine(Self.other, Self.id, Self.address)
    for settled in [false, true] {
      _ = here.online(10)
      _ = there.online(10)
      #expect(here.received(notice).first == (settled ? .setOwner(notice.handover) : .moved(notice)))
      #expect(here.machine.owner == .this)
      #expect(there.received(Self.notice(Self.this, since: 10)).first == .release)
      _ = here.settle()
    }
  }

  @Test func gatewayThatVisitedTheDeviceKeepsIt() {
    var bench = Bench()
    bench.here = Machine.Here(isOnDemand: true, isAdmitted: false)
    _ = bench.online(10)
    #expect(bench.received(Self.notice()).last == .publish, "no visit")
    #expect(bench.received(Self.notice(since: 5), isOwnerOnline: false).last == .publish)
    #expect(bench.received(Self.notice(since: 5)) == Self.takenOver(Self.notice(since: 5)))
    // Taken over when a visit was overdue: the same `info` again is no visit.
    _ = bench.online(20)
    #expect(bench.received(Self.notice(since: 5)).last == .publish)
    #expect(bench.machine.owner == .this)
  }

  @Test func infoWithoutANewVisitIsTold() {
    var bench = Bench()
    for (since, isNew) in [(5, true), (5, false), (10, true), (nil, false), (nil, false)] {
      let notice = Self.notice(since: since)
      #expect(bench.received(notice) == Self.takenOver(notice, hasNewLink: isNew))
    }
    let notice = Self.notice(GatewayID("third")!, since: 10)
    #expect(bench.received(notice) == Self.takenOver(notice))
  }

  @Test func clearedInfoLeavesTheDeviceWithoutOwner() {
    var bench = Bench()
    _ = bench.received(Self.notice(revision: 3, isDeleted: true))
    #expect(bench.received(nil) == [.noOwner(Handover())], "not deleted any more")
    #expect(bench.machine.owner == .unknown)
    _ = bench.online(10)
    #expect(bench.received(nil) == [.publish])
    #expect(bench.machine.owner == .this)
  }

  @Test func deviceWithoutOwnerIsOfflineUnlessAnotherGatewayMayJustHaveFoundIt() {
    var machine = Bench().machine
    #expect(machine.settle(Machine.Here(online: [Self.other])) == [])
    #expect(machine.settle(Machine.Here()) == [.publishOffline])
  }

  // MARK: Ids

  @Test func earlierOfTwoDevicesKeepsTheID() {
    var bench = Bench()
    let another = BluetoothAddress(truncating: 2)
    #expect(bench.received(Self.notice(of: another)) == [], "that one is offline")
    #expect(bench.received(Self.notice(since: 5, of: another)) == [.yieldID(to: Self.other)])
    _ = bench.online(4)
    #expect(bench.received(Self.notice(since: 5, of: another)) == [.publish])
    #expect(bench.received(Self.notice(since: 3, of: another)) == [.yieldID(to: Self.other)])
  }

  @Test func aNewDeviceLeavesItsLettersToOneThatIsOffline() {
    var bench = Bench()
    bench.here.hasNewLetters = true
    #expect(bench.received(Self.notice(of: BluetoothAddress(truncating: 2))) == [.yieldID(to: Self.other)])
  }

  private static let otherID = try! DeviceID("kitchen")
  private static let third = GatewayID("third")!

  /// Another gateway may use the id too, and would publish what is cleared again: only what nobody publishes is cleared.
  @Test(arguments: [false, true]) func topicsAreClearedWhenTheDeviceIsOwnedUnderAnotherID(isUsed: Bool) {
    var bench = Bench()
    _ = bench.online(1)
    _ = bench.settle()
    let notice = Self.notice(under: Self.otherID, since: 2)
    let setOwner = Machine.Action.setOwner(notice.handover, isTakenOver: true, hasNewLink: true)
    #expect(bench.received(notice) == [.release, .confirm, setOwner])
    bench.here.online = [Self.other, Self.third]
    if isUsed { _ = bench.received(Self.notice(Self.third, since: 1)) }
    #expect(bench.settle() == (isUsed ? [] : [.clear]))
    #expect(bench.settle() == [])
    #expect(bench.received(notice).contains(.release) == isUsed, "the clearing is not released")
    #expect(bench.machine.elsewhere == notice)
  }

  @Test func infoUnderAnotherIDCountsWhenThatOfTheOwnerIsCleared() {
    var bench = Bench()
    bench.here.online = [Self.other, Self.third]
    let (first, second) = (Self.notice(since: 2), Self.notice(Self.third, under: Self.otherID, since: 1))
    _ = bench.received(first)
    #expect(bench.received(second) == [.setOwner(second.handover)], "its values may be newer")
    #expect(bench.machine.owner == .other(Self.other) && bench.machine.follows(Self.otherID))
    #expect(bench.received(nil) == [.receive(second)])
    _ = bench.received(second)
    #expect(bench.machine.elsewhere == second)
    _ = bench.received(first)
    #expect(bench.machine.cleared(Self.otherID) == [] && bench.received(nil) == [.noOwner(Handover())])
  }

  /// It may have been cleared in the outage.
  @Test func infoOfAnEarlierConnectionDoesNotCount() {
    var bench = Bench()
    bench.here.online = [Self.other, Self.third]
    _ = bench.received(Self.notice(under: Self.otherID, since: 2))
    bench.machine.awaitRetained()
    _ = bench.received(Self.notice(Self.third, since: 1))
    #expect(bench.machine.owner == .other(Self.third) && !bench.machine.follows(Self.otherID))
  }

  /// Each of two gateways has given way to the other.
  @Test func gatewayTakesBackWhatItIsStillToClear() {
    var bench = Bench()
    _ = bench.online(1)
    _ = bench.received(Self.notice(under: Self.otherID, since: 2))
    #expect(bench.machine.cleared(Self.otherID) == [.setOwner(nil), .publish])
    #expect(bench.machine.owner == .this && bench.settle() == [])
  }

  @Test func whatArrivesAfterAnotherGatewayHasClearedTheTopicsIsCleared() {
    var bench = Bench()
    _ = bench.online(1)
    _ = bench.received(Self.notice(since: 2))
    _ = bench.received(nil)
    #expect(bench.received(Self.notice(under: Self.otherID, since: 3)).contains(.confirm))
    #expect(bench.settle() == [.clear])
  }

  @Test func topicsMayBeClearedOnceAllThatIsRetainedHasArrived() {
    var bench = Bench()
    #expect(!bench.machine.mayClear)
    _ = bench.settle()
    #expect(bench.machine.mayClear)
    bench.machine.awaitRetained()
    #expect(!bench.machine.mayClear)
    _ = bench.received(Self.notice())
    _ = bench.settle()
    #expect(!bench.machine.mayClear)
  }
}

private func time(_ second: Int) -> Timestamp {
  Timestamp(milliseconds: 1_767_225_600_000 + Int64(second) * 1000)
}
