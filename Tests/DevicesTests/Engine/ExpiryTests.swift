import Configuration
import EventLoop
import GATT
import Log
import TestSupport
import Testing

@testable import BlueZ
@testable import Devices

/// Devices that nobody has configured do not stay for good, and leave their places to those that are.
@Suite struct ExpiryTests {
  private typealias Engine = EngineUnderTest

  private static let stranger = BluetoothAddress(truncating: 0xC0FF_EE00_0001)
  /// A resolvable private address.
  private static let passing = BluetoothAddress(truncating: 0x7BFF_EE00_0001)

  /// The record of a device that matched the prefix of the default configuration.
  private static func record(
    _ address: BluetoothAddress = Engine.address, lastSeen: Int? = 100
  ) -> DeviceRecord {
    var record = DeviceRecord(address: address)
    (record.id, record.name, record.lastSeen) = (DeviceID(address), "BBC micro:bit [zugev]", lastSeen)
    return record
  }

  @Test func deviceThatNobodyConfiguredIsRemovedAfterAYearUnseen() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/state.db"
    await Engine.store(Self.record(), in: path)
    let tested = try await Engine(state: path, isInRange: false)
    for day in 101...465 { await tested.engine.expireDevices(today: day) }
    #expect(await tested.engine.device(Engine.id) != nil)
    await tested.engine.expireDevices(today: 466)
    // The front end clears its topics.
    #expect(tested.frontEnd.events.elements.last == .detached(.removed))
    #expect(await tested.engine.device(Engine.id) == nil)
    // It is a new device when it is seen again.
    await tested.comeBack()
    try await tested.frontEnd.availability(true)
    await tested.end()
    #expect(try Engine.stored(in: path).count == 1)
  }

  @Test func whatMayHaveAnotherAddressIsRemovedAfterThirtyDays() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/state.db"
    await Engine.store(Self.record(Self.passing), in: path)
    let tested = try await Engine(state: path, isInRange: false)
    for day in 101...130 { await tested.engine.expireDevices(today: day) }
    #expect(await tested.engine.deviceCount == 1)
    await tested.engine.expireDevices(today: 131)
    #expect(await tested.engine.deviceCount == 0)
    await tested.end()
  }

  /// The first bit of a public address may be 0, too.
  @Test func aPublicAddressIsKeptForAYear() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/state.db"
    var record = Self.record(Self.passing)
    record.hasPublicAddress = true
    await Engine.store(record, in: path)
    let tested = try await Engine(state: path, isInRange: false)
    for day in 101...465 { await tested.engine.expireDevices(today: day) }
    #expect(await tested.engine.deviceCount == 1)
    await tested.engine.expireDevices(today: 466)
    #expect(await tested.engine.deviceCount == 0)
    await tested.end()
  }

  @Test func aPublicAddressIsNotedOfADeviceThatIsUsed() async throws {
    let tested = try await Engine()
    try await tested.frontEnd.availability(true)
    #expect(try await Self.notesPublicAddress(tested) == [false, true])
    await tested.end()
  }

  /// Whether the address is noted as public, before and after bluetoothd says so.
  @LoopActor private static func notesPublicAddress(_ tested: Engine) throws -> [Bool] {
    let device = try #require(tested.engine.registry.byAddress[Engine.address])
    var seen = try #require(tested.engine.context.centrals[0].peripheral(at: Engine.address))
    let before = device.record.hasPublicAddress
    seen.hasPublicAddress = true
    device.found(seen, by: 0)
    return [before, device.record.hasPublicAddress]
  }

  /// The gateway runs over the holidays.
  @Test func valuesOfADeviceThatIsAwayStay() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/state.db"
    var record = Self.record()
    let moisture: ValueKey = "moisture"
    record.valueTable[moisture] = ValueTable.Entry(
      written: "moisture", isNumber: true, isConfirmed: true, lastSeen: 95)
    await Engine.store(record, in: path)
    let tested = try await Engine(state: path, isInRange: false)
    for day in 101...200 { await tested.engine.expireDevices(today: day) }
    await tested.end()
    // Of the days since it was received, those on which the device was away do not count.
    #expect(try Engine.stored(in: path).first?.valueTable[moisture]?.lastSeen == 195)
  }

  @Test func nothingIsKeptOfARemovedDevice() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/state.db"
    await Engine.store(Self.record(), in: path)
    let tested = try await Engine(state: path, isInRange: false)
    for day in 101...466 { await tested.engine.expireDevices(today: day) }
    await tested.end()
    #expect(try Engine.stored(in: path).isEmpty)
  }

  /// Its entry was removed, and its topics were cleared: only a request would make it known for good.
  @Test func whatNoEntryMatchesAnyMoreIsForgottenToo() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/state.db"
    var (unmatched, requested) = (Self.record(), Self.record(Self.stranger))
    (unmatched.id, requested.id) = (nil, nil)
    requested.requested.isRemoved = true
    for record in [unmatched, requested] { await Engine.store(record, in: path) }
    var configuration = Configuration()
    configuration.devices = []
    let tested = try await Engine(configuration, state: path, isInRange: false)
    for day in 101...465 { await tested.engine.expireDevices(today: day) }
    #expect(await tested.engine.store.records.count == 2)
    await tested.engine.expireDevices(today: 466)
    await tested.end()
    #expect(try Engine.stored(in: path).map(\.address) == [Self.stranger])
  }

  /// The id of an entry that both match.
  @Test func theIDOfARemovedDeviceGoesToTheNextOne() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/state.db"
    let id = try DeviceID("classroom")
    var first = Self.record()
    first.id = id
    for record in [first, Self.record(Self.stranger, lastSeen: 120)] {
      await Engine.store(record, in: path)
    }
    var configuration = Configuration()
    configuration.devices = [Configuration.Device(match: .namePrefix("BBC"), id: id)]
    let tested = try await Engine(configuration, state: path, isInRange: false)
    #expect(await tested.engine.device(id)?.address == Engine.address)
    for day in 121...466 { await tested.engine.expireDevices(today: day) }
    #expect(await tested.engine.device(id)?.address == Self.stranger)
    #expect(await tested.engine.deviceCount == 1)
    await tested.end()
  }

  @Test func theIDOfADeviceThatWasNeverConnectedGoesToTheNextOne() async throws {
    let id = try DeviceID("classroom")
    var configuration = Configuration()
    configuration.devices = [Configuration.Device(match: .namePrefix("BBC"), id: id)]
    configuration.devices[0].isEnabled = false
    let tested = try await Engine(configuration) {
      $0.devices = 2
      $0.addresses[1] = Self.stranger.description
      $0.timing.temporary = .seconds(1)
      $0.timing.scan = .milliseconds(100)
    }
    try await eventually("both are there") { await tested.engine.deviceCount == 2 }
    let first = await tested.engine.device(id)?.address
    await tested.vanish(first == Engine.address ? 0 : 1)
    try await eventually("the other one has the id") {
      let now = await tested.engine.device(id)?.address
      return now != nil && now != first
    }
    await tested.end()
  }

  @Test func deviceIsCountedFromTheFirstDayOnWhichItIsKnownToBeAbsent() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/state.db"
    await Engine.store(Self.record(lastSeen: nil), in: path)
    let tested = try await Engine(state: path, isInRange: false)
    for day in 500...865 { await tested.engine.expireDevices(today: day) }
    #expect(await tested.engine.device(Engine.id) != nil)
    await tested.engine.expireDevices(today: 866)
    #expect(await tested.engine.device(Engine.id) == nil)
    await tested.end()
  }

  /// The gateway was off over the summer, and then its clock was years ahead for a day.
  @Test func daysWithoutTheGatewayAreNotCounted() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/state.db"
    await Engine.store(Self.record(Self.passing, lastSeen: 100), in: path)
    await Engine.store(Self.record(Self.stranger, lastSeen: 120), in: path)
    let tested = try await Engine(state: path, isInRange: false)
    for day in Array(162...171) + [9000, 172, 173] { await tested.engine.expireDevices(today: day) }
    #expect(await tested.engine.device(DeviceID(Self.passing)) != nil)
    await tested.engine.expireDevices(today: 174)
    #expect(await tested.engine.device(DeviceID(Self.passing)) == nil)
    #expect(await tested.engine.deviceCount == 1)
    await tested.end()
  }

  /// A device was noted while the clock was ahead.
  @Test func aDateInTheFutureMakesNoOtherDeviceOlder() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/state.db"
    await Engine.store(Self.record(lastSeen: 5000), in: path)
    await Engine.store(Self.record(Self.passing), in: path)
    let tested = try await Engine(state: path, isInRange: false)
    // The gateway was off for months.
    for day in 301...303 { await tested.engine.expireDevices(today: day) }
    #expect(await tested.engine.deviceCount == 2)
    await tested.end()
  }

  @Test func deviceInRangeIsNotedOnceADayAndStays() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/state.db"
    let tested = try await Engine(state: path)
    try await tested.frontEnd.availability(true)
    await tested.engine.expireDevices(today: 90_000)
    await tested.engine.expireDevices(today: 90_100)
    await tested.engine.expireDevices(today: 90_050)
    #expect(await tested.engine.device(Engine.id) != nil)
    await tested.end()
    #expect(try Engine.stored(in: path).map(\.lastSeen) == [90_050])
  }

  @Test(arguments: ["entry", "added", "renamed", "value", "command"])
  func configuredDeviceStays(by what: String) async throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/state.db"
    var configuration = Configuration()
    var record = Self.record()
    switch what {
    case "entry": configuration.devices = [Configuration.Device(match: .identifier(Engine.address))]
    case "added": record.requested.isAdded = true
    case "renamed": record.requested.changes.name = "Window"
    case "value": record.requested.desired["period"] = DeviceRecord.Desired(value: 500, source: .request)
    default: record.requested.desired["period"] = DeviceRecord.Desired(value: 500)
    }
    await Engine.store(record, in: path)
    let tested = try await Engine(configuration, state: path, isInRange: false)
    for day in 101...470 { await tested.engine.expireDevices(today: day) }
    #expect(await tested.engine.deviceCount == 1)
    await tested.end()
  }

  /// A leak sensor says nothing as long as all is well.
  @Test func deviceWhoseSilenceMeansNothingStays() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/state.db"
    var record = Self.record(Self.stranger)
    (record.name, record.services, record.offered) = (nil, [BTHome.service], ["button"])
    record.lastHeard = Timestamp(milliseconds: 100 * 86_400_000)
    await Engine.store(record, in: path)
    var configuration = Configuration()
    var match = Configuration.Match()
    match.service = BTHome.service
    configuration.devices = [Configuration.Device(match: match)]
    configuration.devices[0].options.profile = "bthome"
    let tested = try await Engine(configuration, state: path, isInRange: false)
    for day in 101...470 { await tested.engine.expireDevices(today: day) }
    #expect(await tested.engine.device(DeviceID(Self.stranger))?.isOnline == true)
    // Of two such devices, the one that was not heard for longer leaves its place to a configured one.
    #expect(await tested.engine.store.records[Self.stranger]?.lastSeen == 101)
    await tested.end()
  }

  @Test func configuredDeviceTakesThePlaceOfOneThatIsNot() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/state.db"
    await Engine.store(Self.record(Self.stranger), in: path)
    var configuration = Configuration()
    configuration.devices.insert(Configuration.Device(match: .identifier(Engine.address)), at: 0)
    let tested = try await Engine(configuration, state: path, capacity: 1)
    try await tested.frontEnd.availability(true)
    #expect(await tested.engine.devices.map(\.address) == [Engine.address])
    // There is no place for another one, unless a device that is not configured has it.
    await #expect(throws: RequestError.self) { try await tested.engine.add(Self.stranger, [:]) }
    await tested.end()
  }

  /// Ten thousand entries would else take seconds, each a search among a thousand devices.
  @Test func whenAllPlacesAreTakenForGoodOtherEntriesAreNotTried() async throws {
    var configuration = Configuration()
    configuration.devices = (1...5).map {
      Configuration.Device(match: .identifier(BluetoothAddress(truncating: $0)))
    }
    let tested = try await Engine(configuration, capacity: 2)
    #expect(await tested.engine.deviceCount == 2)
    #expect(await tested.engine.counters.overLimit == 1)
    await tested.end()
  }

  @Test func requestedDeviceTakesThePlaceOfOneThatIsNot() async throws {
    let tested = try await Engine(capacity: 1)
    try await tested.frontEnd.availability(true)
    _ = try await tested.engine.add(Self.stranger, [:])
    #expect(await tested.engine.devices.map(\.address) == [Self.stranger])
    #expect(tested.frontEnd.events.elements.contains(.detached(.removed)))
    await tested.end()
  }

  @Test func ignoredPeripheralIsUsedWhenAPlaceBecomesFree() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/state.db"
    await Engine.store(Self.record(Self.stranger), in: path)
    let tested = try await Engine(state: path, capacity: 1) { $0.timing.scan = .milliseconds(100) }
    try await eventually("one too many") { await tested.engine.counters.overLimit > 0 }
    for day in 101...466 { await tested.engine.expireDevices(today: day) }
    #expect(try await tested.frontEnd.availability(true).address == Engine.address)
    // It was counted once, and not again with each advertisement.
    #expect(await tested.engine.counters.overLimit == 1)
    await tested.end()
  }

  /// Micro:bits that cannot be connected to leave the other places to those that are known.
  @Test func neverConnectedDevicesHaveSomePlacesOnly() async throws {
    let known = 199
    var configuration = Configuration()
    configuration.devices.insert(Configuration.Device(match: .identifier(Self.stranger)), at: 0)
    let tested = try await Engine(configuration) {
      $0.devices = known + 1
      $0.addresses[known] = Self.stranger.description
      $0.timing.connect = .seconds(3600)
      // One that goes and returns would be counted again.
      $0.timing.temporary = .seconds(3600)
    }
    try await tested.frontEnd.adapterIsOn()
    _ = try await tested.scan(finding: known + 1)
    #expect(await tested.engine.deviceCount == 128 + 1)
    #expect(await tested.engine.counters.overLimit == UInt64(known - 128))
    #expect(await tested.engine.devices.contains { $0.address == Self.stranger })
    await tested.end()
  }

  @Test func ignoredDevicesGetTheirTurnWhenOthersAreConnected() async throws {
    let count = 140
    var configuration = Configuration()
    configuration.bluetooth.links = count
    let tested = try await Engine(configuration) {
      $0.devices = count
      $0.period = 10_000
      $0.timing.scan = .milliseconds(100)
    }
    for _ in 0..<count {
      _ = try await tested.frontEnd.events.next("online") { event -> Bool? in
        if case .changed(.availability, let device) = event, device.isOnline { true } else { nil }
      }
    }
    await tested.end()
  }
}
