import DBus
import EventLoop
import GATT
import TestSupport
import Testing

@testable import BlueZ

/// A central against the simulated bluetoothd, over a real bus: the ways that go well.
@Suite struct CentralTests {
  @Test func findsConnectsReadsWritesAndIsNotified() async throws {
    let fixture = try await Fixture { $0.period = 300 }
    let (tested, id) = try await fixture.centralAndMicroBit()
    let central = tested.central
    let characteristics = try await central.connect(id)
    let temperature = try #require(characteristics.temperature)
    let period = try #require(characteristics.period)
    #expect(temperature.flags == [.read, .notify])
    #expect(period.flags == [.read, .write])

    let value = try await central.read(temperature).get()
    #expect(value.count == 1)
    #expect(try await central.read(period).get() == [0x2C, 0x01])
    #expect(try await central.writeAndReadBack([20, 0], to: period) == .success([20, 0]))
    #expect(try await central.read(period).get() == [20, 0])

    let values = Record<[UInt8]>()
    try await central.subscribe(to: temperature) { values.append($0) }
    for _ in 0..<3 { #expect(try await values.next("a notification") { $0 } == value) }
    // Hostile lengths are values too; an empty one is not the end.
    for (hex, bytes) in [
      ("", []), ("1516", [21, 22]), (String(repeating: "07", count: 20), Array(repeating: 7, count: 20)),
    ] as [(String, [UInt8])] {
      await fixture.setValue(hex)
      _ = try await values.next("a notification of \(bytes.count) bytes") { $0 == bytes ? true : nil }
    }
    await #expect(throws: CentralError.refused("InvalidArguments: Invalid Length")) {
      try await central.writeAndReadBack([1], to: period)
    }
    try await tested.end()
  }

  @Test func connectsOneAtATimeWhileScanningPauses() async throws {
    let fixture = try await Fixture { $0.devices = 3 }
    let tested = try await fixture.central()
    let monitor = try await fixture.monitor()
    await tested.central.scan(true)
    var found: Set<PeripheralID> = []
    while found.count < 3 { found.insert(try await tested.seen().id) }
    let ids = found
    // On the loop, so that all of them wait before the first has ended.
    try await Task { @LoopActor in
      try await withThrowingTaskGroup(of: Int.self) { group in
        for id in ids { group.addTask { try await tested.central.connect(id).count } }
        for try await count in group { #expect(count > 0) }
      }
    }.value
    try await monitor.saw("StartDiscovery hci0")
    try await monitor.saw("StartDiscovery hci0")
    let lines = try await monitor.lines(
      "StartDiscovery", "StopDiscovery", "Connect ", "ServicesResolved=true")
    try #require(lines.count == 9)
    #expect(
      [lines[0], lines[1], lines[8]] == ["StartDiscovery hci0", "StopDiscovery hci0", "StartDiscovery hci0"])
    for index in [2, 4, 6] {
      #expect(lines[index].hasPrefix("Connect "))
      // Each is through before the next begins.
      #expect(lines[index + 1] == lines[index].replacing("Connect", with: "ServicesResolved=true"))
    }
    try await tested.end()
  }

  @Test func adoptsALinkThatIsThere() async throws {
    let fixture = try await Fixture()
    let (first, id) = try await fixture.centralAndMicroBit()
    _ = try await first.central.connect(id)
    // The central goes, as in a crash: the link stays.
    try await first.end()
    #expect(await fixture.isLinked())

    let monitor = try await fixture.monitor()
    let second = try await fixture.central()
    await second.central.scan(true)
    let seen = try #require(
      second.events.elements.compactMap { event -> BlueZ.Peripheral? in
        if case .seen(let peripheral) = event { peripheral } else { nil }
      }.last)
    #expect(seen.isConnected && seen.isInRange)
    let characteristics = try await second.central.connect(seen.id)
    let value = try await second.central.read(try #require(characteristics.temperature)).get()
    #expect(value.count == 1)
    #expect(try await monitor.lines("Connect ") == [])
    try await second.end()
  }

  @Test func subscribesBySignalsBesideAnotherSubscriber() async throws {
    let fixture = try await Fixture()
    var limits = Limits.test
    limits.busyRetries = 2
    let (tested, id) = try await fixture.centralAndMicroBit(limits: limits)
    let temperature = try #require(try await tested.central.connect(id).temperature)
    let other = try await DBusConnection.open(fixture.bus.address) { _ in }
    _ = try await other.call(
      DBusCall(
        "StartNotify", on: "org.bluez.GattCharacteristic1", of: temperature.path, at: "org.bluez"),
      timeout: patience)
    let values = Record<[UInt8]>()
    try await tested.central.subscribe(to: temperature) { values.append($0) }
    for _ in 0..<3 { #expect(try await values.next("a notification") { $0 }.count == 1) }
    await other.close()
    // The other subscriber's end does not affect this one.
    values.skip()
    for _ in 0..<3 { _ = try await values.next("a notification") { $0 } }
    try await tested.end()
  }

  @Test func disconnectEndsTheLinkAndItsNotifications() async throws {
    let fixture = try await Fixture()
    let (tested, id) = try await fixture.centralAndMicroBit()
    let temperature = try #require(try await tested.central.connect(id).temperature)
    let values = Record<[UInt8]>()
    try await tested.central.subscribe(to: temperature) { values.append($0) }
    _ = try await values.next("a notification") { $0 }
    let disconnecting = Task { await tested.central.disconnect(id) }
    // At once, though bluetoothd takes its time: the link is of no use any more.
    await #expect(throws: CentralError.disconnected) {
      while true { _ = try await tested.central.read(temperature).get() }
    }
    let count = values.elements.count
    await disconnecting.value
    try await tested.disconnected(id)
    #expect(await !fixture.isLinked())
    #expect(values.elements.count == count)
    // And again, as if nothing had been.
    #expect(try await tested.central.connect(id).temperature == temperature)
    try await tested.end()
  }

  @Test func stopEndsEveryLinkAndTheScan() async throws {
    let fixture = try await Fixture { $0.devices = 3 }
    let tested = try await fixture.central()
    await tested.central.scan(true)
    var found: Set<PeripheralID> = []
    while found.count < 3 { found.insert(try await tested.seen().id) }
    for id in found { _ = try await tested.central.connect(id) }
    let monitor = try await fixture.monitor()
    await tested.central.stop(within: patience)
    for index in 0..<3 { #expect(await !fixture.isLinked(index)) }
    #expect(try await monitor.lines("StopDiscovery").count <= 1)
    // Nothing is begun any more.
    await tested.central.scan(true)
    await #expect(throws: CentralError.unavailable) { try await tested.central.connect(found.first!) }
    #expect(try await monitor.lines("StartDiscovery").count <= 1)
    try await tested.end()
  }

  @Test func stopCallsOffAConnectThatIsUnderWay() async throws {
    let fixture = try await Fixture()
    let (tested, id) = try await fixture.centralAndMicroBit()
    await fixture.vanish()
    let monitor = try await fixture.monitor()
    let connecting = Task { try await tested.central.connect(id) }
    try await monitor.saw("Connect dev_\(try #require(tested.address(of: id)).replacing(":", with: "_"))")
    // Before the connect ends by its own limit.
    await tested.central.stop(within: Limits().connect / 2)
    await #expect(throws: CentralError.self) { try await connecting.value }
    await fixture.comeBack()
    #expect(await !fixture.isLinked())
    try await tested.end()
  }
}

extension CentralUnderTest {
  func address(of id: PeripheralID) -> String? {
    for case .seen(let peripheral) in events.elements where peripheral.id == id {
      return peripheral.address.description
    }
    return nil
  }
}
