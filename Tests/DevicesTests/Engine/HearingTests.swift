import Configuration
import EventLoop
import GATT
import Log
import Peripherals
import TestSupport
import Testing

@testable import BlueZ
@testable import Devices

/// Devices that are only heard, among them some that send nonsense.
@Suite struct HearingTests {
  private typealias Engine = EngineUnderTest

  private static let service = BluetoothUUID(short: 0xFEAA)
  private static let named = BluetoothAddress(truncating: 0xE67A_0000_FFFF)

  /// Everybody who advertises Eddystone, and one by its address.
  private static func configuration() throws -> Configuration {
    let uid = Property(
      name: "uid", source: Property.Source(.service(service), prefix: [0]),
      codec: try Codec(.advertised(.eddystoneUID, 0)))
    var configuration = Configuration()
    configuration.profiles.append(try Profile(name: "eddystone", properties: [uid]))
    var match = Configuration.Match()
    match.service = service
    for match in [match, .identifier(named)] {
      var entry = Configuration.Device(match: match)
      entry.options.profile = "eddystone"
      configuration.devices.insert(entry, at: 0)
    }
    return configuration
  }

  private static func beacon(_ address: BluetoothAddress?, _ bytes: [UInt8]) -> PeripheralDescription {
    var beacon = PeripheralDescription(name: "", address: address, services: [])
    beacon.serviceData = [service: bytes]
    return beacon
  }

  /// A frame Eddystone-UID with so many bytes after its type.
  private static func frame(_ count: Int) -> [UInt8] { Array(repeating: 0, count: 1 + count) }

  @Test func dataOfAnyLengthIsAValueOrIsCounted() async throws {
    let tested = try await Engine(try Self.configuration()) {
      $0.described = [Self.beacon(Self.named, Self.frame(17))]
    }
    let id = DeviceID(Self.named)
    try await tested.frontEnd.change("heard") { $0.id == id && $0.isOnline }
    await tested.advertise([], of: Self.service, by: 1)
    for count in (0...31) where count != 17 {
      let (malformed, mark) = (await tested.engine.counters.malformed, tested.frontEnd.events.elements.count)
      await tested.advertise(Self.frame(count), of: Self.service, by: 1)
      if count == 19 {
        try await tested.frontEnd.event(from: mark, "a reading") {
          if case .reading(0, .record, _) = $0 { true } else { false }
        }
      } else {
        try await eventually("a malformed frame") { await tested.engine.counters.malformed != malformed }
        #expect(await tested.engine.counters.malformed == malformed + 1)
      }
    }
    #expect(await tested.engine.device(id)?.isOnline == true)
    await tested.end()
  }

  /// bluetoothd removes the object of a device that is silent for 30 s, here for less; each time that it is heard again, its
  /// value is a reading, whether it has changed or not: one that speaks once a minute has one a minute.
  @Test func deviceIsHeardAfterEachSilence() async throws {
    let tested = try await Engine(try Self.configuration()) {
      $0.described = [Self.beacon(Self.named, Self.frame(17))]
      $0.timing.temporary = .milliseconds(100)
    }
    try await tested.frontEnd.change("heard") { $0.id == DeviceID(Self.named) && $0.isOnline }
    for count in 1...6 {
      await tested.vanish(1)
      try await eventually("the end of the object") { await !tested.hasObject(of: Self.named) }
      let mark = tested.frontEnd.events.elements.count
      await tested.advertise(Self.frame(16) + [UInt8(count)], of: Self.service, by: 1)
      await tested.comeBack(1)
      try await tested.frontEnd.event(from: mark, "reading \(count)") {
        guard case .reading(0, .record(let fields), _) = $0 else { return false }
        return fields.last == .integer(count)
      }
    }
    await tested.end()
  }

  /// bluetoothd goes on listing what a device has sent before.
  @Test func otherDataOfADeviceIsNoValue() async throws {
    var configuration = try Self.configuration()
    let number = Property(
      name: "number", source: Property.Source(.manufacturer(0x0106)), codec: try Codec(.scalar(.init(.uint8)))
    )
    configuration.profiles[0] = try Profile(name: "eddystone", properties: [number])
    let tested = try await Engine(configuration) {
      var beacon = Self.beacon(Self.named, Self.frame(17))
      beacon.manufacturerData = [0x0106: [1]]
      $0.described = [beacon]
    }
    try await tested.frontEnd.change("heard") { $0.id == DeviceID(Self.named) && $0.isOnline }
    #expect(try await Self.readings(tested) == [1, 0, 1])
    await tested.end()
  }

  /// How many readings there are after a report of manufacturer data, of service data, and of manufacturer data.
  @LoopActor private static func readings(_ tested: Engine) throws -> [UInt64] {
    let device = try #require(tested.engine.registry.byAddress[named])
    let session = try #require(device.session as? HeardSession)
    var seen = Peripheral(
      id: PeripheralID(path: "/"), address: named, name: nil, rssi: -60, isConnected: false, isPaired: false)
    seen.advertised.manufacturerData = [0x0106: [1]]
    var readings: [UInt64] = []
    for kind in [\AdvertisedData.Reports.manufacturerData, \.serviceData, \.manufacturerData] {
      // As after a silence.
      session.events.forgetReadings()
      seen.lastReports[keyPath: kind] += 1000
      let before = device.sequence
      session.seen(seen, by: 0)
      readings.append(device.sequence - before)
    }
    return readings
  }

  @Test func anotherTimeUntilItIsOfflineHoldsAtOnce() async throws {
    var configuration = try Self.configuration()
    configuration.devices[0].options.offlineAfter = .never
    let tested = try await Engine(configuration) {
      $0.described = [Self.beacon(Self.named, Self.frame(17))]
    }
    let id = DeviceID(Self.named)
    try await tested.frontEnd.change("heard") { $0.id == id && $0.isOnline }
    await tested.vanish(1)
    let mark = tested.frontEnd.events.elements.count
    configuration.devices[0].options.offlineAfter = .seconds(1)
    await tested.engine.configure(configuration)
    try await tested.frontEnd.change(from: mark, "offline") { $0.id == id && !$0.isOnline }
    await tested.end()
  }

  /// The owner's `info` is awaited first, that of a device whose silence means nothing.
  @Test(
    "What is heard of another gateway's device is noted later, unless it is disabled by then",
    arguments: [false, true])
  func heardMeanwhile(isDisabled: Bool) async throws {
    var configuration = try Self.configuration()
    configuration.devices[0].options.offlineAfter = .never
    let tested = try await Engine(configuration) { $0.described = [Self.beacon(Self.named, Self.frame(17))] }
    let id = DeviceID(Self.named)
    try await tested.frontEnd.change("heard") { $0.id == id && $0.isOnline }
    await tested.vanish(1)
    let before = Timestamp(milliseconds: 1_000_000)
    try await Self.hearOfAnother(tested, before)
    if isDisabled {
      configuration.devices[0].options.isEnabled = false
      await tested.engine.configure(configuration)
    }
    // The loop's timers fire in the order of their deadlines: this one after that of the owner's `info`, of three seconds.
    try await loop.sleep(for: .milliseconds(3200))
    #expect(await (tested.engine.device(id)?.record.lastHeard == before) == isDisabled)
    if isDisabled {
      configuration.devices[0].options.isEnabled = true
      await tested.engine.configure(configuration)
      try await Self.hearOfAnother(tested, before)
      try await eventually("it is noted") { await tested.engine.device(id)?.record.lastHeard != before }
    }
    await tested.end()
  }

  @LoopActor private static func hearOfAnother(_ tested: Engine, _ before: Timestamp) throws {
    let session = try #require(Self.session(tested))
    session.device.owner = .other(GatewayID(hostName: "attic"))
    tested.engine.store.change(named) { $0.lastHeard = before }
    var seen = Peripheral(
      id: PeripheralID(path: "/"), address: named, name: nil, rssi: -60, isConnected: false, isPaired: false)
    seen.advertised.serviceData = [service: frame(17)]
    seen.lastReports.serviceData = 1_000_000
    session.events.forgetReadings()
    session.seen(seen, by: 0)
    #expect(tested.engine.store.record(named).lastHeard == before)
  }

  /// It sends every ten minutes, in this run and the next one; then its profile says something else.
  @Test func rhythmIsKeptOverARestart() async throws {
    let folder = try TemporaryFolder(), path = folder.path + "/state.db"
    var configuration = try Self.configuration()
    let limits: [(before: Duration, after: Duration)] = [
      (.seconds(900), .seconds(1800)), (.seconds(1800), .seconds(1800)), (.seconds(5), .seconds(5)),
    ]
    for (run, limit) in limits.enumerated() {
      if run == 2 {
        let profile = configuration.profiles[0]
        configuration.profiles[0] = try Profile(
          name: profile.name, offlineAfter: .seconds(5), properties: profile.properties)
      }
      let tested = try await Engine(configuration, state: path, isInRange: false) {
        $0.described = [Self.beacon(Self.named, Self.frame(17))]
      }
      try await tested.frontEnd.change("heard") { $0.id == DeviceID(Self.named) && $0.isOnline }
      #expect(await Self.limit(tested) == limit.before)
      await Self.hear(tested, every: .seconds(600))
      #expect(await Self.limit(tested) == limit.after)
      await tested.end()
    }
  }

  @Test(arguments: [true, false])
  func anOutageOfTheAdapterIsNoSilenceOfTheDevice(isGone: Bool) async throws {
    let tested = try await Engine(try Self.configuration(), isInRange: false) {
      $0.described = [Self.beacon(Self.named, Self.frame(17))]
    }
    try await tested.frontEnd.change("heard") { $0.id == DeviceID(Self.named) && $0.isOnline }
    await tested.vanish(1)
    await Self.hear(tested, every: .seconds(30))
    if isGone {
      await tested.plug(0, false)
      try await eventually("the adapter is gone") { await !tested.engine.isOn }
    } else {
      // It cannot scan.
      await tested.engine.handle(.recovery, of: 0)
    }
    await Self.hear(tested, 2, every: .seconds(30), after: .seconds(7200))
    #expect(await Self.limit(tested) == .seconds(90))
    await tested.end()
  }

  /// It was configured for the last run.
  @Test func theEndOfAnOfflineAfterNullHoldsAfterARestart() async throws {
    let folder = try TemporaryFolder(), path = folder.path + "/state.db"
    for offlineAfter in [Profile.OfflineAfter.never, nil] {
      var configuration = try Self.configuration()
      configuration.devices[0].options.offlineAfter = offlineAfter
      configuration.devices[1].options.offlineAfter = offlineAfter
      let tested = try await Engine(configuration, state: path, isInRange: false) {
        $0.described = [Self.beacon(Self.named, Self.frame(17))]
      }
      try await tested.frontEnd.change("heard") { $0.id == DeviceID(Self.named) && $0.isOnline }
      #expect(await Self.limit(tested) == (offlineAfter == nil ? Rhythm.initial : nil))
      await tested.end()
    }
  }

  @LoopActor private static func session(_ tested: Engine) -> HeardSession? {
    tested.engine.registry.byAddress[named]?.session as? HeardSession
  }

  @LoopActor private static func limit(_ tested: Engine) -> Duration? { session(tested)?.limit }

  @LoopActor private static func hear(
    _ tested: Engine, _ times: Int = 9, every interval: Duration, after pause: Duration = .seconds(5)
  ) {
    // From later on: the device itself is heard as well.
    let start = Moment.now + pause
    for count in 1...times { session(tested)?.followRhythm(at: start + interval * count) }
  }

  /// In steps of 10 dB: the simulated signals differ by up to 3 dB from the given one.
  @Test func signalStrengthIsAMean() async throws {
    let tested = try await Engine(try Self.configuration()) {
      $0.described = [Self.beacon(Self.named, Self.frame(17))]
    }
    let id = DeviceID(Self.named)
    try await tested.frontEnd.change("heard") { $0.id == id && $0.isOnline }
    for strength in [-50, -90] {
      await tested.receive(1, at: strength)
      for count in 1...8 {
        let mark = tested.frontEnd.events.elements.count
        await tested.advertise(Self.frame(17).dropLast() + [UInt8(count)], of: Self.service, by: 1)
        try await tested.frontEnd.event(from: mark, "a reading") {
          if case .reading(0, .record, _) = $0 { true } else { false }
        }
      }
      let rssi = try #require(await tested.engine.device(id)?.rssi)
      #expect(abs(rssi - strength) < 20)
    }
    // Each change is told, so that this gateway's `info` has it.
    let told = tested.frontEnd.events.elements.compactMap {
      if case .changed(.description, let device) = $0, device.id == id { device.rssi } else { nil }
    }
    let last = await tested.engine.device(id)?.rssi
    #expect(told.last == last && Set(told).count < 8, "\(told)")
    await tested.end()
  }

  @Test func oneThatIsOnlyHeardIsNeverConnectedTo() async throws {
    let tested = try await Engine(try Self.configuration(), isInRange: false) {
      $0.described = [Self.beacon(Self.named, Self.frame(17))]
    }
    let id = DeviceID(Self.named)
    try await tested.frontEnd.change("heard") { $0.id == id && $0.isOnline }
    await #expect(throws: RequestError.self) { try await tested.engine.reconnect(id) }
    await #expect(throws: RequestError.self) {
      try await tested.engine.pair(.id(id), passkey: nil) { _ in }
    }
    #expect(await tested.get(0, of: id).elements.count == 1)
    // Out of range and back, then the same of the adapter.
    await tested.vanish(1)
    await tested.comeBack(1)
    await tested.plug(0, false)
    await tested.plug(0, true)
    let mark = tested.frontEnd.events.elements.count
    try await eventually("an event") {
      await tested.advertise(Self.frame(16) + [UInt8.random(in: 1...255)], of: Self.service, by: 1)
      return tested.frontEnd.events.elements.count != mark
    }
    #expect(await tested.engine.adapterLinks.used.values.allSatisfy { $0 == 0 })
    #expect(await tested.engine.device(id)?.session == .listening)
    await tested.end()
    #expect(await tested.engine.device(id)?.session == .stopped)
    let states = tested.frontEnd.events.elements.compactMap {
      if case .changed(_, let device) = $0, device.id == id { device.session } else { nil }
    }
    #expect(Set(states) == [.listening, .stopped])
  }

  /// The entry has an id, but no name, and matches several.
  @Test func valueThatDoesNotFitIsToldOfTheDeviceWithAnID() async throws {
    var configuration = try Self.configuration()
    configuration.devices[1].options.id = try DeviceID("lab")
    let tested = try await Engine(configuration, isInRange: false) {
      $0.described = [Self.beacon(nil, Self.frame(5))]
    }
    let lab = try DeviceID("lab")
    try await eventually("a malformed value") { await tested.engine.counters.malformed == 1 }
    #expect(await tested.isAnonymous(lab) == false)
    let finding = await tested.engine.findings.first { $0.code == "misfit" }
    #expect(
      finding?.text
        == "lab: no value of uid fits the profile eddystone: expected 17 bytes, got 5: 00 00 00 00 00")
    let mark = tested.frontEnd.events.elements.count
    await tested.advertise(Self.frame(17), of: Self.service, by: 1)
    try await tested.frontEnd.change(from: mark, "heard") { $0.id == lab && $0.isOnline }
    #expect(await tested.engine.findings.allSatisfy { $0.code != "misfit" })
    await tested.end()
  }

  /// Each stranger sends something else with the same service. One of them sends a value later.
  @Test func strangersWithoutAValueAreNoDevices() async throws {
    var configuration = try Self.configuration()
    configuration.devices.removeAll { $0.match.isIdentifier }
    let tested = try await Engine(configuration, isInRange: false) {
      $0.described = (0..<600).map { _ in Self.beacon(nil, [0x30, 1]) } + [Self.beacon(nil, Self.frame(17))]
    }
    try await tested.frontEnd.change("the beacon") { $0.isOnline }
    _ = try await tested.scan(finding: 601)
    #expect(await tested.engine.deviceCount == 1)
    #expect(await tested.engine.counters.overLimit == 0)
    #expect(await tested.engine.findings.allSatisfy { $0.code != "too_many_devices" })
    await tested.advertise(Self.frame(17), of: Self.service, by: 1)
    try await eventually("a second device") { await tested.engine.onlineCount == 2 }
    await tested.end()
  }

  /// Every second of a thousand addresses sends nonsense. They leave half of the places to others.
  @Test func floodKeepsNoOtherDeviceOut() async throws {
    let tested = try await Engine(try Self.configuration()) {
      $0.described =
        (0..<1000).map { Self.beacon(nil, Self.frame($0 % 2 == 0 ? 17 : $0 % 16)) } + [
          Self.beacon(Self.named, Self.frame(17))
        ]
      $0.timing.temporary = .seconds(3600)
    }
    for id in [Engine.id, DeviceID(Self.named)] {
      try await tested.frontEnd.change("\(id) is online") { $0.id == id && $0.isOnline }
    }
    // The one that has an entry has a place of its own.
    try await eventually("501 too many") { await tested.engine.counters.overLimit >= 501 }
    #expect(await tested.engine.counters.overLimit == 501)
    #expect(await tested.engine.deviceCount == 501)
    let finding = await tested.engine.findings.first { $0.code == "too_many_devices" }
    #expect(finding?.text == "501 peripherals in range are ignored: there are too many devices")
    await tested.end()
  }
}
