import DBus
import EventLoop
import Glibc
import TestSupport
import Testing

@testable import BlueZ

/// One process at a time works with an adapter.
@Suite final class AdapterLockTests: Sendable {
  private func connection(_ bus: PrivateBus) async throws -> DBusConnection {
    try await DBusConnection.open(bus.address) { _ in }
  }

  @Test func itIsHeldUntilTheConnectionEnds() async throws {
    let bus = try await PrivateBus()
    let (first, second) = (try await connection(bus), try await connection(bus))
    #expect(try await AdapterLock.owner(of: "hci0", on: second) == nil)
    #expect(try await AdapterLock.acquire("hci0", on: first) == .acquired)
    #expect(try await AdapterLock.acquire("hci0", on: second) == .taken(by: getpid()))
    #expect(try await AdapterLock.acquire("hci1", on: second) == .acquired)
    await first.close()
    try await eventually("the lock") { try await AdapterLock.acquire("hci0", on: second) == .acquired }
    await second.close()
  }

  @Test func aSecondCentralAsksNothingOfBluetoothdUntilTheFirstHasEnded() async throws {
    let fixture = try await Fixture()
    let (first, _) = try await fixture.centralAndMicroBit()
    let monitor = try await fixture.monitor()
    let second = await CentralUnderTest(fixture.bus.address)
    #expect(try await second.state() == .adapterInUse(by: getpid()))
    await second.central.scan(true)
    await #expect(throws: CentralError.unavailable) { try await second.central.resetAdapter() }
    let calls = try await monitor.lines("GetManagedObjects", "StartDiscovery", "SetDiscoveryFilter", "Set ")
    #expect(calls == [])
    try await first.end()
    try await second.isOn()
    _ = try await second.seen()
    try await second.end()
  }

  @Test func aCentralOfAnotherAdapterDoesNotWait() async throws {
    let fixture = try await Fixture()
    let first = try await fixture.central()
    let second = await CentralUnderTest(fixture.bus.address, adapter: AdapterSelection("hci1"))
    #expect(try await second.state() == .adapterAbsent)
    try await second.end()
    try await first.end()
  }

  /// The adapter has come back as hci1, which another gateway has locked.
  @Test func anAdapterWithAnotherNameIsUsedOnceItIsFree() async throws {
    let fixture = try await Fixture()
    let tested = try await fixture.central()
    let other = try await connection(fixture.bus)
    #expect(try await AdapterLock.acquire("hci1", on: other) == .acquired)
    await fixture.plug(false)
    await fixture.plug(true, as: "hci1")
    let waiting = try await fixture.monitor()
    try await waiting.saw("RequestName DBus")
    #expect(await tested.central.state == .adapterAbsent)
    await other.close()
    #expect(try await tested.isOn() == "hci1")
    // The lock of the name that it had is free.
    let third = try await connection(fixture.bus)
    #expect(try await AdapterLock.acquire("hci0", on: third) == .acquired)
    await third.close()
    try await tested.end()
  }

  @Test func aCentralThatWaitsLearnsThatTheBusHasEnded() async throws {
    let fixture = try await Fixture()
    let first = try await fixture.central()
    let second = await CentralUnderTest(fixture.bus.address)
    #expect(try await second.state() == .adapterInUse(by: getpid()))
    fixture.bus.kill()
    guard case .noBus = try await second.state() else {
      Issue.record("another state")
      return
    }
    try await second.end()
    try await first.end()
  }

  @Test func aCentralThatWaitsEndsWhenItIsCancelled() async throws {
    let fixture = try await Fixture()
    let first = try await fixture.central()
    let second = await CentralUnderTest(fixture.bus.address)
    #expect(try await second.state() == .adapterInUse(by: getpid()))
    try await second.end()
    try await first.end()
  }

  // MARK: Other users

  private static let deny = #"<policy context="mandatory"><deny own_prefix="org.microbit_gateway"/></policy>"#

  /// As another user's process cannot: the policy does not let it own the lock, so it keeps nobody off the adapter.
  @Test func whoMayNotOwnTheLockDoesNotHoldIt() async throws {
    let fixture = try await Fixture()
    try fixture.bus.setPolicy(Self.deny)
    let other = try await connection(fixture.bus)
    try await eventually("the policy") { try await AdapterLock.acquire("hci1", on: other) == .denied }
    #expect(try await AdapterLock.acquire("hci0", on: other) == .denied)
    #expect(try await AdapterLock.owner(of: "hci0", on: other) == nil)
    // Nor does the denial keep off a gateway.
    let central = try await fixture.central()
    #expect(try await AdapterLock.owner(of: "hci0", on: other) == nil)
    await other.close()
    try await central.end()
  }

  @Test func whoMayNotOwnTheLockRespectsThatOfOthers() async throws {
    let fixture = try await Fixture()
    let first = try await fixture.central()
    try fixture.bus.setPolicy(Self.deny)
    let other = try await connection(fixture.bus)
    try await eventually("the policy") { try await AdapterLock.acquire("hci1", on: other) == .denied }
    #expect(try await AdapterLock.acquire("hci0", on: other) == .taken(by: getpid()))
    await other.close()
    try await first.end()
  }

  /// On a bus where, as on the system bus, nobody else owns names.
  @Test func theShippedPolicyLetsRootOwnTheLock() async throws {
    let bus = try await PrivateBus(isStarted: false)
    try bus.setPolicy(
      #"<policy context="default"><deny own="*"/></policy>"#
        + "<include>\(repositoryPath("deploy/dbus/microbit-gateway.conf"))</include>")
    try await bus.start()
    let connection = try await connection(bus)
    let expected: AdapterLock.Outcome = geteuid() == 0 ? .acquired : .denied
    #expect(try await AdapterLock.acquire("hci0", on: connection) == expected)
    await connection.close()
  }
}
