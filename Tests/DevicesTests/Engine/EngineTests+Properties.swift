import Configuration
import GATT
import Peripherals
import TestSupport
import Testing

@testable import Devices

/// Properties and services that change, and profiles other than that of the micro:bit.
extension EngineTests {
  // MARK: Properties

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
    let tested = try await Engine(configuration(), isInRange: false, servicesLimit: patience)
    let service = Property.microbitTemperature.service
    await tested.serve(service, false)
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
}
