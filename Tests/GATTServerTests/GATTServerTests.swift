import DBus
import EventLoop
import GATT
import Glibc
import Peripherals
import TestSupport
import Testing

@testable import GATTServer

/// The exported objects, called by a fake bluetoothd on a private bus.
@Suite struct GATTServerTests {
  private static let counter = Property(
    name: "add", service: BluetoothUUID(short: 0x1111), characteristic: BluetoothUUID(short: 0x2222),
    kind: .event, access: .write, codec: .uint8)

  /// A server with its bluetoothd and its events.
  private struct Served {
    let bluetoothd: FakeBluetoothd
    let server: GATTServer
    let events: Record<GATTServerEvent>
    let run: Task<Void, Never>

    func waitUntilServing() async throws {
      _ = try await events.next("serving") { $0 == .serving(address: "02:00:5E:00:53:02") ? true : nil }
    }

    func waitingReason() async throws -> String {
      try await events.next("waiting") { if case .waiting(let reason) = $0 { reason } else { nil } }
    }
  }

  private func withServer(
    _ peripheral: ServedPeripheral = ServedPeripheral(.microbit, at: .now), adapter: String = "hci1",
    name: String = "BBC micro:bit [zugev]", isRegistered: Bool = true,
    _ body: (Served, PrivateBus) async throws -> Void
  ) async throws {
    let bus = try await PrivateBus()
    let bluetoothd = try await FakeBluetoothd.start(bus: bus.address)
    let events = Record<GATTServerEvent>()
    let server = await GATTServer(
      peripheral, name: name, adapter: adapter, bus: bus.address
    ) { events.append($0) }
    let run = loop.task { await server.run() }
    let served = Served(bluetoothd: bluetoothd, server: server, events: events, run: run)
    if isRegistered { try await served.waitUntilServing() }
    try await body(served, bus)
    run.cancel()
    await run.value
  }

  /// The D-Bus name of the error, if any.
  private static func errorName(_ body: () async throws -> Void) async -> String? {
    do { try await body() } catch { return (error as? DBusError)?.name ?? "\(error)" }
    return nil
  }

  @Test func microBitIsExportedWithoutServicesOfBlueZ() async throws {
    try await withServer { served, _ in
      let objects = await served.bluetoothd.objects
      let services = objects.values.filter { $0["Primary"] != nil }.compactMap { $0["UUID"]?.text }
      #expect(services.count == MicroBitService.allCases.count + 1)
      #expect(!services.contains { $0.hasPrefix("00001800") || $0.hasPrefix("00001801") })
      let temperature = try await served.bluetoothd.path(Property.microbitTemperature.characteristic)
      #expect(objects[temperature]?["Flags"]?.textArray == ["read", "notify"])
      #expect(objects[temperature]?["NotifyAcquired"] == nil)
      let service = try #require(objects[temperature]?["Service"]?.text)
      #expect(objects[service]?["UUID"]?.text == BluetoothUUID.microbitTemperatureService.description)
      let advertisement = await served.bluetoothd.advertisement
      #expect(advertisement["LocalName"]?.text == "BBC micro:bit [zugev]")
      #expect(advertisement["Type"]?.text == "peripheral")
      #expect(advertisement["ServiceUUIDs"]?.textArray == [])
      #expect(await served.bluetoothd.alias == "BBC micro:bit [zugev]")
    }
  }

  @Test func centralReadsWritesAndIsNotified() async throws {
    try await withServer { served, _ in
      let fake = served.bluetoothd
      let period = try await fake.path(Property.microbitPeriod.characteristic)
      #expect(try await fake.read(period) == [0xE8, 3])
      #expect(try await fake.read(period, offset: 1) == [3])
      try await fake.write(period, [20, 0])
      _ = try await served.events.next("written") { $0 == .written(.microbitPeriod, [20, 0]) ? true : nil }
      let temperature = try await fake.path(Property.microbitTemperature.characteristic)
      try await served.server.set(.microbitTemperature, to: .integer(37))
      _ = try await fake.call("StartNotify", temperature)
      let notified = FakeBluetoothd.Notified(path: temperature, bytes: [37])
      for _ in 0..<3 { _ = try await fake.values.next("a sample") { $0 == notified ? true : nil } }
      _ = try await fake.call("StopNotify", temperature)
      let button = try await fake.path(Property.microbitButtonA.characteristic)
      _ = try await fake.call("StartNotify", button)
      let mark = fake.values.count
      try await served.server.set(.microbitButtonA, to: .text("press_start"))
      let pressed = try await fake.values.first(from: mark, "a press") { $0.path == button }
      #expect(pressed.bytes == [1])
    }
  }

  @Test func indicationWaitsForConfirmationOfPreviousOne() async throws {
    try await withServer { served, _ in
      let fake = served.bluetoothd
      let line = try #require(Profile.microbit.property(named: "uart_rx"))
      let path = try await fake.path(line.characteristic)
      _ = try await fake.call("StartNotify", path)
      try await served.server.set(line, to: .text(String(repeating: "x", count: 25)))
      _ = try await fake.values.next("the first packet") { $0.bytes.count == 20 ? true : nil }
      // After the reply to this call, any earlier notification has arrived.
      _ = try await fake.call("ReadValue", try await fake.path(Property.microbitPeriod.characteristic))
      #expect(fake.values.count == 1)
      _ = try await fake.call("Confirm", path)
      let rest = try await fake.values.next("the rest") { $0.bytes }
      #expect(rest == Array("xxxxx\n".utf8))
    }
  }

  @Test func queueOfUnconfirmedIndicationsIsBounded() {
    var queue = IndicationQueue()
    let start = Moment.now
    #expect(queue.add([0], at: start) == [0])
    for index in 1...100 { #expect(queue.add([UInt8(index)], at: start) == nil) }
    for index in 1...64 { #expect(queue.next(at: start) == [UInt8(index)]) }
    #expect(queue.next(at: start) == nil)
    #expect(queue.add([1], at: start) == [1])
    #expect(queue.add([2], at: start + .seconds(29)) == nil)
    #expect(queue.add([3], at: start + .seconds(30)) == [2])
  }

  private static let refusals: [(String, [UInt8])] = [("2222", []), ("2222", [1, 2])]

  @Test(arguments: refusals)
  func writeOfWrongLengthIsRefused(_ uuid: String, _ bytes: [UInt8]) async throws {
    let profile = try Profile(
      name: "counter", requires: [BluetoothUUID(short: 0x1111)], properties: [Self.counter])
    try await withServer(ServedPeripheral(profile, at: .now), name: "Counter") { served, _ in
      let add = try await served.bluetoothd.path(Self.counter.characteristic)
      let error = await Self.errorName { try await served.bluetoothd.write(add, bytes) }
      #expect(error == "org.bluez.Error.InvalidValueLength")
      try await served.bluetoothd.write(add, [7])
      let written = try await served.events.next("written") {
        if case .written(_, let bytes) = $0 { bytes } else { nil }
      }
      #expect(written == [7])
      let advertisement = await served.bluetoothd.advertisement
      #expect(advertisement["ServiceUUIDs"]?.textArray == [BluetoothUUID(short: 0x1111).description])
    }
  }

  @Test func impossibleOperationsAreRefused() async throws {
    try await withServer { served, _ in
      let fake = served.bluetoothd
      let text = try await fake.path(Property.microbitLEDText.characteristic)
      let period = try await fake.path(Property.microbitPeriod.characteristic)
      let temperature = try await fake.path(Property.microbitTemperature.characteristic)
      #expect(await Self.errorName { _ = try await fake.read(text) } == "org.bluez.Error.NotPermitted")
      #expect(
        await Self.errorName { try await fake.write(temperature, [1]) } == "org.bluez.Error.NotPermitted")
      #expect(
        await Self.errorName { _ = try await fake.read(period, offset: 3) } == "org.bluez.Error.InvalidOffset"
      )
      #expect(
        await Self.errorName { _ = try await fake.call("AcquireNotify", temperature) }
          == DBusName.Failure.unknownMethod)
      #expect(await Self.errorName { _ = try await fake.read("/nothing") } == DBusName.Failure.unknownObject)
      #expect(
        await Self.errorName { _ = try await fake.call("WriteValue", period) }
          == "org.bluez.Error.InvalidOffset")
    }
  }

  @Test func peripheralIsServedAgainAfterRestartOfBluetoothd() async throws {
    try await withServer { served, bus in
      await served.bluetoothd.end()
      #expect(try await served.waitingReason() == "bluetoothd has ended")
      let next = try await FakeBluetoothd.start(bus: bus.address)
      try await served.waitUntilServing()
      let period = try await next.path(Property.microbitPeriod.characteristic)
      #expect(try await next.read(period) == [0xE8, 3])
    }
  }

  @Test func restartOfBluetoothdLeadsToOneRegistration() async throws {
    try await withServer { served, bus in
      await served.bluetoothd.end()
      #expect(try await served.waitingReason() == "bluetoothd has ended")
      let next = try await FakeBluetoothd.start(bus: bus.address)
      await next.reportAdapter()
      try await served.waitUntilServing()
      // A second one would follow half a second later.
      await #expect(throws: (any Error).self) {
        _ = try await served.events.next("another registration", within: .seconds(1)) { event -> Bool? in
          if case .serving = event { true } else { nil }
        }
      }
      #expect(next.calls.elements.count { $0 == "RegisterApplication" } == 1)
    }
  }

  @Test(arguments: ["BBC micro:bit [zugev]", "BBC micro:bit [vagut]"])
  func aliasSurvivesACrash(_ nextName: String) async throws {
    let folder = try TemporaryFolder()
    let state = folder.path + "/new/state"
    let bus = try await PrivateBus()
    let fake = try await FakeBluetoothd.start(bus: bus.address, alias: "workshop")
    func serve(_ name: String) async throws -> Task<Void, Never> {
      let events = Record<GATTServerEvent>()
      let server = await GATTServer(
        ServedPeripheral(.microbit, at: .now), name: name, adapter: "hci1", bus: bus.address,
        state: state
      ) { events.append($0) }
      let run = loop.task { await server.run() }
      _ = try await events.next("serving") { event -> Bool? in
        if case .serving = event { true } else { nil }
      }
      return run
    }
    let crashed = try await serve("BBC micro:bit [zugev]")
    #expect(await fake.alias == "BBC micro:bit [zugev]")
    // It is gone without restoring the alias: the bus has ended first.
    await fake.end()
    bus.kill()
    crashed.cancel()
    await crashed.value
    try await bus.start()
    let again = try await FakeBluetoothd.start(
      bus: bus.address, alias: "BBC micro:bit [zugev]")
    let run = try await serve(nextName)
    #expect(await again.alias == nextName)
    run.cancel()
    await run.value
    #expect(await again.alias == "workshop")
    // Nothing is stored any more.
    #expect(access(state + "/hci1.alias", F_OK) != 0)
  }

  @Test func advertisingResumesAfterAdapterWasOff() async throws {
    try await withServer { served, _ in
      served.bluetoothd.calls.skip()
      await served.bluetoothd.power(false)
      #expect(try await served.waitingReason() == "the adapter hci1 is off")
      await served.bluetoothd.power(true)
      try await served.waitUntilServing()
      try await served.bluetoothd.called("UnregisterAdvertisement")
      try await served.bluetoothd.called("RegisterAdvertisement")
    }
  }

  @Test func anAdapterThatIsTurnedOffWhileRegisteringIsNotServed() async throws {
    try await withServer { served, _ in
      let (bluetoothd, off) = (served.bluetoothd, "the adapter hci1 is off")
      await bluetoothd.power(false)
      #expect(try await served.waitingReason() == off)
      await bluetoothd.turnOffWhileRegistering()
      await bluetoothd.power(true)
      try await eventually("the end of the registration") { await !bluetoothd.turnsOff }
      // The server has received the answer to its registration before this call.
      _ = try await bluetoothd.read(bluetoothd.path(DeviceInformation.modelNumber))
      #expect(served.events.elements.last == .waiting(off))
      await bluetoothd.power(true)
      try await served.waitUntilServing()
    }
  }

  @Test func refusedAdvertisementNamesTheKernelsThatRefuseAll() async throws {
    try await withServer { served, _ in
      await served.bluetoothd.power(false)
      #expect(try await served.waitingReason() == "the adapter hci1 is off")
      await served.bluetoothd.refuseAdvertisements()
      await served.bluetoothd.power(true)
      let reason = try await served.waitingReason()
      #expect(reason.hasPrefix("RegisterAdvertisement failed on hci1: ") && reason.contains("6.18.34"))
    }
  }

  @Test func serverUnregistersWhenItEnds() async throws {
    try await withServer { served, _ in
      served.run.cancel()
      await served.run.value
      try await served.bluetoothd.called("UnregisterAdvertisement")
      try await served.bluetoothd.called("UnregisterApplication")
      // The adapter has the machine's own name again.
      #expect(await served.bluetoothd.alias == "")
    }
  }

  @Test func absentAdapterIsReported() async throws {
    try await withServer(adapter: "hci7", isRegistered: false) { served, _ in
      let reason = try await served.waitingReason()
      #expect(reason == "there is no adapter hci7 (there is hci1: use --adapter)")
    }
  }

  @Test func twoHundredCharacteristics() async throws {
    let properties = (0..<200).map { index in
      Property(
        name: "p\(index)", service: BluetoothUUID(short: 0x1234),
        characteristic: BluetoothUUID(short: 0x2A19),
        instance: index, access: [.read, .notify], codec: .uint8)
    }
    let profile = try Profile(name: "many", properties: properties)
    try await withServer(ServedPeripheral(profile, at: .now), name: "Many") { served, _ in
      let objects = await served.bluetoothd.objects
      #expect(objects.count == 201)
      let paths = objects.filter { $0.value["Flags"] != nil }.keys.sorted()
      try await served.server.set(properties[199], to: .integer(199))
      let last = try #require(paths.last)
      #expect(try await served.bluetoothd.read(last) == [199])
    }
  }

  @Test func advertisementHasTheServicesThatFit() throws {
    let long = (0..<2).map { BluetoothUUID(high: 0xE95D_0000_251D_470A + $0, low: 7) }
    let short = [BluetoothUUID(short: 0x1111), BluetoothUUID(short: 0x2222)]
    let profile = try Profile(name: "x", requires: long + short, properties: [Self.counter])
    #expect(Advertisement(name: "X", profile).services == [long[0]] + short)
  }
}
