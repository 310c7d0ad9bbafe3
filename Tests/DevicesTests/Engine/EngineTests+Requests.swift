import Configuration
import GATT
import JSON
import TestSupport
import Testing

@testable import Devices

/// Changes of the configuration, and requests.
extension EngineTests {
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
    #expect(stored?.requested.desired == ["period": DeviceRecord.Desired(value: 600, source: .request)])
    #expect(stored?.requested.changes.name == "Kitchen")
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
    #expect(try Engine.stored(in: folder.path + "/state.db").first?.requested.changes.isEmpty == true)
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
    #expect(record.requested.desired.keys.sorted() == ["accelerometer_period"])
    #expect(DeviceRecord(address: Engine.address, bytes: record.bytes) == record)
    await tested.engine.configure(configuration { $0.properties = ["auto", "led"] })
    let automatic = Profile.microbit.automaticProperties
    #expect(await Set(used() ?? []) == Set(automatic + ["accelerometer_period", "led"]))
    let reset = try await tested.engine.change(
      Engine.id, ["desired": ["accelerometer_period": .null, "period": .null]])
    #expect(reset.map { Set($0.profile.properties.map(\.name)) } == Set(automatic + ["led"]))
    await tested.end()
    let stored = try Engine.stored(in: folder.path + "/state.db").first
    #expect(stored?.requested.changes.isEmpty == true && stored?.requested.desired.isEmpty == true)
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
    #expect(try Engine.stored(in: path).map(\.requested.desired.isEmpty) == [true])
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
    await #expect(throws: RequestError.self) {
      try await tested.engine.change(Engine.id, ["gateway": "attic", "desired": ["period": 500]])
    }
    #expect(await tested.engine.deviceCount == 1, "the value would be lost")
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

  @Test func aChangedIntervalOfADeviceThatIsNotVisitedEndsNoLink() async throws {
    func configuration(every: Int) -> Configuration {
      self.configuration { ($0.connect, $0.every) = (.onDemand, every) }
    }
    let tested = try await Engine(configuration(every: 600))
    _ = try await tested.engine.change(Engine.id, ["connect": "always"])
    try await tested.frontEnd.availability(true)
    await tested.engine.configure(configuration(every: 900))
    #expect(await tested.engine.device(Engine.id)?.session == .live)
    await tested.end()
  }

  @Test func disabledDeviceIsDisconnected() async throws {
    let tested = try await Engine(configuration())
    try await tested.frontEnd.availability(true)
    let before = tested.frontEnd.events.count
    await tested.engine.configure(configuration { $0.isEnabled = false })
    let offline = try await tested.frontEnd.availability(false, from: before)
    #expect(offline.session == .stopped && !offline.settings.isEnabled)
    #expect(await tested.command(500).elements == [.failed(reason: "the device is disabled")])
    #expect(tested.frontEnd.outcomes.elements == [.failed(reason: "the device is disabled")])
    await #expect(throws: RequestError.self) { try await tested.engine.reconnect(Engine.id) }
    await tested.engine.configure(configuration())
    try await tested.frontEnd.availability(true, from: before)
    await tested.end()
  }
}
