import Configuration
import GATT
import Peripherals
import TestSupport
import Testing

@testable import BlueZSimulator
@testable import Devices

/// The engine as its front ends see it.
@Suite struct EngineTests {
  typealias Engine = EngineUnderTest

  let everything = ["temperature", "period", "button_a", "led_text"]
  let ledText = 3

  func configuration(_ change: (inout Configuration.Device) -> Void = { _ in }) -> Configuration {
    var configuration = Configuration()
    var entry = Configuration.Device(match: .identifier(Engine.address))
    change(&entry)
    configuration.devices = [entry]
    return configuration
  }

  func record(_ change: (inout DeviceRecord) -> Void) -> DeviceRecord {
    var record = DeviceRecord(address: Engine.address)
    change(&record)
    return record
  }

  static let service = BluetoothUUID(short: 0x1111)

  static func property(
    _ name: String, _ characteristic: UInt32, in service: BluetoothUUID = service,
    kind: Property.Kind = .state,
    _ access: Property.Access, _ mode: Property.WriteMode? = nil, initial: Value? = nil,
    isBeforeReading: Bool = false, poll: Duration? = nil
  ) -> Property {
    Property(
      name: name, service: service, characteristic: BluetoothUUID(short: characteristic), kind: kind,
      access: access, writeMode: mode, codec: .uint8, poll: poll, initial: initial,
      isBeforeReading: isBeforeReading)
  }

  /// Starts an engine with a peripheral of this profile alone.
  func engine(_ profile: Profile) async throws -> Engine {
    var configuration = configuration { $0.profile = profile.name }
    configuration.profiles = [profile]
    return try await Engine(configuration) {
      $0.devices = 0
      $0.described = [PeripheralDescription(name: "Lamp", profile: profile, address: Engine.address)]
    }
  }

  // MARK: Coming online

  @Test func deviceIsAttachedGoesOnlineAndSendsReadingsInOrder() async throws {
    let tested = try await Engine { $0.period = 20 }
    let online = try await tested.frontEnd.availability(true)
    try await tested.frontEnd.event("the 20th reading") {
      if case .reading(_, _, 20) = $0 { true } else { false }
    }
    let events = tested.frontEnd.events.elements
    guard case .attached(let attached) = events.first else { throw Failure("not attached first") }
    #expect(attached.id == Engine.id && attached.address == Engine.address)
    #expect(attached.session == .absent && attached.record.offered == nil)
    #expect(attached.profile.isAutomatic)
    #expect(events.filter { if case .attached = $0 { true } else { false } }.count == 1)

    #expect(online.lastConnected != nil && online.session == .live)
    #expect(online.record.offered == ["temperature", "period"] && online.missing.isEmpty)
    let states = events.compactMap { event -> SessionState? in
      if case .changed(.session, let device) = event { device.session } else { nil }
    }
    #expect(states == [.connecting, .subscribing, .live])

    let readings = events.compactMap { event -> (Int, UInt64)? in
      if case .reading(let property, _, let sequence?) = event { (property, sequence) } else { nil }
    }
    try #require(!readings.isEmpty)
    #expect(readings.map(\.1) == Array(1...UInt64(readings.count)))
    #expect(readings.allSatisfy { $0.0 == Engine.temperature })
    // The value of the period that is read on the link is not a reading.
    try await tested.frontEnd.reading(Engine.period, 20, sequence: .some(nil))
    await tested.end()
  }

  @Test func aConfiguredDeviceIsKnownBeforeItIsSeen() async throws {
    let hall = try DeviceID("hall")
    let tested = try await Engine(
      configuration { entry in
        entry.id = hall
        entry.name = "Hall"
        entry.period = 500
      }, isInRange: false)
    guard case .attached(let device) = tested.frontEnd.events.elements.first else {
      throw Failure("not attached")
    }
    #expect(device.id == hall && device.settings.name == "Hall" && device.desired == ["period": 500])
    #expect(await tested.engine.device(hall) == device)
    #expect(await tested.engine.devices == [device])
    await tested.comeBack()
    try await tested.frontEnd.availability(true)
    try await tested.frontEnd.reading(Engine.period, 500, sequence: .some(nil))
    #expect(await tested.heldPeriod() == 500)
    #expect(await tested.engine.onlineCount == 1)
    await tested.end()
  }

  @Test func lostLinkIsReestablished() async throws {
    let tested = try await Engine()
    try await tested.frontEnd.availability(true)
    try await tested.frontEnd.noSequenceNumberIsGivenTwice(from: 0)
    let before = tested.frontEnd.events.count
    await tested.hangUp()
    let offline = try await tested.frontEnd.availability(false, from: before)
    #expect(offline.lastConnected != nil && offline.offlineSince != nil)
    let lost = tested.frontEnd.events.count
    try await tested.frontEnd.availability(true, from: before)
    // The sequence numbers continue.
    try await tested.frontEnd.noSequenceNumberIsGivenTwice(from: lost)
    await tested.end()
  }

  /// Insufficient authentication, authorization and encryption.
  @Test(arguments: [0x05, 0x08, 0x0F])
  func refusalForWantOfABondMeansPairingIsRequired(code: Int) async throws {
    let tested = try await Engine(isInRange: false)
    await tested.refuseSubscriptions(code)
    await tested.comeBack()
    try await tested.frontEnd.change("it wants pairing") { $0.trouble == .wantsPairing && $0.wantsPairing }
    // It is not taken for one with other services, which bluetoothd is to forget.
    #expect(await tested.hasObject(of: Engine.address))
    await tested.end()
  }

  @Test(
    "An entry with an address is known at the start, but behind a pattern that may match the device",
    arguments: [
      (#"{"radio":"zotut"}"#, ["kitchen", "sender"]), (#"{"name_prefix":"x"}"#, ["sender"]),
    ])
  func entriesBehindAPattern(pattern: String, known: [String]) async throws {
    let entries =
      #"{"match":{"identifier":"\#(Engine.address)"},"id":"kitchen"},"#
      + #"{"match":{"identifier":"radio:9b4c2d1a"},"id":"sender"}"#
    let text = #"{"devices":[{"match":\#(pattern)},\#(entries)],"radio":{"enabled":false}}"#
    let tested = try await Engine(
      try Configuration.parse(Array(text.utf8)).get(), isInRange: false)
    #expect(await tested.engine.devices.map(\.id.description) == known)
    await tested.end()
  }

  @Test func unmatchedPeripheralIsIgnored() async throws {
    var configuration = Configuration()
    configuration.devices = [Configuration.Device(match: .namePrefix("something else"))]
    let tested = try await Engine(configuration)
    try await tested.frontEnd.adapterIsOn()
    #expect(try await tested.scan(finding: 1) == [Engine.address])
    #expect(await tested.engine.deviceCount == 0)
    #expect(tested.frontEnd.events.elements == [])
    await tested.end()
  }

  // MARK: Stored state

  /// Earlier versions allowed periods from 1 ms.
  @Test func storedValueOutOfRangeIsDropped() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/state.db"
    await Engine.store(
      record { record in
        record.id = Engine.id
        record.requested.desired = [
          "period": DeviceRecord.Desired(value: 7, source: .command),
          "another": DeviceRecord.Desired(value: 7, source: .command),
        ]
      }, in: path)
    let tested = try await Engine(configuration { $0.period = 300 }, state: path)
    guard case .attached(let device) = tested.frontEnd.events.elements.first else {
      throw Failure("not attached")
    }
    #expect(device.desired == ["period": 300])
    try await tested.frontEnd.reading(Engine.period, 300, sequence: .some(nil))
    await tested.end()
    #expect(
      try Engine.stored(in: path).map(\.requested.desired) == [
        ["another": DeviceRecord.Desired(value: 7, source: .command)]
      ])
  }

  @Test func storedIDThatHasChangedIsAnOrphan() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/state.db"
    let old = try DeviceID("old")
    await Engine.store(
      record { record in
        record.id = old
        record.offered = ["heart_rate"]
      }, in: path)
    let tested = try await Engine(configuration(), state: path, isInRange: false)
    #expect(tested.frontEnd.events.elements.contains(.orphan(old, Engine.address, offered: ["heart_rate"])))
    await tested.engine.storeID(of: Engine.address)
    await tested.end()
    #expect(try Engine.stored(in: path).map(\.id) == [Engine.id])
  }

  // MARK: Stopping

  @Test func stopTakesDevicesOfflineAndAnswersEveryCommand() async throws {
    let tested = try await Engine()
    try await tested.frontEnd.availability(true)
    let outcomes = Record<Outcome>()
    let value = try Property.microbitPeriod.encode(500)
    await tested.engine.executeAndEnd(EncodedCommand(value: value) { outcomes.append($0) })
    try await tested.frontEnd.availability(false)
    #expect(outcomes.elements == [.deferred])
    #expect(await tested.command(600).elements == [.failed(reason: "the gateway is stopping")])
    await tested.end()
  }
}

extension EngineTests {
  @Test func sequenceStepDoesNotSurviveARestart() async throws {
    for (waitsForLink, kept) in [(true, Set(["period"])), (false, [])] {
      let folder = try TemporaryFolder()
      let path = folder.path + "/state.db"
      let tested = try await EngineUnderTest(state: path)
      try await tested.frontEnd.availability(true)
      let value = try Property.microbitPeriod.encode(500)
      await tested.engine.executeAndEnd(EncodedCommand(value: value, waitsForLink: waitsForLink) { _ in })
      await tested.end()
      #expect(try EngineUnderTest.stored(in: path).first.map { Set($0.requested.waiting.keys) } == kept)
    }
  }
}

extension DeviceManager {
  /// In one loop iteration.
  fileprivate func executeAndEnd(_ command: EncodedCommand) {
    registry.byID[EngineUnderTest.id]?.channels[EngineUnderTest.period].writer?.execute(command)
    endSessions()
  }
}
