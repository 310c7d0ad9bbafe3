import Configuration
import EventLoop
import GATT
import JSON
import Peripherals
import TestSupport
import Testing

@testable import BlueZSimulator
@testable import Devices

/// The engine as its front ends see it.
@Suite struct EngineTests {
  private typealias Engine = EngineUnderTest

  private func configuration(_ change: (inout Configuration.Device) -> Void = { _ in }) -> Configuration {
    var configuration = Configuration()
    var entry = Configuration.Device(match: .identifier(Engine.address))
    change(&entry)
    configuration.devices = [entry]
    return configuration
  }

  private func record(_ change: (inout DeviceRecord) -> Void) -> DeviceRecord {
    var record = DeviceRecord(address: Engine.address)
    change(&record)
    return record
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

  // MARK: Commands

  @Test func aPeriodCommandIsApplied() async throws {
    let folder = try TemporaryFolder()
    let tested = try await Engine(state: folder.path + "/state.db")
    try await tested.frontEnd.availability(true)
    let before = tested.frontEnd.events.count
    #expect(try await tested.command(500).final() == .applied(actual: 500))
    try await tested.frontEnd.reading(Engine.period, 500, sequence: .some(nil), from: before)
    try await tested.frontEnd.change(from: before, "desired") { $0.desired == ["period": 500] }
    #expect(await tested.heldPeriod() == 500)
    await tested.end()
    let stored = try Engine.stored(in: folder.path + "/state.db")
    #expect(stored.map(\.desired) == [["period": DeviceRecord.Desired(value: 500, source: .command)]])
    #expect(stored.first?.id == Engine.id && stored.first?.offered == ["temperature", "period"])

    // The next run applies it again.
    let next = try await Engine(state: folder.path + "/state.db")
    guard case .attached(let device) = next.frontEnd.events.elements.first else {
      throw Failure("not attached")
    }
    #expect(device.desired == ["period": 500] && device.record.offered == ["temperature", "period"])
    try await next.frontEnd.reading(Engine.period, 500, sequence: .some(nil))
    await next.end()
  }

  @Test func aDesiredValueIsStoredBeforeTheAnswerAndReportedAfterIt() async throws {
    let tested = try await Engine(configuration(), isInRange: false)
    let seen = Record<String>()
    try await tested.execute(500) { [frontEnd = tested.frontEnd, engine = tested.engine] in
      let isReported = frontEnd.events.elements.contains {
        if case .changed(.handover, _) = $0 { true } else { false }
      }
      let desired = engine.device(Engine.id)?.desired["period"]
      seen.append("\($0.outcome.word) \(desired.map { "\($0)" } ?? "none") \(isReported)")
    }
    #expect(seen.elements == ["pending 500 false"])
    try await tested.frontEnd.event("the value") {
      if case .changed(.handover, let device) = $0 { device.desired == ["period": 500] } else { false }
    }
    await tested.end()
  }

  @Test func aCommandForAnUnknownDeviceFails() async throws {
    let tested = try await Engine(isInRange: false)
    let nobody = try DeviceID("nobody")
    let failure = Outcome.rejected(reason: "no device is called nobody")
    #expect(await tested.command(500, of: nobody).elements == [failure])
    #expect(await tested.get(Engine.period, of: nobody).elements == [failure])
    await tested.end()
  }

  @Test func aCommandForAPropertyThatCannotBeSetIsRejected() async throws {
    let tested = try await Engine(configuration(), isInRange: false)
    #expect(
      await tested.command(21, Engine.temperature).elements == [
        .rejected(reason: "temperature cannot be set")
      ])
    await tested.end()
  }

  @Test func aCommandWaitsForTheDevice() async throws {
    let tested = try await Engine(configuration(), isInRange: false)
    let first = await tested.command(400)
    let second = await tested.command(500)
    #expect(first.elements == [.pending, .superseded])
    #expect(second.elements == [.pending])
    #expect(await tested.engine.device(Engine.id)?.desired == ["period": 500])
    await tested.comeBack()
    #expect(try await second.final() == .applied(actual: 500))
    #expect(await tested.heldPeriod() == 500)
    await tested.end()
  }

  @Test func waitingCommandExpires() async throws {
    let tested = try await Engine(configuration(), isInRange: false)
    let outcomes = await tested.command(500, ttl: 1)
    #expect(await tested.engine.device(Engine.id)?.desired == [:], "a command with a ttl is not kept")
    #expect(try await outcomes.final() == .timeout(reason: "not applied within 1 s"))
    #expect(outcomes.elements.first == .pending)
    try await eventually("no urgent link") { await !tested.engine.isUrgent(Engine.id) }
    await tested.end()
  }

  @Test func aLinkIsUrgentAsLongAsAnythingWaitsForIt() async throws {
    let tested = try await Engine(configuration(), isInRange: false)
    _ = await tested.command(500, ttl: 3600)
    #expect(await tested.engine.isUrgent(Engine.id))
    _ = await tested.command(600)
    _ = await tested.command(700, ttl: 3600)
    #expect(await tested.engine.isUrgent(Engine.id))
    await tested.end()
  }

  @Test func aCommandWhoseLinkEndsMakesTheNextOneUrgent() async throws {
    let tested = try await Engine(configuration())
    try await tested.frontEnd.availability(true)
    let outcomes = Record<Outcome>()
    let value = try Property.microbitPeriod.encode(500)
    #expect(try await tested.engine.isUrgent(after: EncodedCommand(value: value) { outcomes.append($0) }))
    #expect(try await outcomes.final() == .applied(actual: 500))
    // Now it has been told as pending.
    let pending = EncodedCommand(value: value, isPendingReported: true) { _ in }
    #expect(try await tested.engine.isUrgent(after: pending))
    await tested.end()
  }

  @Test func waitingCommandSurvivesARestart() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/state.db"
    let tested = try await Engine(configuration(), state: path, isInRange: false)
    let waits = await tested.command(500, sender: ["transaction": "t"])
    try await waits.pending()
    await tested.end()
    #expect(waits.elements == [.pending, .deferred])
    let next = try await Engine(configuration(), state: path)
    try await next.frontEnd.reading(Engine.period, 500, sequence: .some(nil))
    let result = RecordingFrontEnd.Event.answer(
      "period", .applied(actual: 500), sender: ["transaction": "t"])
    #expect(next.frontEnd.events.elements.count { $0 == result } == 1)
    await next.end()
    #expect(try Engine.stored(in: path).first?.waiting == [:])
  }

  @Test func waitingCommandOfAPropertyThatIsGoneFailsAfterARestart() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/state.db"
    var record = DeviceRecord(address: Engine.address)
    record.waiting = [
      "wings": DeviceRecord.Desired(value: 1, sender: "a"),
      "period": DeviceRecord.Desired(value: 1, sender: "b"),
    ]
    await Engine.store(record, in: path)
    let tested = try await Engine(configuration(), state: path, isInRange: false)
    for (property, sender) in [("wings", "a"), ("period", "b")] as [(String, JSONValue)] {
      try await tested.frontEnd.event("\(property) failed") {
        if case .answer(property, .failed, sender) = $0 { true } else { false }
      }
    }
    await tested.end()
    #expect(try Engine.stored(in: path).first?.waiting ?? [:] == [:])
  }

  @Test func aPropertyOfADeviceOutOfRangeIsNotRead() async throws {
    let tested = try await Engine(isInRange: false)
    #expect(await tested.get(Engine.period, of: Engine.id).elements.count == 1)
    await tested.end()
  }

  @Test func aPropertyIsReadOnRequest() async throws {
    let tested = try await Engine { $0.period = 300 }
    try await tested.frontEnd.availability(true)
    let before = tested.frontEnd.events.count
    #expect(try await tested.get(Engine.period).final() == .read(actual: 300))
    // A value that is never notified is a reading when it is requested.
    try await tested.frontEnd.event(from: before, "a reading of the period") {
      if case .reading(Engine.period, 300, .some) = $0 { true } else { false }
    }
    guard case .read = try await tested.get(Engine.temperature).final() else {
      throw Failure("the temperature was not read")
    }
    await tested.vanish()
    try await tested.frontEnd.availability(false, from: before)
    #expect(
      await tested.get(Engine.period).elements == [.failed(reason: "the device is offline: the link ended")])
    await tested.end()
  }

  /// bluetoothd also notifies the value of the read, if it is subscribed to; there is one reading per read.
  @Test(arguments: [nil, Duration.seconds(3600)])
  func requestedReadIsPublishedOnce(poll: Duration?) async throws {
    let profile = try Profile(
      name: "meter", properties: [Self.property("level", 0x2221, [.read, .notify], poll: poll)])
    let tested = try await engine(profile)
    try await tested.frontEnd.availability(true)
    await tested.notify(BluetoothUUID(short: 0x2221), "07")
    if poll == nil { try await tested.frontEnd.reading(0, 7) }
    let before = tested.frontEnd.events.count
    #expect(try await tested.get(0).final() == .read(actual: 7))
    try await tested.frontEnd.reading(0, 7, from: before)
    #expect(try await tested.get(0).final() == .read(actual: 7))
    let readings = tested.frontEnd.events.elements.dropFirst(before).filter { event in
      if case .reading(0, 7, _) = event { true } else { false }
    }
    #expect(readings.count == 2)
    await tested.end()
  }

  /// The reads of the writer are notified if the property is subscribed to; otherwise they are not readings.
  @Test(arguments: [Property.Access.notify, []])
  func readBackIsPublishedOnce(notify: Property.Access) async throws {
    let profile = try Profile(
      name: "lamp", properties: [Self.property("level", 0x2221, [.read, .write, notify], .confirm)])
    let tested = try await engine(profile)
    try await tested.frontEnd.availability(true)
    #expect(try await tested.command(9, 0).final() == .applied(actual: 9))
    #expect(try await tested.command(8, 0).final() == .applied(actual: 8))
    try await tested.frontEnd.reading(0, 8)
    let readings = tested.frontEnd.events.elements.filter { event in
      if case .reading = event { true } else { false }
    }
    let isReading = notify == .notify
    #expect(
      readings == [
        .reading(0, 9, sequence: isReading ? 1 : nil), .reading(0, 8, sequence: isReading ? 2 : nil),
      ])
    await tested.end()
  }

  // MARK: Configuration and requests

  @Test func theConfiguredPeriodIsAppliedAtOnce() async throws {
    let tested = try await Engine(configuration())
    try await tested.frontEnd.availability(true)
    await tested.engine.configure(configuration { $0.period = 700 })
    try await tested.frontEnd.reading(Engine.period, 700, sequence: .some(nil))
    #expect(await tested.engine.device(Engine.id)?.desired == ["period": 700])
    // A command ranks above it.
    #expect(try await tested.command(500).final() == .applied(actual: 500))
    await tested.engine.configure(configuration { $0.period = 900 })
    #expect(await tested.engine.device(Engine.id)?.desired == ["period": 500])
    #expect(await tested.heldPeriod() == 500)
    // Until a request withdraws the override.
    #expect(try await tested.engine.change(Engine.id, ["period": .null])?.desired == ["period": 900])
    try await tested.frontEnd.reading(Engine.period, 900, sequence: .some(nil))
    await tested.end()
  }

  @Test func requestedPeriodOverridesTheConfiguration() async throws {
    let folder = try TemporaryFolder()
    let tested = try await Engine(configuration { $0.period = 700 }, state: folder.path + "/state.db")
    try await tested.frontEnd.availability(true)
    let changed = try await tested.engine.change(Engine.id, ["period": 600, "name": "Kitchen"])
    #expect(changed?.desired == ["period": 600] && changed?.settings.name == "Kitchen")
    try await tested.frontEnd.reading(Engine.period, 600, sequence: .some(nil))
    await tested.end()
    let stored = try Engine.stored(in: folder.path + "/state.db").first
    #expect(stored?.desired == ["period": DeviceRecord.Desired(value: 600, source: .request)])
    #expect(stored?.changes.name == "Kitchen")
  }

  @Test func requestSetsPropertiesAndDesiredValues() async throws {
    let folder = try TemporaryFolder()
    let tested = try await Engine(configuration { $0.period = 700 }, state: folder.path + "/state.db")
    try await tested.frontEnd.availability(true)
    let changed = try await tested.engine.change(
      Engine.id, ["properties": ["temperature"], "desired": ["accelerometer_period": 80]])
    // A desired value adds its property, also one from the configuration.
    #expect(
      changed?.profile.properties.map(\.name) == ["temperature", "period", "accelerometer_period"])
    #expect(changed?.desired == ["period": 700, "accelerometer_period": 80])
    let reset = try await tested.engine.change(
      Engine.id, ["properties": .null, "desired": ["accelerometer_period": .null]])
    #expect(reset?.profile.properties.map(\.name) == Profile.microbit.automaticProperties)
    #expect(reset?.desired == ["period": 700])
    let less = try await tested.engine.change(Engine.id, ["exclude": ["temperature"]])
    #expect(less?.profile.properties.first?.name == "period")
    let again = try await tested.engine.change(
      Engine.id, ["exclude": ["accelerometer_period"], "desired": ["accelerometer_period": 80]])
    #expect(
      again?.desired == ["period": 700, "accelerometer_period": 80], "a desired value uses its property")
    _ = try await tested.engine.change(
      Engine.id, ["exclude": .null, "properties": .null, "desired": ["accelerometer_period": .null]])
    await tested.end()
    #expect(try Engine.stored(in: folder.path + "/state.db").first?.changes.isEmpty == true)
  }

  @Test func aRequestedValueUsesItsPropertyBesideThoseOfTheConfiguration() async throws {
    let folder = try TemporaryFolder()
    let tested = try await Engine(
      configuration { $0.properties = ["temperature"] }, state: folder.path + "/state.db")
    @Sendable func used() async -> [String]? {
      await tested.engine.device(Engine.id)?.profile.properties.map(\.name)
    }
    try await tested.frontEnd.availability(true)
    _ = try await tested.engine.change(Engine.id, ["desired": ["accelerometer_period": 80]])
    #expect(await used() == ["temperature", "accelerometer_period"])
    await tested.engine.configure(configuration { $0.properties = ["period"] })
    #expect(await used() == ["period", "accelerometer_period"])
    _ = try await tested.engine.change(Engine.id, ["desired": ["accelerometer_period": 160, "period": 500]])
    await tested.engine.configure(
      configuration { ($0.properties, $0.desired) = (["temperature"], [Named("accelerometer_period", 20)]) })
    #expect(await used() == ["temperature", "accelerometer_period"])
    #expect(await tested.engine.device(Engine.id)?.desired == ["accelerometer_period": 160])
    // It is not in use any more.
    _ = try await tested.engine.change(Engine.id, ["desired": ["period": .null]])
    let record = await tested.engine.store.record(Engine.address)
    #expect(record.desired.keys.sorted() == ["accelerometer_period"])
    #expect(DeviceRecord(address: Engine.address, bytes: record.bytes) == record)
    await tested.engine.configure(configuration { $0.properties = ["auto", "led"] })
    let automatic = Profile.microbit.automaticProperties
    #expect(await Set(used() ?? []) == Set(automatic + ["accelerometer_period", "led"]))
    let reset = try await tested.engine.change(
      Engine.id, ["desired": ["accelerometer_period": .null, "period": .null]])
    #expect(reset.map { Set($0.profile.properties.map(\.name)) } == Set(automatic + ["led"]))
    await tested.end()
    let stored = try Engine.stored(in: folder.path + "/state.db").first
    #expect(stored?.changes.isEmpty == true && stored?.desired.isEmpty == true)
  }

  @Test func requestThatDoesNotFitTheProfileChangesNothing() async throws {
    let tested = try await Engine(configuration())
    func refusal(_ name: String, _ value: JSONValue) async -> String? {
      do {
        _ = try await tested.engine.change(Engine.id, ["name": "Changed", name: value])
        return nil
      } catch { return error.reason }
    }
    #expect(
      await refusal("desired", ["perod": 80])
        == #"options.desired.perod: the profile microbit has no property "perod" (did you mean period?)"#)
    #expect(
      await refusal("desired", ["perod": .null])?.hasPrefix("options.desired.perod") == true)
    #expect(
      await refusal("desired", ["button_a": "x"])
        == "options.desired.button_a: button_a is an event: only a state can hold a value")
    #expect(
      await refusal("desired", ["period": 10])
        == "options.desired.period: 10 is below the smallest period, 20 ms")
    #expect(
      await refusal("properties", ["temperature", "x"])?.hasPrefix("options.properties[1]: ")
        == true)
    #expect(await refusal("properties", [])?.hasPrefix("options.properties: must not") == true)
    #expect(await tested.engine.device(Engine.id)?.settings.name == nil)
    await tested.end()
  }

  @Test func aRequestAddsADeviceOfAProfile() async throws {
    var configuration = Configuration()
    configuration.devices = []
    configuration.profiles = [
      try Profile(name: "buttons", properties: [.microbitButtonA, .microbitAccelerometerPeriod])
    ]
    let tested = try await Engine(configuration)
    var patch = DeviceOptionsPatch()
    patch.options.id = Engine.id
    patch.options.profile = "buttons"
    patch.options.properties = ["button_a"]
    patch.options.desired = [Named("accelerometer_period", 80)]
    let added = try await tested.engine.add(Engine.address, patch)
    #expect(added.profile.name == "buttons" && added.desired == ["accelerometer_period": 80])
    #expect(added.profile.properties.map(\.name) == ["button_a", "accelerometer_period"])
    patch.options.profile = "button"
    await #expect(
      throws: RequestError(.invalid, #"profile: there is no profile "button" (did you mean buttons?)"#)
    ) {
      try await tested.engine.add(Engine.address, patch)
    }
    // When the requested profile no longer exists, the device has the micro:bit's again.
    configuration.profiles = []
    await tested.engine.configure(configuration)
    #expect(await tested.engine.device(Engine.id)?.profile.name == "microbit")
    await tested.end()
  }

  @Test func aRemovedDeviceIsDetachedAndIgnored() async throws {
    let tested = try await Engine()
    try await tested.frontEnd.availability(true)
    await tested.vanish()
    try await tested.frontEnd.availability(false)
    let waits = await tested.command(500)
    try await waits.pending()
    #expect(try await tested.engine.remove(Engine.id) == Engine.address)
    #expect(waits.elements == [.pending, .failed(reason: "the device was removed")])
    #expect(tested.frontEnd.events.elements.last == .detached(.removed))
    #expect(await tested.engine.device(Engine.id) == nil)
    await #expect(throws: RequestError.self) { try await tested.engine.remove(Engine.id) }
    // It comes again when it is requested.
    let before = tested.frontEnd.events.count
    await tested.comeBack()
    let added = try await tested.engine.add(Engine.address, ["period": 250])
    #expect(added.id == Engine.id && added.desired == ["period": 250])
    let events = tested.frontEnd.events.elements.dropFirst(before)
    guard case .attached = events.first else { throw Failure("not attached again: \(events)") }
    try await tested.frontEnd.reading(Engine.period, 250, sequence: .some(nil), from: before)
    try await tested.frontEnd.noSequenceNumberIsGivenTwice(from: before)
    await tested.end()
  }

  @Test func nothingDesiredIsKeptOfARemovedDevice() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/state.db"
    let tested = try await Engine(configuration(), state: path)
    try await tested.frontEnd.availability(true)
    #expect(try await tested.command(500).final() == .applied(actual: 500))
    let before = tested.frontEnd.events.count
    await tested.vanish()
    try await tested.frontEnd.availability(false, from: before)
    let outcomes = await tested.command(600)
    try await outcomes.pending()
    _ = try await tested.engine.remove(Engine.id)
    #expect(try await outcomes.final() == .failed(reason: "the device was removed"))
    await tested.end()
    #expect(try Engine.stored(in: path).map(\.desired.isEmpty) == [true])
  }

  @Test func aDeviceThatIsPinnedElsewhereIsDetached() async throws {
    let tested = try await Engine(configuration())
    try await tested.frontEnd.availability(true)
    await tested.engine.configure(configuration { $0.gateway = GatewayID("attic") })
    // Its topics stay until the other gateway has the device.
    #expect(
      tested.frontEnd.events.elements.suffix(2) == [
        .detached(.pinnedElsewhere),
        .orphan(Engine.id, Engine.address, offered: ["temperature", "period"]),
      ])
    #expect(await tested.engine.isPinnedElsewhere(Engine.address))
    #expect(await tested.engine.deviceCount == 0)
    let before = tested.frontEnd.events.count
    await tested.engine.configure(configuration())
    try await tested.frontEnd.availability(true, from: before)
    await tested.end()
  }

  /// The device is not known by its id here any more.
  @Test func aDeviceThatARequestHasPinnedElsewhereIsAddedAgain() async throws {
    let tested = try await Engine(configuration())
    try await tested.frontEnd.availability(true)
    _ = try await tested.engine.change(Engine.id, ["gateway": "attic"])
    #expect(await tested.engine.deviceCount == 0)
    let before = tested.frontEnd.events.count
    #expect(try await tested.engine.add(Engine.address, [:]).settings.gateway == nil)
    try await tested.frontEnd.availability(true, from: before)
    await tested.end()
  }

  @Test func neverConnectedDeviceIsDetachedWhenOutOfRange() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/state.db"
    var configuration = Configuration()
    configuration.devices = [Configuration.Device(match: .namePrefix("BBC"))]
    configuration.devices[0].isEnabled = false
    let tested = try await Engine(configuration, state: path) { $0.timing.temporary = .milliseconds(50) }
    try await tested.frontEnd.event("attached") { if case .attached = $0 { true } else { false } }
    _ = await tested.command(500)
    try await tested.frontEnd.detached(.neverConnected)
    #expect(await tested.engine.deviceCount == 0)
    await tested.end()
    #expect(try Engine.stored(in: path).isEmpty)
  }

  @Test func disabledDeviceIsDisconnected() async throws {
    let tested = try await Engine(configuration())
    try await tested.frontEnd.availability(true)
    let before = tested.frontEnd.events.count
    await tested.engine.configure(configuration { $0.isEnabled = false })
    let offline = try await tested.frontEnd.availability(false, from: before)
    #expect(offline.session == .stopped && !offline.settings.isEnabled)
    #expect(await tested.command(500).elements == [.failed(reason: "the device is disabled")])
    await #expect(throws: RequestError.self) { try await tested.engine.reconnect(Engine.id) }
    await tested.engine.configure(configuration())
    try await tested.frontEnd.availability(true, from: before)
    await tested.end()
  }

  @Test func aDeviceIsRenamed() async throws {
    let folder = try TemporaryFolder()
    let kitchen = try DeviceID("kitchen")
    let tested = try await Engine(configuration(), state: folder.path + "/state.db")
    try await tested.frontEnd.availability(true)
    try await tested.engine.rename(Engine.id, to: kitchen)
    #expect(await tested.engine.device(kitchen)?.address == Engine.address)
    #expect(await tested.engine.device(Engine.id) == nil)
    try await tested.frontEnd.event("renamed") {
      guard case .changed(.renamed(from: Engine.id, .requested), let device) = $0 else { return false }
      return device.id == kitchen
    }
    #expect(try await tested.command(500, of: kitchen).final() == .applied(actual: 500))
    // Stored when the topics of the former id are cleared.
    await tested.engine.storeID(of: Engine.address)
    await tested.end()
    #expect(try Engine.stored(in: folder.path + "/state.db").first?.id == kitchen)
  }

  @Test func devicesSwapIDsAndKeepTheirCommands() async throws {
    let (kitchen, hall) = (try DeviceID("kitchen"), try DeviceID("hall"))
    let other = BluetoothAddress(truncating: 0xC5A1_B2C3_D4E6)
    func configuration(_ first: DeviceID, _ second: DeviceID) -> Configuration {
      var configuration = Configuration()
      configuration.devices = [
        Configuration.Device(match: .identifier(Engine.address), id: first),
        Configuration.Device(match: .identifier(other), id: second),
      ]
      return configuration
    }
    let tested = try await Engine(configuration(kitchen, hall))
    try await tested.frontEnd.availability(true)
    let waits = await tested.command(500, of: hall)
    try await waits.pending()
    await tested.engine.configure(configuration(hall, kitchen))
    #expect(await tested.engine.device(hall)?.address == Engine.address)
    #expect(await tested.engine.device(hall)?.isOnline == true)
    #expect(await tested.engine.device(kitchen)?.address == other)
    #expect(waits.elements == [.pending])
    #expect(
      !tested.frontEnd.events.elements.contains { if case .detached = $0 { true } else { false } })
    await tested.end()
  }

  /// As of an entry that matches several by a pattern.
  @Test func firstOfSeveralDevicesGetsASharedIDAndNoneIsRemoved() async throws {
    let (kitchen, hall) = (try DeviceID("kitchen"), try DeviceID("hall"))
    let other = BluetoothAddress(truncating: 0xC5A1_B2C3_D4E6)
    func configuration(_ second: DeviceID?) -> Configuration {
      var configuration = Configuration()
      configuration.devices = [
        Configuration.Device(match: .identifier(Engine.address), id: kitchen),
        Configuration.Device(match: .identifier(other), id: second),
      ]
      return configuration
    }
    let tested = try await Engine(configuration(nil), isInRange: false)
    for before in [nil, hall] {
      await tested.engine.configure(configuration(before))
      #expect(await tested.engine.device(before ?? DeviceID(other)) != nil)
      await tested.engine.configure(configuration(kitchen))
      #expect(await tested.engine.device(kitchen)?.address == Engine.address)
      #expect(await tested.engine.device(DeviceID(other))?.address == other)
    }
    #expect(
      !tested.frontEnd.events.elements.contains { if case .detached = $0 { true } else { false } })
    await tested.end()
  }

  @Test(arguments: [true, false])
  func aSharedIDThatIsFreePassesToTheNextDevice(byRequest: Bool) async throws {
    let (kitchen, hall) = (try DeviceID("kitchen"), try DeviceID("hall"))
    let other = BluetoothAddress(truncating: 0xC5A1_B2C3_D4E6)
    var configuration = Configuration()
    configuration.devices = [
      Configuration.Device(match: .identifier(Engine.address), id: kitchen),
      Configuration.Device(match: .identifier(other), id: kitchen),
    ]
    let tested = try await Engine(configuration, isInRange: false)
    #expect(await tested.engine.device(kitchen)?.address == Engine.address)
    if byRequest {
      try await tested.engine.rename(kitchen, to: hall)
    } else {
      configuration.devices[0].id = hall
      await tested.engine.configure(configuration)
    }
    #expect(await tested.engine.device(hall)?.address == Engine.address)
    #expect(await tested.engine.device(kitchen)?.address == other)
    await tested.end()
  }

  /// It goes by its address, as another device had the id when it came.
  @Test func aDeviceGetsAnIDThatItShared() async throws {
    let (kitchen, hall) = (try DeviceID("kitchen"), try DeviceID("hall"))
    var configuration = Configuration()
    configuration.devices = [Configuration.Device(match: .namePrefix("BBC"), id: kitchen)]
    let tested = try await Engine(configuration)
    try await tested.frontEnd.availability(true)
    #expect(await tested.engine.yieldID(kitchen))
    try await tested.engine.rename(Engine.id, to: kitchen)
    #expect(await tested.engine.device(kitchen)?.address == Engine.address)
    try await tested.engine.rename(kitchen, to: hall)
    #expect(await tested.engine.device(hall)?.address == Engine.address)
    await tested.end()
  }

  @Test func aDeviceThatIsRemovedIsNotRenamedFirst() async throws {
    // Several, as their order varies.
    let addresses = (0..<16).map { BluetoothAddress(truncating: 0xC5A1_B2C3_D500 + UInt64($0)) }
    let entries = addresses.map { Configuration.Device(match: .identifier($0), id: DeviceID($0)) }
    let ids = try (0..<8).map { try DeviceID("room-\($0)") }
    var configuration = Configuration()
    configuration.devices = entries
    for (index, id) in ids.enumerated() { configuration.devices[index].id = id }
    let tested = try await Engine(configuration, isInRange: false)
    let before = tested.frontEnd.events.count
    configuration.devices = Array(entries.dropFirst(ids.count))
    for (index, id) in ids.enumerated() { configuration.devices[index].id = id }
    await tested.engine.configure(configuration)
    let renamed = tested.frontEnd.events.elements[before...].compactMap { event -> BluetoothAddress? in
      if case .changed(.renamed, let device) = event { device.address } else { nil }
    }
    #expect(Set(renamed) == Set(addresses.dropFirst(ids.count)))
    for (index, id) in ids.enumerated() {
      #expect(await tested.engine.device(id)?.address == addresses[ids.count + index])
    }
    await tested.end()
  }

  @Test func idOfAPrefixEntryIsLeftToAnotherGateway() async throws {
    let hall = try DeviceID("hall")
    var configuration = Configuration()
    configuration.devices = [Configuration.Device(match: .namePrefix("BBC"), id: hall)]
    let tested = try await Engine(configuration)
    try await tested.frontEnd.availability(true)
    #expect(await tested.engine.device(hall)?.address == Engine.address)
    #expect(await tested.engine.yieldID(hall))
    try await tested.frontEnd.event("renamed") {
      if case .changed(.renamed(from: hall, .conflict), _) = $0 { true } else { false }
    }
    #expect(await tested.engine.device(Engine.id)?.isOnline == true)
    #expect(await !tested.engine.yieldID(Engine.id))
    await tested.end()
  }

  // MARK: Properties

  private let everything = ["temperature", "period", "button_a", "led_text"]
  private let ledText = 3

  @Test func changedPropertiesInTheConfigurationReplaceTheDevice() async throws {
    let tested = try await Engine(configuration { $0.properties = ["temperature", "period"] }) {
      $0.services = [.temperature, .buttons, .led]
    }
    try await tested.frontEnd.availability(true)
    #expect(try await tested.command(500).final() == .applied(actual: 500))
    let before = tested.frontEnd.events.count
    let everything = everything
    await tested.engine.configure(configuration { $0.properties = everything })
    let events = tested.frontEnd.events.elements.dropFirst(before)
    let detached = try #require(events.firstIndex(of: .detached(.replaced)))
    guard events.indices.contains(detached + 1), case .attached(let device) = events[detached + 1] else {
      throw Failure("not attached again: \(events)")
    }
    #expect(device.profile.properties.map(\.name) == everything)
    #expect(device.id == Engine.id && device.desired == ["period": 500], "the override is kept")
    let online = try await tested.frontEnd.availability(true, from: detached)
    #expect(online.record.offered == Set(everything))
    try await tested.frontEnd.noSequenceNumberIsGivenTwice(from: detached)
    await tested.end()
  }

  @Test func replacedDeviceAnswersWaitingCommands() async throws {
    let tested = try await Engine(configuration(), isInRange: false)
    let waits = await tested.command(500)
    try await waits.pending()
    let everything = everything
    await tested.engine.configure(configuration { $0.properties = everything })
    #expect(waits.elements == [.pending, .failed(reason: "the device's properties were changed")])
    await tested.end()
  }

  @Test func anEventIsWrittenOnceAndNotKept() async throws {
    let everything = everything
    let tested = try await Engine(configuration { $0.properties = everything }) {
      $0.services = [.temperature, .buttons, .led]
    }
    try await tested.frontEnd.availability(true)
    #expect(try await tested.command(.text("Hi"), ledText).final() == .accepted)
    #expect(try await tested.command(.text("Hi"), ledText).final() == .accepted)
    #expect(await tested.engine.device(Engine.id)?.desired == [:])
    let before = tested.frontEnd.events.count
    await tested.vanish()
    try await tested.frontEnd.availability(false, from: before)
    #expect(
      await tested.command(.text("Hi"), ledText).elements == [
        .failed(reason: "the device is offline; with a time limit (ttl, in seconds) the command would wait")
      ])
    let waits = await tested.command(.text("Hi"), ledText, ttl: 60)
    #expect(waits.elements == [.pending])
    await tested.comeBack()
    #expect(try await waits.final() == .accepted)
    await tested.end()
  }

  /// The stored name matches one entry, and the advertised name an earlier one, with another id and properties.
  @Test func deviceWhoseNewNameMatchesAnotherEntryIsConnected() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/state.db"
    let hall = try DeviceID("hall")
    let before = record { record in
      (record.id, record.offered) = (hall, ["heart_rate"])
      record.advertisement = Advertisement(name: "Old")
    }
    await Engine.store(before, in: path)
    var configuration = Configuration()
    var entry = Configuration.Device(match: .namePrefix("BBC"), id: Engine.id)
    entry.properties = ["temperature"]
    configuration.devices = [entry, Configuration.Device(match: .namePrefix("Old"), id: hall)]
    let tested = try await Engine(configuration, state: path)
    let device = try await tested.frontEnd.availability(true)
    #expect(tested.frontEnd.events.elements.contains(.detached(.replaced)))
    #expect(device.id == Engine.id && device.profile.properties.map(\.name) == ["temperature"])
    #expect(
      tested.frontEnd.events.elements.contains(.orphan(hall, Engine.address, offered: ["heart_rate"])))
    await tested.end()
  }

  // MARK: Services that change

  @Test func serviceChangesAreAppliedOnTheSameLink() async throws {
    let everything = everything
    let tested = try await Engine(configuration { $0.properties = everything }) {
      $0.services = [.temperature, .buttons, .led]
    }
    let online = try await tested.frontEnd.availability(true)
    let button = Property.microbitButtonA
    var before = tested.frontEnd.events.count
    for service in [button.service, Property.microbitLEDText.service] { await tested.serve(service, false) }
    try await tested.frontEnd.change(from: before, "missing") { $0.missing == ["button_a", "led_text"] }
    #expect(
      await tested.command(.text("Hi"), ledText, ttl: 60).elements == [
        .failed(reason: "the device does not offer led_text")
      ])
    before = tested.frontEnd.events.count
    for service in [button.service, Property.microbitLEDText.service] { await tested.serve(service, true) }
    try await tested.frontEnd.change(from: before, "nothing missing") { $0.missing == [] }
    #expect(try await tested.command(.text("Hi"), ledText).final() == .accepted)
    await tested.notify(button.characteristic, "01")
    try await tested.frontEnd.reading(2, .text("press_start"), from: before)
    try await tested.frontEnd.event(from: tested.frontEnd.events.count, "another reading") {
      if case .reading(Engine.temperature, _, _) = $0 { true } else { false }
    }
    #expect(await tested.engine.device(Engine.id)?.lastConnected == online.lastConnected)
    await tested.end()
  }

  @Test func lossOfARequiredServiceRenewsTheLink() async throws {
    let tested = try await Engine(configuration())
    try await tested.frontEnd.availability(true)
    let before = tested.frontEnd.events.count
    let service = Property.microbitTemperature.service
    await tested.serve(service, false)
    try await tested.frontEnd.availability(false, from: before)
    await tested.serve(service, true)
    try await tested.frontEnd.availability(true, from: before)
    await tested.end()
  }

  @Test func requiredServiceAddedOnTheLinkIsUsedAtOnce() async throws {
    let tested = try await Engine(configuration(), isInRange: false)
    let service = Property.microbitTemperature.service
    await tested.serve(service, false)
    try await tested.setServicesLimit(patience)
    await tested.comeBack()
    try await tested.becomesTrue("ServicesResolved")
    let mark = tested.frontEnd.events.count
    await tested.serve(service, true)
    try await tested.frontEnd.availability(true, from: mark)
    #expect(
      !tested.frontEnd.events.elements[mark...].contains {
        if case .changed(.session, let device) = $0 { device.session == .waiting } else { false }
      })
    await tested.end()
  }

  // MARK: Another profile

  private static let service = BluetoothUUID(short: 0x1111)

  private static func property(
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
  private func engine(_ profile: Profile) async throws -> Engine {
    var configuration = configuration { $0.profile = profile.name }
    configuration.profiles = [profile]
    return try await Engine(configuration) {
      $0.devices = 0
      $0.described = [PeripheralDescription(name: "Lamp", profile: profile, address: Engine.address)]
    }
  }

  @Test func aStateIsWrittenWithoutBeingReadBack() async throws {
    let profile = try Profile(
      name: "lamp",
      properties: [
        Self.property("level", 0x2221, .write, .request, initial: 7),
        Self.property("colour", 0x2222, .write, .command),
      ])
    let tested = try await engine(profile)
    let online = try await tested.frontEnd.availability(true)
    #expect(online.desired == ["level": 7])
    #expect(try await tested.command(9, 0).final() == .accepted)
    #expect(try await tested.command(3, 1).final() == .sent)
    #expect(try await tested.writes(0x2221) == [[7], [9]])
    let before = tested.frontEnd.events.count
    await tested.hangUp()
    try await tested.frontEnd.availability(true, from: before)
    #expect(try await tested.command(4, 1).final() == .sent, "after the desired values")
    #expect(try await tested.writes(0x2221) == [[7], [9], [9]])
    #expect(try await tested.writes(0x2222) == [[3], [3], [4]])
    await tested.end()
  }

  /// For a peripheral that measures only when it was told to, as Mi Flora.
  @Test(arguments: [true, false], [Property.WriteMode.confirm, .request, .command])
  func valueIsWrittenBeforeReadingOnceOnEachLink(isOnDemand: Bool, mode: Property.WriteMode) async throws {
    let profile = try Profile(
      name: "flower",
      properties: [
        Self.property("moisture", 0x2221, .read),
        Self.property(
          "mode", 0x2222, mode == .confirm ? [.read, .write] : .write, mode, initial: 7, isBeforeReading: true
        ),
      ])
    var configuration = configuration { entry in
      entry.profile = profile.name
      if isOnDemand { (entry.connect, entry.every) = (.onDemand, 3600) }
    }
    configuration.profiles = [profile]
    let tested = try await Engine(configuration) {
      $0.devices = 0
      $0.described = [PeripheralDescription(name: "Flower", profile: profile, address: Engine.address)]
    }
    try await tested.frontEnd.availability(true)
    await tested.notify(BluetoothUUID(short: 0x2221), "05")
    if !isOnDemand {
      #expect(try await tested.get(0).final().isSuccess)
      #expect(try await tested.writes(0x2222) == [[7]])
      let before = tested.frontEnd.events.count
      await tested.hangUp()
      try await tested.frontEnd.availability(true, from: before)
    }
    #expect(try await tested.get(0).final().isSuccess)
    #expect(try await tested.writes(0x2222) == [[7], [7]])
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
        record.desired = [
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
      try Engine.stored(in: path).map(\.desired) == [
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

  // MARK: Other gateways

  @Test func deviceOwnedByAnotherGatewayIsReleased() async throws {
    let attic = try #require(GatewayID("attic"))
    let tested = try await Engine(configuration())
    try await tested.frontEnd.availability(true)
    let before = tested.frontEnd.events.count
    await #expect(throws: RequestError.self) {
      try await tested.engine.setOwnerAndRename(
        .other(attic), ["period": try Property.microbitPeriod.encode(800)],
        to: DeviceID("kitchen"))
    }
    try await tested.frontEnd.availability(false, from: before)
    #expect(await tested.engine.device(Engine.id)?.desired == ["period": 800])
    // The other gateway has lost the device: this one connects to it, and applies the value desired there.
    try await tested.frontEnd.availability(true, from: before)
    try await tested.frontEnd.reading(Engine.period, 800, sequence: .some(nil), from: before)
    await tested.end()
  }

  @Test func valueConfiguredElsewhereIsNotApplied() async throws {
    let attic = try #require(GatewayID("attic"))
    let tested = try await Engine(configuration { $0.period = 300 }, isInRange: false)
    let period = try Property.microbitPeriod.encode(800)
    func handOver(_ desired: EncodedValue?) async -> DeviceDescription? {
      await tested.engine.setOwner(
        .other(attic), of: Engine.id, Handover(desired: ["period": desired]), isTakenOver: true,
        hasNewLink: true)
      return await tested.engine.device(Engine.id)
    }
    var device = await handOver(nil)
    #expect(device?.desired == ["period": 300] && device?.configured == ["period"])
    device = await handOver(period)
    #expect(device?.desired == ["period": 800] && device?.configured == [])
    // A request has withdrawn the override there.
    device = await handOver(nil)
    #expect(device?.desired == ["period": 300] && device?.configured == ["period"])
    await tested.end()
  }

  @Test(arguments: [500, 800])
  func waitingCommandIsNotKeptOnceThereIsAnOwner(there: Int) async throws {
    let folder = try TemporaryFolder()
    let attic = try #require(GatewayID("attic"))
    let tested = try await Engine(
      configuration(), state: folder.path + "/state.db", isInRange: false)
    let outcomes = await tested.command(500)
    #expect(outcomes.elements == [.pending])
    let period = try Property.microbitPeriod.encode(.integer(there))
    await tested.engine.setOwner(
      .other(attic), of: Engine.id, Handover(desired: ["period": period]), isTakenOver: true,
      hasNewLink: true)
    #expect(
      outcomes.elements.dropFirst()
        == (there == 500 ? [] : [.takenOver()]))
    await tested.end()
    #expect(
      try Engine.stored(in: folder.path + "/state.db").first?.desired == [
        "period": DeviceRecord.Desired(value: .integer(there), source: .command)
      ])
  }

  @Test func takenOverCommandIsRemovedFromTheStoredState() async throws {
    let folder = try TemporaryFolder()
    let attic = try #require(GatewayID("attic"))
    let tested = try await Engine(
      configuration(), state: folder.path + "/state.db", isInRange: false)
    let outcomes = await tested.command(500)
    await tested.engine.setOwner(.other(attic), of: Engine.id, isTakenOver: true, hasNewLink: true)
    #expect(outcomes.elements == [.pending, .takenOver()])
    #expect(await tested.engine.device(Engine.id)?.desired == [:])
    await tested.end()
    #expect(try Engine.stored(in: folder.path + "/state.db").first?.desired ?? [:] == [:])
  }

  @Test func aCommandWaitsHereWhileTheOwnerIsOffline() async throws {
    let attic = try #require(GatewayID("attic"))
    let tested = try await Engine(configuration(), isInRange: false)
    let period = try Property.microbitPeriod.encode(800)
    let desired: [String: EncodedValue?] = ["period": period]
    await tested.engine.setOwner(.other(attic), of: Engine.id, Handover(desired: desired, revision: 1))
    #expect(await tested.engine.device(Engine.id)?.desired == ["period": 800])
    let outcomes = await tested.command(500)
    // The broker was restarted, and sends it again.
    await tested.engine.setOwner(.other(attic), of: Engine.id, Handover(desired: desired, revision: 1))
    #expect(outcomes.elements == [.pending])
    #expect(await tested.engine.device(Engine.id)?.desired == ["period": 500])
    await tested.engine.setOwner(
      .other(attic), of: Engine.id, Handover(desired: desired, revision: 1), isTakenOver: true,
      hasNewLink: true)
    #expect(outcomes.elements == [.pending, .takenOver()])
    await tested.end()
  }

  @Test func waitingCommandIsLeftToAGatewayThatMayHaveIt() async throws {
    let attic = try #require(GatewayID("attic"))
    let cellar = try #require(GatewayID("cellar"))
    let tested = try await Engine(configuration(), isInRange: false)
    let desired: [String: EncodedValue?] = ["period": try Property.microbitPeriod.encode(500)]
    // While the owner is offline, the others all have the command.
    await tested.engine.setOwner(.other(attic), of: Engine.id)
    let outcomes = await tested.command(500)
    await tested.engine.setOwner(
      .other(cellar), of: Engine.id, Handover(desired: desired), isTakenOver: true, hasNewLink: true)
    #expect(outcomes.elements == [.pending])
    // It goes offline, and has not received this one.
    await tested.engine.setOwner(.other(cellar), of: Engine.id, Handover(desired: desired))
    let others = await tested.command(500)
    await tested.engine.setOwner(
      .other(cellar), of: Engine.id, Handover(desired: desired), isTakenOver: true, hasNewLink: true)
    #expect(others.elements == [.pending, .takenOver(isDesiredThere: true)])
    await tested.end()
  }

  @Test func waitingCommandExpiresUnlessTheOwnerCarriesItOut() async throws {
    let attic = try #require(GatewayID("attic"))
    let tested = try await Engine(configuration(), isInRange: false)
    let outcomes = await tested.command(500, ttl: 1)
    await tested.engine.setOwner(.other(attic), of: Engine.id, isTakenOver: true, hasNewLink: true)
    #expect(try await outcomes.final() == .timeout(reason: "not applied within 1 s"))
    await tested.end()
  }

  @Test func newestDeletionCounts() async throws {
    let attic = try #require(GatewayID("attic"))
    let tested = try await Engine(configuration(), isInRange: false)
    func isDeleted(_ owner: Owner, _ handover: Handover) async -> Bool? {
      await tested.engine.setOwner(owner, of: Engine.id, handover)
      return await tested.engine.device(Engine.id)?.record.isDeleted
    }
    #expect(await isDeleted(.other(attic), Handover(isDeleted: true, revision: 5)) == true)
    #expect(await isDeleted(.other(attic), Handover(revision: 6)) == false, "added again while this was off")
    await tested.engine.setDeleted(Engine.id)
    #expect(await isDeleted(.other(attic), Handover(revision: 6)) == true, "deleted while the owner was off")
    #expect(await isDeleted(.unknown, Handover()) == false, "removed at its owner")
    #expect(
      await isDeleted(.this, Handover(isDeleted: true, revision: 1 << 52)) == true,
      "killed before it was stored")
    await tested.end()
  }

  /// The switch in Home Assistant is that of the owner.
  @Test func deviceThatItsOwnerHasDisabledByRequestIsNotConnected() async throws {
    let attic = try #require(GatewayID("attic"))
    let tested = try await Engine(configuration())
    try await tested.frontEnd.availability(true)
    func set(_ handover: Handover) async {
      await tested.engine.setOwner(.other(attic), of: Engine.id, handover)
    }
    await set(Handover(isDisabled: true, revision: 1 << 51))
    try await tested.frontEnd.availability(false)
    #expect(await tested.engine.device(Engine.id)?.settings.isEnabled == false)
    await set(Handover(revision: 1))
    #expect(await tested.engine.device(Engine.id)?.record.isDisabled == true, "an older one")
    await set(Handover(revision: (1 << 51) + 1))
    try await tested.frontEnd.availability(true)
    // Set here, to be handed over to others.
    var patch = DeviceOptionsPatch()
    for isEnabled in [false, true] {
      let before = try #require(await tested.engine.device(Engine.id)?.record.revision)
      patch.options.isEnabled = isEnabled
      let changed = try await tested.engine.change(Engine.id, patch)
      #expect(changed?.record.isDisabled == !isEnabled && before < changed?.record.revision ?? 0)
    }
    await tested.end()
  }

  @Test("What a request has disabled at this gateway stays so, whatever the owner hands over")
  func ownDisablingIsNotTakenBackByTheOwner() async throws {
    let attic = try #require(GatewayID("attic"))
    let tested = try await Engine(configuration())
    try await tested.frontEnd.availability(true)
    func set(_ handover: Handover) async {
      await tested.engine.setOwner(.other(attic), of: Engine.id, handover, isTakenOver: true)
    }
    func isDisabled() async -> Bool? { await tested.engine.device(Engine.id)?.record.isDisabled }
    var patch = DeviceOptionsPatch()
    patch.options.isEnabled = false
    _ = try await tested.engine.change(Engine.id, patch)
    for revision in [0, 1, 1 << 51, (1 << 51) + 1] {
      await set(Handover(revision: revision))
      #expect(await isDisabled() == true, "\(revision)")
    }
    // Enabled here, and disabled at the owner before and after.
    await set(Handover(isDisabled: true, revision: (1 << 51) + 2))
    patch.options.isEnabled = true
    #expect(try await tested.engine.change(Engine.id, patch)?.record.isDisabled == false)
    await set(Handover(isDisabled: true, revision: (1 << 51) + 4))
    #expect(await isDisabled() == true)
    await set(Handover(revision: (1 << 51) + 5))
    #expect(await isDisabled() == false)
    let disabled = Handover(isDisabled: true, revision: 1 << 51)
    await tested.engine.setOwner(.other(attic), of: Engine.id, disabled)
    await tested.end()
  }

  @Test("A device that its owner has disabled, and then removed, is enabled again")
  func removalAtTheOwnerEnds() async throws {
    let attic = try #require(GatewayID("attic"))
    let tested = try await Engine(configuration())
    try await tested.frontEnd.availability(true)
    await tested.engine.setOwner(.other(attic), of: Engine.id, Handover(isDisabled: true, revision: 1 << 51))
    try await tested.frontEnd.availability(false)
    await tested.engine.setOwner(.unknown, of: Engine.id, Handover())
    try await tested.frontEnd.availability(true)
    await tested.end()
  }

  /// A gateway that was off meanwhile has an older value.
  @Test func desiredValueOutlivesTheRemovalOfTheDeviceAtItsOwner() async throws {
    let (attic, hall) = (try #require(GatewayID("attic")), try #require(GatewayID("hall")))
    let tested = try await Engine(configuration(), isInRange: false)
    func handover(_ period: Value, _ revision: Int) throws -> Handover {
      Handover(
        desired: ["period": try Property.microbitPeriod.encode(period)], revision: revision)
    }
    await tested.engine.setOwner(.other(attic), of: Engine.id, try handover(1500, 1))
    await tested.engine.setOwner(.other(attic), of: Engine.id, try handover(500, 2))
    await tested.engine.setOwner(.unknown, of: Engine.id, Handover())
    await tested.engine.setOwner(.other(hall), of: Engine.id, try handover(1500, 1))
    #expect(await tested.engine.device(Engine.id)?.desired == ["period": 500])
    #expect(await tested.engine.device(Engine.id)?.record.revision == 2)
    await tested.end()
  }

  @Test func waitingCommandOutlivesARestartBesideAnOfflineOwner() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/state.db"
    let attic = try #require(GatewayID("attic"))
    let desired: [String: EncodedValue?] = ["period": try Property.microbitPeriod.encode(800)]
    var tested = try await Engine(configuration(), state: path, isInRange: false)
    await tested.engine.setOwner(.other(attic), of: Engine.id, Handover(desired: desired))
    #expect(await tested.command(500).elements == [.pending])
    let revision = await tested.engine.device(Engine.id)?.record.revision
    await tested.end()
    tested = try await Engine(configuration(), state: path, isInRange: false)
    await tested.engine.setOwner(.other(attic), of: Engine.id)
    let device = await tested.engine.device(Engine.id)
    #expect(device?.record.revision == revision, "it is newer than the owner's")
    #expect(device?.desired == ["period": 500])
    await tested.comeBack()
    try await tested.frontEnd.reading(Engine.period, 500, sequence: .some(nil))
    await tested.end()
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
      #expect(try EngineUnderTest.stored(in: path).first.map { Set($0.waiting.keys) } == kept)
    }
  }
}

extension DeviceManager {
  /// In one loop iteration.
  fileprivate func executeAndEnd(_ command: EncodedCommand) {
    registry.byID[EngineUnderTest.id]?.channels[EngineUnderTest.period].writer?.execute(command)
    endSessions()
  }

  /// In one loop iteration: in the next one, the device may already be connecting again.
  private func links(_ id: DeviceID) -> LinkSession? { (try? requireDevice(id))?.session.linkSession }
  func isUrgent(_ id: DeviceID) -> Bool { links(id)?.isUrgent == true }
  /// Whether the next link is urgent when the link ends during a command's write.
  fileprivate func isUrgent(after command: EncodedCommand) throws -> Bool {
    registry.byID[EngineUnderTest.id]?.channels[EngineUnderTest.period].writer?.execute(command)
    let session = try #require(links(EngineUnderTest.id))
    let peripheral = try #require(session.peripheral)
    session.handle(.disconnected(peripheral, reason: nil), of: peripheral)
    return session.isUrgent
  }

  fileprivate func setOwnerAndRename(
    _ owner: Owner, _ desired: [String: EncodedValue?], to id: DeviceID
  ) throws {
    setOwner(
      owner, of: EngineUnderTest.id, Handover(desired: desired), isTakenOver: true, hasNewLink: true)
    try rename(EngineUnderTest.id, to: id)
  }
}
