import DBus
import TestSupport
import Testing

@testable import BlueZ

/// A bluetoothd, or a bus, that does not do what it should.
@Suite struct BluetoothdFaultTests {
  @Test func missingObjectListIsRequestedAgain() async throws {
    let bus = try await PrivateBus()
    let fake = try await FakeBlueZ.start(bus: bus.address, answers: ["GetManagedObjects": FakeBlueZ.never])
    var limits = Limits.test
    limits.objectList = .seconds(1)
    limits.retry = .milliseconds(10)
    let tested = await CentralUnderTest(bus.address, limits: limits)
    #expect(try await tested.state() == .noAnswer)
    await fake.answer(
      "GetManagedObjects", FakeBlueZ.error("org.freedesktop.DBus.Error.AccessDenied", "not you"))
    #expect(try await tested.state() == .unauthorized)
    await fake.answer("GetManagedObjects") { fake, call in fake.reply(call, .string("what objects?")) }
    #expect(try await tested.state() == .noAnswer)
    for _ in 0..<3 { try await fake.called("GetManagedObjects") }
    await fake.answer("GetManagedObjects") { fake, call in
      fake.reply(call, .dictionary(key: "o", value: "a{sa{sv}}", []))
    }
    #expect(try await tested.state() == .adapterAbsent)
    try await tested.end()
  }

  @Test func signalsThatComeWhileTheObjectsAreFetchedAreNotLost() async throws {
    let bus = try await PrivateBus()
    let fake = try await FakeBlueZ.start(
      bus: bus.address,
      answers: [
        "GetManagedObjects": { fake, call in
          fake.signal(Recorded.adapterAdded(), Recorded.deviceAdded)
          fake.reply(call, .dictionary(key: "o", value: "a{sa{sv}}", []))
          fake.signal(Recorded.device(["Connected": .boolean(true)]))
        }
      ])
    let tested = await CentralUnderTest(bus.address)
    try await tested.isOn()
    _ = try await tested.events.next("a peripheral that is connected") { event -> Bool? in
      if case .seen(let peripheral) = event, peripheral.isConnected { true } else { nil }
    }
    _ = fake
    try await tested.end()
  }

  /// The bus counts the calls that were never answered, and one day takes no more.
  @Test func callsThatWereNeverAnsweredDoNotUseUpTheBus() async throws {
    let bus = try await PrivateBus(isStarted: false)
    try bus.setPolicy(#"<limit name="max_replies_per_connection">3</limit>"#)
    try await bus.start()
    let fake = try await FakeBlueZ.start(bus: bus.address, answers: ["ReadValue": FakeBlueZ.never])
    var limits = Limits.test
    limits.operation = .seconds(3)
    let tested = await CentralUnderTest(bus.address, limits: limits)
    try await tested.isOn()
    let temperature = try #require(try await tested.central.connect(Recorded.id).temperature)
    for _ in 0..<3 {
      await #expect(throws: CentralError.timedOut("ReadValue: no answer in time")) {
        try await tested.central.read(temperature).get()
      }
    }
    await #expect(throws: CentralError.unavailable) { try await tested.central.read(temperature).get() }
    // By a new connection.
    try await tested.isOn()
    await fake.answer("ReadValue") { fake, call in fake.reply(call, .bytes([21])) }
    await fake.signal(Recorded.deviceAdded)
    let again = try #require(try await tested.central.connect(Recorded.id).temperature)
    #expect(try await tested.central.read(again).get() == [21])
    try await tested.end()
  }

  @Test func signalsOfOtherSendersAreIgnored() async throws {
    let faults = try await Faults()
    let stranger = try await DBusConnection.open(faults.bus.address) { _ in }
    try await stranger.emit(
      DBusSignal(
        "PropertiesChanged", on: DBusName.properties, of: Recorded.adapter,
        [
          .string("org.bluez.Adapter1"), .properties(["Powered": .boolean(false)]),
          .array(of: "s", []),
        ]))
    // What bluetoothd says after it, arrives.
    await faults.fake.signal(Recorded.device(["RSSI": .int16(-12)]))
    _ = try await faults.tested.events.next("a new signal strength") { event -> Bool? in
      if case .seen(let peripheral) = event, peripheral.rssi == -12 { true } else { nil }
    }
    #expect(
      faults.tested.events.elements.allSatisfy { event in
        if case .state(let state) = event { state.isOn } else { true }
      })
    // A call to the central gets an error reply.
    try await faults.tested.end()
  }
}
