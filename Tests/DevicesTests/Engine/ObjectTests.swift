import Configuration
import GATT
import Peripherals
import TestSupport
import Testing

@testable import Devices

/// Devices that advertise in BTHome.
@Suite struct ObjectTests {
  private typealias Engine = EngineUnderTest

  private static let address = BluetoothAddress(truncating: 0x5448_E68F_80A5)
  private static let id = DeviceID(address)
  private static let key = Hexadecimal.bytes("231d39c1d7cc1ab1aee224cd096db932")

  private static func configuration(key: [UInt8]? = nil, offset: Double? = nil) -> Configuration {
    var configuration = Configuration()
    var entry = Configuration.Device(match: .identifier(address))
    entry.options.profile = "bthome"
    entry.options.key = key
    if let offset {
      var adjustment = Adjustment()
      adjustment.offset = offset
      entry.options.adjust = [Named("temperature_2", adjustment)]
    }
    configuration.devices.insert(entry, at: 0)
    return configuration
  }

  private static func sensor(_ hex: String, _ service: BluetoothUUID = BTHome.service)
    -> PeripheralDescription
  {
    var sensor = PeripheralDescription(name: "", address: address, services: [])
    sensor.serviceData = [service: Hexadecimal.bytes(hex) ?? []]
    return sensor
  }

  private static func advertise(_ tested: Engine, _ hex: String) async {
    await tested.advertise(Hexadecimal.bytes(hex) ?? [], of: BTHome.service, by: 1)
  }

  /// The list of its properties grows with what it sends, and stays over a restart of the session.
  @Test func propertiesComeWithTheirObjects() async throws {
    let tested = try await Engine(Self.configuration(offset: 1)) {
      $0.described = [Self.sensor("40" + "02ca09")]
    }
    try await tested.frontEnd.change("heard") { $0.id == Self.id && $0.isOnline }
    #expect(await tested.engine.device(Self.id)?.profile.properties.map(\.name) == ["temperature"])
    await Self.advertise(tested, "40" + "02cb09" + "02cf09" + "3a01" + "f102030401")
    try await tested.frontEnd.change("grown") { $0.profile.properties.count == 3 && $0.isOnline }
    #expect(
      await tested.engine.device(Self.id)?.profile.properties.map(\.name)
        == ["temperature", "button", "temperature_2"])
    #expect(await tested.engine.device(Self.id)?.record.firmware == "1.4.3.2")
    // The offset of the second one is added.
    try await tested.frontEnd.event("the second temperature") {
      if case .reading(2, .number(26.11), _) = $0 { true } else { false }
    }
    await tested.end()
  }

  /// Nothing is made of the silence of a door: it stays online.
  @Test func deviceWithAnotherPropertyIsNotOffline() async throws {
    let tested = try await Engine(Self.configuration()) { $0.described = [Self.sensor("44" + "1a01")] }
    try await tested.frontEnd.change("heard") { $0.id == Self.id && $0.isOnline }
    await Self.advertise(tested, "44" + "1a01" + "2d01")
    try await tested.frontEnd.change("grown") { $0.profile.properties.count == 2 && $0.isOnline }
    let device = await tested.engine.device(Self.id)
    #expect(device?.isOnline == true && device?.offlineSince == nil)
    await tested.end()
  }

  /// What it has said holds after a restart, and an `offline_after` no longer that was in its entry before.
  @Test(arguments: [true, false])
  func onlyItsWordMakesItSilentForGood(isTriggerOnly: Bool) async throws {
    let folder = try TemporaryFolder(), path = folder.path + "/state.db"
    var configuration = Self.configuration()
    configuration.devices[0].options.offlineAfter = .never
    let first = try await Engine(configuration, state: path) {
      $0.described = [Self.sensor(isTriggerOnly ? "44" + "1a01" : "40" + "02ca09")]
    }
    try await first.frontEnd.change("heard") { $0.id == Self.id && $0.isOnline }
    await first.end()
    #expect(try Engine.stored(in: path).contains { $0.address == Self.address && $0.lastHeard != nil })
    let next = try await Engine(Self.configuration(), state: path)
    #expect(await next.engine.device(Self.id)?.isOnline == isTriggerOnly)
    await next.end()
  }

  @Test func anUnknownObjectIsNamed() async throws {
    let tested = try await Engine(Self.configuration()) {
      $0.described = [Self.sensor("40" + "0161" + "ee00")]
    }
    try await tested.frontEnd.change("heard") {
      $0.id == Self.id && $0.isOnline && $0.unknownObjects == [0xEE]
    }
    await tested.end()
  }

  /// A sender of ever new kinds does not fill the memory.
  @Test func thereIsABound() async throws {
    let many = "40" + String(repeating: "3a01", count: 100)
    let tested = try await Engine(Self.configuration()) { $0.described = [Self.sensor(many)] }
    try await tested.frontEnd.change("heard") { $0.profile.properties.count == 64 }
    await tested.end()
  }

  @Test(arguments: [
    ("41a47266c95f730011223378237214", BTHome.service, nil, "there is no key"),
    ("41a47266c95f730011223378237215", BTHome.service, key, "another key"),
    ("400161", BTHome.service, key, "not encrypted"),
    ("0201612302ca09", BTHome.oldServices[0], nil, "version 1 of BTHome"),
  ])
  func whatCannotBeReadIsSaid(hex: String, service: BluetoothUUID, key: [UInt8]?, problem: String)
    async throws
  {
    let tested = try await Engine(Self.configuration(key: key)) { $0.described = [Self.sensor(hex, service)] }
    try await tested.frontEnd.change("named") { $0.lastError?.contains(problem) == true && !$0.isOnline }
    await tested.end()
  }

  @Test func whatCannotBeReadIsSaidOnceUntilSomethingCan() async throws {
    let tested = try await Engine(Self.configuration()) {
      $0.described = [Self.sensor("41a47266c95f730011223378237214")]
    }
    try await tested.frontEnd.change("named") { $0.id == Self.id && $0.lastError != nil }
    await Self.advertise(tested, "41a47266c95f730111223378237215")
    await Self.advertise(tested, "40" + "02ca09")
    try await tested.frontEnd.change("read") { $0.id == Self.id && $0.isOnline && $0.lastError == nil }
    let said = tested.frontEnd.events.elements.filter {
      guard case .changed(.session, let device) = $0 else { return false }
      return device.id == Self.id && device.session == .listening && device.lastError != nil
    }
    #expect(said.count == 1)
    await tested.end()
  }

  /// Anybody can send it between two frames of the device.
  @Test func whatCannotBeReadBetweenValuesIsNoNews() async throws {
    let tested = try await Engine(Self.configuration()) { $0.described = [Self.sensor("40" + "02ca09")] }
    try await tested.frontEnd.change("heard") { $0.id == Self.id && $0.isOnline }
    let mark = tested.frontEnd.events.count
    for number in 0...9 {
      await Self.advertise(tested, "41a47266c95f730\(number)11223378237214")
      await Self.advertise(tested, "40" + "02c\(number)09")
      let value = Value.number(Double(0x09C0 + number) / 100)
      try await tested.frontEnd.event(from: mark, "\(value)") {
        if case .reading(0, value, _) = $0 { true } else { false }
      }
    }
    let reports = tested.frontEnd.events.elements[mark...].filter {
      if case .changed(.session, let device) = $0 { device.id == Self.id } else { false }
    }
    #expect(reports.isEmpty)
    #expect(await tested.engine.device(Self.id)?.lastError == nil)
    await tested.end()
  }

  /// Its counter was 2000, and is 151, then 1000.
  @Test func aButtonThatWasResetIsTakenOnceItIsEnabledAgain() async throws {
    let folder = try TemporaryFolder(), path = folder.path + "/state.db"
    var record = DeviceRecord(address: Self.address)
    record.counter = 2000
    await Engine.store(record, in: path)
    let tested = try await Engine(Self.configuration(key: Self.key), state: path) {
      $0.described = [Self.sensor("45e3749700000081ad71ed")]
    }
    try await tested.frontEnd.change("refused") { $0.lastError?.contains("counter has gone back") == true }
    var patch = DeviceOptionsPatch()
    for isEnabled in [false, true] {
      patch.options.isEnabled = isEnabled
      _ = try await tested.engine.change(Self.id, patch)
    }
    let mark = tested.frontEnd.events.count
    await Self.advertise(tested, "45a66de803000096eedc5d")
    try await tested.frontEnd.event(from: mark, "the press") {
      if case .reading(0, .text("press"), _) = $0 { true } else { false }
    }
    await tested.end()
    let stored = try Engine.stored(in: path).first { $0.address == Self.address }
    #expect(stored?.counter == 1000)
  }

  @Test func aTextWithControlCharactersIsMalformed() async throws {
    let tested = try await Engine(Self.configuration()) { $0.described = [Self.sensor("40" + "53026869")] }
    try await tested.frontEnd.change("heard") { $0.id == Self.id && $0.isOnline }
    await Self.advertise(tested, "40" + "53021b5b")
    try await eventually("a malformed text") { await tested.engine.counters.malformed > 0 }
    await Self.advertise(tested, "40" + "5303796f00")
    try await tested.frontEnd.event("the text") {
      if case .reading(0, .text("yo"), _) = $0 { true } else { false }
    }
    let texts = tested.frontEnd.events.elements.compactMap {
      if case .reading(0, .text(let text), _) = $0 { text } else { nil }
    }
    #expect(texts == ["hi", "yo"])
    await tested.end()
  }

  @Test func anEncryptedFrameIsRead() async throws {
    let tested = try await Engine(Self.configuration(key: Self.key)) {
      $0.described = [Self.sensor("41a47266c95f730011223378237214")]
    }
    try await tested.frontEnd.change("heard") {
      $0.isOnline && $0.profile.properties.map(\.name) == ["temperature", "humidity"]
    }
    await tested.end()
  }
}
