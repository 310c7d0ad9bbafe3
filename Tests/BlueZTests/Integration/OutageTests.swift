import DBus
import EventLoop
import TestSupport
import Testing

@testable import BlueZ

/// What goes away under a central, and comes back: peripherals, the adapter, bluetoothd, the bus.
@Suite struct OutageTests {
  @Test func vanishedPeripheralIsFoundOnItsReturn() async throws {
    let fixture = try await Fixture()
    let (tested, id) = try await fixture.centralAndMicroBit()
    let temperature = try #require(try await tested.central.connect(id).temperature)
    let values = Record<[UInt8]>()
    try await tested.central.subscribe(to: temperature) { values.append($0) }
    _ = try await values.next("a notification") { $0 }
    tested.events.skip()
    await fixture.vanish()
    try await tested.disconnected(id)
    await #expect(throws: CentralError.disconnected) { try await tested.central.read(temperature).get() }
    await fixture.comeBack()
    #expect(try await tested.seen().id == id)
    // bluetoothd knows the services already.
    #expect(try await tested.central.connect(id).temperature == temperature)
    values.skip()
    try await tested.central.subscribe(to: temperature) { values.append($0) }
    _ = try await values.next("a notification") { $0 }
    try await tested.end()
  }

  @Test func aPeripheralThatIsForgottenIsGone() async throws {
    let fixture = try await Fixture { $0.timing.temporary = .seconds(3) }
    let (tested, id) = try await fixture.centralAndMicroBit()
    await tested.central.scan(false)
    try await tested.lost(id)
    await #expect(throws: CentralError.gone) { try await tested.central.connect(id) }
    // Nothing of the attempt is left in the way.
    await tested.central.scan(true)
    _ = try await tested.connectAtLast()
    try await tested.end()
  }

  @Test func theAdapterIsOffAndOn() async throws {
    let fixture = try await Fixture { $0.timing.attribute = .seconds(3600) }
    let (tested, id) = try await fixture.centralAndMicroBit()
    let period = try #require(try await tested.central.connect(id).period)
    let reading = Task { try await tested.central.read(period).get() }
    await fixture.power(false)
    try await tested.disconnected(id)
    #expect(try await tested.state() == .adapterOff)
    await #expect(throws: CentralError.disconnected) { try await reading.value }
    await #expect(throws: CentralError.unavailable) { try await tested.central.connect(id) }
    await fixture.power(true)
    #expect(try await tested.state().isOn)
    // Discovery is on again by itself.
    #expect(try await tested.seen().id == id)
    _ = try await tested.central.connect(id)
    try await tested.end()
  }

  @Test func theAdapterIsPulledAndPluggedIn() async throws {
    let fixture = try await Fixture { $0.timing.attribute = .seconds(3600) }
    let (tested, id) = try await fixture.centralAndMicroBit()
    let period = try #require(try await tested.central.connect(id).period)
    let monitor = try await fixture.monitor()
    let reading = Task { try await tested.central.read(period).get() }
    try await monitor.saw("ReadValue char0019")
    await fixture.plug(false)
    // bluetoothd never answers this one.
    await #expect(throws: CentralError.disconnected) { try await reading.value }
    try await tested.disconnected(id)
    try await tested.lost(id)
    _ = try await tested.events.next("no adapter") { event -> Bool? in
      if case .state(.adapterAbsent) = event { true } else { nil }
    }
    await fixture.plug(true)
    try await tested.isOn()
    _ = try await tested.central.connect(try await tested.seen().id)
    try await tested.end()
  }

  /// As after a reset on USB: the kernel has not given the old name free yet.
  @Test func theAdapterIsPluggedInAgainUnderAnotherName() async throws {
    let fixture = try await Fixture()
    let (tested, first) = try await fixture.centralAndMicroBit()
    _ = try await tested.central.connect(first)
    for name in ["hci1", "hci2", "hci0", "hci1"] {
      tested.events.skip()
      await fixture.plug(false)
      await fixture.plug(true, as: name)
      #expect(try await tested.isOn() == name)
      let id = try await tested.seen().id
      #expect(id.path.hasPrefix("/org/bluez/\(name)/"))
      _ = try await tested.central.connect(id)
    }
    #expect(await tested.central.adapterName == "hci0")
    await tested.central.scan(false)
    // bluetoothd starts again without its adapter, which comes under its first name.
    tested.events.skip()
    await fixture.plug(false)
    await fixture.restart(killed: true)
    await fixture.plug(true)
    #expect(try await tested.isOn() == "hci0")
    try await tested.end()
  }

  /// The central has not seen under which name the adapter was before.
  @Test(arguments: [
    AdapterSelection("hci0", address: "02:00:5E:00:53:01"), AdapterSelection("hci0", isDefault: true),
  ])
  func theAdapterHasAnotherNameAtTheStart(_ selection: AdapterSelection) async throws {
    let fixture = try await Fixture()
    await fixture.plug(false)
    await fixture.plug(true, as: "hci1")
    var limits = Limits.test
    limits.startup = patience
    let tested = await CentralUnderTest(fixture.bus.address, adapter: selection, limits: limits)
    #expect(try await tested.isOn() == "hci1")
    let wasAbsent = tested.events.elements.contains { event in
      if case .state(.adapterAbsent) = event { true } else { false }
    }
    #expect(!wasAbsent)
    try await tested.end()
  }

  @Test(arguments: [false, true])
  func bluetoothdRestarts(killed: Bool) async throws {
    let fixture = try await Fixture()
    var limits = Limits.test
    limits.startup = patience
    let (tested, id) = try await fixture.centralAndMicroBit(limits: limits)
    let temperature = try #require(try await tested.central.connect(id).temperature)
    let values = Record<[UInt8]>()
    try await tested.central.subscribe(to: temperature) { values.append($0) }
    _ = try await values.next("a notification") { $0 }
    tested.events.skip()
    let before = tested.events.elements.count
    await fixture.restart(killed: killed)
    try await tested.isOn()
    let told = tested.events.elements.dropFirst(before).compactMap { event -> String? in
      switch event {
      case .state(let state): state.isOn ? "on" : "\(state)"
      case .disconnected(id, _): "disconnected"
      case .lost(id): "lost"
      case .recovery, .seen, .disconnected, .servicesChanged, .unusable, .lost: nil
      }
    }
    // An orderly end signals the adapter first; a crash only the loss of the name.
    let expected =
      killed
      ? ["disconnected", "lost", "noBluetoothd", "on"]
      : ["disconnected", "adapterOff", "lost", "adapterAbsent", "noBluetoothd", "on"]
    #expect(Array(told.prefix(expected.count)) == expected)
    let again = try await tested.connectAtLast()
    values.skip()
    try await tested.central.subscribe(to: try #require(again.temperature)) { values.append($0) }
    _ = try await values.next("a notification") { $0 }
    try await tested.end()
  }

  @Test func noBusNoBluetoothdAndThenBoth() async throws {
    let bus = try await PrivateBus(isStarted: false)
    let tested = await CentralUnderTest(bus.address)
    guard case .noBus(let reason) = try await tested.state() else {
      Issue.record("a bus where there is none")
      return
    }
    #expect(reason.contains(bus.address.dropFirst("unix:path=".count)))
    await #expect(throws: CentralError.unavailable) {
      try await tested.central.connect(PeripheralID(path: "/x"))
    }
    try await bus.start()
    #expect(try await tested.state() == .noBluetoothd)
    let fake = try await FakeBlueZ.start(bus: bus.address, objects: [])
    #expect(try await tested.state() == .adapterAbsent)
    await fake.signal(Recorded.adapterAdded(powered: false))
    #expect(try await tested.state() == .adapterOff)
    await fake.signal(Recorded.adapter(["PowerState": .string("off-blocked")]))
    #expect(try await tested.state() == .adapterBlocked)
    await fake.signal(Recorded.adapter(["PowerState": .string("on"), "Powered": .boolean(true)]))
    #expect(try await tested.state() == .on(adapter: "hci0", address: "02:00:5E:00:53:01"))
    try await tested.end()
  }

  @Test func thePolicyOfTheBusDeniesBluetoothdAndThenAllowsIt() async throws {
    let fixture = try await Fixture()
    try fixture.bus.setPolicy(
      #"<policy context="mandatory"><deny send_destination="org.bluez"/></policy>"#)
    let probe = try await DBusConnection.open(fixture.bus.address) { _ in }
    let ping = DBusCall("Ping", on: "org.freedesktop.DBus.Peer", of: "/", at: "org.bluez")
    try await deadline(patience, "the policy") {
      while true {
        do throws(DBusError) {
          _ = try await probe.call(ping, timeout: patience)
        } catch {
          if error.name == DBusName.Failure.accessDenied { return }
        }
      }
    }
    var limits = Limits.test
    limits.retry = .milliseconds(50)
    let tested = await CentralUnderTest(fixture.bus.address, limits: limits)
    #expect(try await tested.state() == .unauthorized)
    await tested.central.scan(true)
    try fixture.bus.setPolicy("")
    guard case .on = try await tested.state() else {
      Issue.record("another state")
      return
    }
    _ = try await tested.seen()
    await probe.close()
    try await tested.end()
  }

  @Test func anAdapterWithoutLEIsLeftAlone() async throws {
    let fixture = try await Fixture()
    await fixture.plug(false)
    await fixture.setLE(false)
    let monitor = try await fixture.monitor()
    let tested = await CentralUnderTest(fixture.bus.address)
    #expect(try await tested.state() == .adapterAbsent)
    await tested.central.scan(true)
    await fixture.plug(true)
    #expect(try await tested.state() == .adapterUnsupported)
    #expect(await tested.central.recovery == nil)
    // Another one in its place.
    await fixture.plug(false)
    #expect(try await tested.state() == .adapterAbsent)
    #expect(try await monitor.lines("StartDiscovery", "Set ", "SetDiscoveryFilter") == [])
    await fixture.setLE(true)
    await fixture.plug(true)
    try await tested.isOn()
    _ = try await tested.seen()
    try await tested.end()
  }

  @Test func theBusEndsAndComesBack() async throws {
    let bus = try await PrivateBus()
    var fake = try await FakeBlueZ.start(bus: bus.address)
    let tested = await CentralUnderTest(bus.address)
    try await tested.isOn()
    await tested.central.scan(true)
    _ = try await tested.central.connect(Recorded.id)
    for _ in 0..<2 {
      tested.events.skip()
      bus.kill()
      _ = try await tested.events.next("no bus") { event -> Bool? in
        if case .state(.noBus) = event { true } else { nil }
      }
      try await tested.disconnected(Recorded.id)
      try await tested.lost(Recorded.id)
      try await bus.start()
      fake = try await FakeBlueZ.start(bus: bus.address)
      try await tested.isOn()
      try await fake.called("StartDiscovery")
      do throws(CentralError) {
        _ = try await tested.central.connect(Recorded.id)
      } catch {
        Issue.record(
          "\(error); reported: \(tested.events.elements.suffix(8)); called: \(fake.calls.elements)")
      }
    }
    try await tested.end()
  }

  /// A bluetoothd that starts while the central subscribes is known only when its signals cannot be missed.
  @Test func theOwnerOfTheNameIsWatchedLast() async throws {
    let bus = try await PrivateBus()
    let monitor = try await Monitor(bus.address)
    let tested = await CentralUnderTest(bus.address)
    #expect(try await tested.state() == .noBluetoothd)
    let calls = try await monitor.lines("AddMatch", "GetNameOwner")
    #expect(calls.count == 7)
    #expect(calls.dropLast(2).allSatisfy { $0.contains("sender='org.bluez'") })
    #expect(calls.dropLast().last?.contains("member='NameOwnerChanged'") == true)
    #expect(calls.last == "GetNameOwner DBus")
    try await tested.end()
  }

  /// As at boot: the name's owner is signalled while it is being queried.
  @Test func bluetoothdComesWhileTheCentralDoes() async throws {
    let bus = try await PrivateBus()
    for delay in 0..<40 {
      let tested = await CentralUnderTest(bus.address)
      try await loop.sleep(for: .microseconds(delay * 50))
      let fake = try await FakeBlueZ.start(bus: bus.address)
      try await tested.isOn()
      try await tested.end()
      try await fake.leave()
    }
  }
}
