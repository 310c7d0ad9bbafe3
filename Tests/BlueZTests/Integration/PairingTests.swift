import DBus
import EventLoop
import GATT
import Peripherals
import TestSupport
import Testing

@testable import BlueZ
@testable import BlueZSimulator

/// Pairing with micro:bits that require it.
@Suite struct PairingTests {
  private static func fixture(_ method: PairingMethod?) async throws -> Fixture {
    try await Fixture { options in options.pairing = method }
  }

  /// Why pairing fails; nil: it succeeds.
  private func pair(
    _ central: CentralUnderTest, _ id: PeripheralID, passkey: Int? = nil, endsLinks: Bool = true,
    passkeyRequested: @escaping @LoopActor () -> Void = {}
  ) async -> PairingError? {
    do throws(PairingError) {
      try await central.central.pair(
        id, passkey: passkey, endsLinks: endsLinks, passkeyRequested: passkeyRequested)
      return nil
    } catch {
      return error
    }
  }

  private func expectReadable(_ central: CentralUnderTest, _ id: PeripheralID) async throws {
    let characteristics = try await central.central.connect(id)
    let temperature = try #require(characteristics.temperature)
    #expect(try await central.central.read(temperature).get().count == 1)
  }

  @Test func justWorks() async throws {
    let fixture = try await Self.fixture(.justWorks)
    let (central, id) = try await fixture.centralAndMicroBit()
    let monitor = try await fixture.monitor()
    #expect(await pair(central, id) == nil)
    try await expectReadable(central, id)
    // It is paired already.
    #expect(await pair(central, id) == nil)
    #expect(try await monitor.lines("Pair ").count == 1)
    #expect(try await monitor.lines("RegisterAgent", "UnregisterAgent").count == 2)
    #expect(try await monitor.lines("RequestDefaultAgent", "Trusted").isEmpty)
    // The bond lasts longer than the link, and than bluetoothd.
    await central.central.disconnect(id)
    try await expectReadable(central, id)
    await fixture.restart(killed: false)
    try await central.isOn()
    let again = try await central.seen().id
    try await expectReadable(central, again)
    #expect(await pair(central, again) == nil)
    #expect(try await monitor.lines("Pair ").count == 1)
  }

  @Test func isRefused() async throws {
    let fixture = try await Self.fixture(.justWorks)
    let (central, id) = try await fixture.centralAndMicroBit()
    await fixture.pairing(pairs: false)
    #expect(await pair(central, id) == .refused)
    #expect(await !fixture.isLinked())
    await fixture.pairing(pairs: true)
    #expect(await pair(central, id) == nil)
  }

  @Test func aPasskeyIsEnteredWhenItIsDisplayed() async throws {
    let fixture = try await Self.fixture(.passkey)
    let (central, id) = try await fixture.centralAndMicroBit()
    for _ in 0..<3 {
      #expect(
        await pair(central, id) { _ = central.central.enter(passkey: 99_999, for: id) }
          == .wrongPasskey)
    }
    let wanted = Record<Bool>()
    async let error = pair(central, id) { wanted.append(true) }
    _ = try await wanted.next("the request for a passkey") { $0 }
    #expect(await central.central.enter(passkey: 100_000, for: id))
    #expect(await error == nil)
    try await expectReadable(central, id)
    // Too late.
    #expect(await !central.central.enter(passkey: 100_000, for: id))
  }

  @Test func aPasskeyMayBeKnownBefore() async throws {
    let fixture = try await Self.fixture(.passkey)
    let (central, id) = try await fixture.centralAndMicroBit()
    #expect(await pair(central, id, passkey: 1) == .wrongPasskey)
    #expect(await pair(central, id, passkey: 100_000) == nil)
  }

  /// The answer to Pair is success, and bluetoothd has not asked for the passkey.
  @Test func aPasskeyExcludesJustWorks() async throws {
    let fixture = try await Self.fixture(.justWorks)
    let (central, id) = try await fixture.centralAndMicroBit()
    #expect(await pair(central, id, passkey: 123_456) == .passkeyNotUsed)
    #expect(await !fixture.isLinked())
    #expect(await isFoundAgain(central, id))
    #expect(await pair(central, id) == nil)
  }

  @Test func aPasskeyIsNotEntered() async throws {
    let fixture = try await Self.fixture(.passkey)
    let (central, id) = try await fixture.centralAndMicroBit()
    let error = await pair(central, id) {
      loop.task { await central.central.cancelPairing(id) }
    }
    #expect(error == .passkeyMissing)
    #expect(await !fixture.isLinked())
  }

  @Test func theLinkDropsWhilePairing() async throws {
    let fixture = try await Self.fixture(.justWorks)
    let (central, id) = try await fixture.centralAndMicroBit()
    await fixture.pairing(fault: .drop)
    #expect(await pair(central, id) == .linkLost)
    #expect(await pair(central, id) == nil)
  }

  @Test func itStopsRespondingWhilePairing() async throws {
    let fixture = try await Self.fixture(.justWorks)
    var limits = Limits.test
    limits.pair = .seconds(10)
    let (central, id) = try await fixture.centralAndMicroBit(limits: limits)
    await fixture.pairing(fault: .silence)
    #expect(await pair(central, id) == .timedOut)
    #expect(await pair(central, id) == nil)
  }

  /// The bond is made, and bluetoothd answers Pair only after it has resolved the services: CancelPairing would delete the bond.
  @Test func aPairingIsNotCancelledOnALink() async throws {
    let faults = try await Faults(answers: [
      "RegisterAgent": FakeBlueZ.ok, "UnregisterAgent": FakeBlueZ.ok,
      "Pair": { fake, _ in fake.signal(Recorded.device(["Connected": .boolean(true)])) },
    ]) {
      $0.pair = .milliseconds(20)
      $0.treeUpdate = .milliseconds(20)
    }
    #expect(await pair(faults.tested, Recorded.id) == .timedOut)
    #expect(faults.fake.count("CancelPairing") == 0)
    // The end of the link fails Pair, and the bond is there.
    let calls = Record<DBusCall>()
    await faults.fake.answer("Pair") { fake, call in
      calls.append(call)
      fake.signal(Recorded.device(["Connected": .boolean(true), "Paired": .boolean(true)]))
    }
    await faults.fake.answer("Disconnect") { fake, call in
      for pair in calls.elements {
        fake.refuse(pair, "org.bluez.Error.AuthenticationCanceled", "Authentication Canceled")
      }
      fake.reply(call)
      fake.signal(Recorded.device(["Connected": .boolean(false)]))
    }
    #expect(await pair(faults.tested, Recorded.id) == nil)
    #expect(faults.fake.count("CancelPairing") == 0)
    #expect(await faults.central.ownBonds.contains(Recorded.id))
    try await faults.tested.end()
  }

  /// As that of another program. bluetoothd 5.81 and newer pair on it without the agent's capability.
  @Test func aLinkIsEndedBeforePairing() async throws {
    let faults = try await Faults(answers: [
      "RegisterAgent": FakeBlueZ.ok, "UnregisterAgent": FakeBlueZ.ok, "Pair": FakeBlueZ.ok,
    ])
    #expect(await pair(faults.tested, Recorded.id) == nil)
    #expect(faults.fake.count("Disconnect") == 0)
    await faults.fake.signal(Recorded.device(["Connected": .boolean(true)]))
    #expect(await faults.central.wait(patience) { $0.isConnected(Recorded.id) })
    #expect(await pair(faults.tested, Recorded.id) == nil)
    #expect(
      faults.fake.calls.elements.filter { ["Disconnect", "Pair"].contains($0) }
        == ["Pair", "Disconnect", "Pair"])
    try await faults.tested.end()
  }

  /// It may be pairing, and D-Bus does not tell. Nobody has requested this pairing.
  @Test(arguments: [true, false])
  func aLinkOfAnotherProgramHasItsTime(isInTime: Bool) async throws {
    let faults = try await Faults(answers: [
      "RegisterAgent": FakeBlueZ.ok, "UnregisterAgent": FakeBlueZ.ok, "Pair": FakeBlueZ.ok,
    ]) {
      if !isInTime { $0.pair = .zero }
    }
    await faults.fake.signal(Recorded.device(["Connected": .boolean(true)]))
    #expect(await faults.central.wait(patience) { $0.isConnected(Recorded.id) })
    let busy = PairingError.failed(.busy("another program is connected to it"))
    #expect(await pair(faults.tested, Recorded.id, endsLinks: false) == (isInTime ? busy : nil))
    #expect(
      faults.fake.calls.elements.filter { ["Disconnect", "Pair"].contains($0) }
        == (isInTime ? [] : ["Disconnect", "Pair"]))
    try await faults.tested.end()
  }

  @Test func itIsOutOfRange() async throws {
    let fixture = try await Self.fixture(.justWorks)
    var limits = Limits.test
    limits.connect = .seconds(10)
    let (central, id) = try await fixture.centralAndMicroBit(limits: limits)
    await fixture.vanish()
    #expect(await pair(central, id) == .notInRange)
    await fixture.comeBack()
    #expect(await pair(central, id) == nil)
  }

  /// By another program. bluetoothd may answer Pair nevertheless.
  @Test(arguments: [false, true], [false, true])
  func itIsRemovedWhilePairing(isLinked: Bool, isAnswered: Bool) async throws {
    let faults = try await Faults(answers: [
      "RegisterAgent": FakeBlueZ.ok, "UnregisterAgent": FakeBlueZ.ok,
      "Pair": { fake, call in
        if isLinked { fake.signal(Recorded.device(["Connected": .boolean(true)])) }
        fake.signal(Recorded.deviceRemoved.last!)
        guard isAnswered else { return }
        fake.later(.milliseconds(50)) {
          fake.refuse(call, "org.bluez.Error.ConnectionAttemptFailed", "Page Timeout")
        }
      },
    ]) { $0.treeUpdate = isAnswered ? patience : .milliseconds(20) }
    #expect(await pair(faults.tested, Recorded.id) == (isAnswered ? .notInRange : .failed(.gone)))
    try await faults.tested.end()
  }

  @Test func bluetoothdEndsWhilePairing() async throws {
    let fixture = try await Self.fixture(.passkey)
    let (central, id) = try await fixture.centralAndMicroBit()
    let error = await pair(central, id) { Task { await fixture.restart(killed: true) } }
    #expect(error == .failed(.unavailable))
    try await central.isOn()
    // The link outlives the killed bluetoothd, and the next one ends it.
    try await fixture.linkHasEnded()
    let again = await pair(central, try await central.seen().id, passkey: 100_000)
    #expect(again == nil)
  }

  @Test func unpairing() async throws {
    let fixture = try await Self.fixture(.justWorks)
    let (central, id) = try await fixture.centralAndMicroBit()
    #expect(await pair(central, id) == nil)
    try await central.central.unpair(id)
    try await central.isOutOfRange(id)
    #expect(await isFoundAgain(central, id))
    #expect(await pair(central, id) == nil)
  }

  @Test func aLostBondIsRecognised() async throws {
    let fixture = try await Self.fixture(.justWorks)
    var limits = Limits.test
    limits.shortLink = patience
    let (central, id) = try await fixture.centralAndMicroBit(limits: limits)
    #expect(await pair(central, id) == nil)
    await central.central.disconnect(id)
    await fixture.forget()
    await #expect(throws: CentralError.keyMissing) { try await central.central.connect(id) }
    try await central.central.unpair(id)
    try await central.isOutOfRange(id)
    #expect(await isFoundAgain(central, id))
    #expect(await pair(central, id) == nil)
  }

  /// Whether bluetoothd finds a peripheral again that it has removed, and has no bond with it.
  private func isFoundAgain(_ central: CentralUnderTest, _ id: PeripheralID) async -> Bool {
    await central.central.wait(patience) { $0.tree.devices[id.path]?.isPaired == false }
  }

  // MARK: Keyboards and mice

  private static let battery = BluetoothUUID(short: 0x180F)
  private static let batteryLevel = BluetoothUUID(short: 0x2A19)
  private static let input = BluetoothUUID(short: 0x1812)

  /// A peripheral with a battery, and with HID over GATT.
  private static func keyboard(
    advertises: [BluetoothUUID] = [], disconnect: Duration = .milliseconds(20)
  ) async throws -> Fixture {
    try await Fixture { options in
      options.devices = 0
      options.timing.disconnect = disconnect
      options.described = [
        PeripheralDescription(
          name: "BBC micro:bit [zutug]", advertises: advertises,
          services: [
            .init(battery, [.init(batteryLevel, [.read, .notify], value: [50])]),
            .init(input, [.init(BluetoothUUID(short: 0x2A4D), [.read, .notify])]),
          ])
      ]
    }
  }

  @Test func aKeyboardIsNeitherConnectedNorPaired() async throws {
    let fixture = try await Self.keyboard(advertises: [Self.input])
    let (central, id) = try await fixture.centralAndMicroBit()
    let monitor = try await fixture.monitor()
    await #expect(throws: CentralError.inputDevice) { try await central.central.connect(id) }
    #expect(await pair(central, id) == .failed(.inputDevice))
    #expect(try await monitor.lines("Connect ", "Pair ").isEmpty)
  }

  @Test func aKeyboardThatDoesNotAdvertiseItIsNotUsed() async throws {
    let fixture = try await Self.keyboard()
    let (central, id) = try await fixture.centralAndMicroBit()
    let monitor = try await fixture.monitor()
    await #expect(throws: CentralError.inputDevice) { try await central.central.connect(id) }
    #expect(await !fixture.isLinked())
    // It is known from now on.
    await #expect(throws: CentralError.inputDevice) { try await central.central.connect(id) }
    #expect(try await monitor.lines("Connect ").count == 1)
    #expect(await pair(central, id) == .failed(.inputDevice))
    #expect(try await monitor.lines("Pair ").isEmpty)
  }

  @Test func aBondWithAKeyboardThatDoesNotAdvertiseItIsDeleted() async throws {
    let fixture = try await Self.keyboard()
    let (central, id) = try await fixture.centralAndMicroBit()
    #expect(await pair(central, id) == .failed(.inputDevice))
    #expect(await !fixture.isLinked())
    #expect(await isFoundAgain(central, id))
  }

  @Test func aPeripheralThatBecomesAKeyboardIsReported() async throws {
    let fixture = try await Self.keyboard()
    await fixture.serve(Self.input, false)
    let (central, id) = try await fixture.centralAndMicroBit()
    #expect(await pair(central, id) == nil)
    #expect(try await central.central.connect(id).contains { $0.uuid == Self.batteryLevel })
    await fixture.serve(Self.input, true)
    _ = try await central.events.next("word of the keyboard") { event -> Bool? in
      if case .unusable(id, _) = event { true } else { nil }
    }
    // On a later link the bond alone does not make it one that may be used.
    await fixture.serve(Self.input, false)
    await central.central.disconnect(id)
    await fixture.serve(Self.input, true)
    await #expect(throws: CentralError.inputDevice) { try await central.central.connect(id) }
    #expect(await isFoundAgain(central, id))
  }

  @Test func aPeripheralThatBecomesAKeyboardWhileTheLinkEndsLosesItsBond() async throws {
    let fixture = try await Self.keyboard(disconnect: .seconds(3))
    await fixture.serve(Self.input, false)
    let (central, id) = try await fixture.centralAndMicroBit()
    #expect(await pair(central, id) == nil)
    #expect(try await central.central.connect(id).contains { $0.uuid == Self.batteryLevel })
    async let ended: Void = central.central.disconnect(id)
    #expect(await central.central.wait(patience) { $0.isEnding(id) })
    await fixture.serve(Self.input, true)
    #expect(await isFoundAgain(central, id))
    await ended
  }

  /// Another program connects to it.
  @Test func aPeripheralThatAnEarlierRunHasPairedWithLosesItsBondAsAKeyboard() async throws {
    let fixture = try await Self.keyboard()
    await fixture.serve(Self.input, false)
    let (first, id) = try await fixture.centralAndMicroBit()
    #expect(await pair(first, id) == nil)
    await first.central.disconnect(id)
    try await first.end()
    let (next, _) = try await fixture.centralAndMicroBit()
    #expect(await next.central.wait(patience) { $0.tree.devices[id.path]?.isPaired == true })
    await next.central.keepsOwnBond(id)
    await fixture.serve(Self.input, true)
    let other = try await DBusConnection.open(fixture.bus.address) { _ in }
    let call = DBusCall("Connect", on: "org.bluez.Device1", of: id.path, at: "org.bluez")
    async let connected = try? await other.call(call, timeout: .seconds(3))
    #expect(await isFoundAgain(next, id))
    _ = await connected
    await other.close()
  }

  /// Its battery can be read, for example.
  @Test func aKeyboardThatAnotherProgramHasPairedWithIsUsed() async throws {
    let fixture = try await Self.keyboard()
    let (central, id) = try await fixture.centralAndMicroBit()
    let other = try await DBusConnection.open(fixture.bus.address) { _ in }
    func call(_ member: String, _ interface: String, of path: String, _ arguments: [DBusValue] = [])
      -> DBusCall
    {
      DBusCall(member, on: "org.bluez." + interface, of: path, at: "org.bluez", arguments)
    }
    for call in [
      call(
        "RegisterAgent", "AgentManager1", of: "/org/bluez", [.objectPath("/agent"), .string("KeyboardOnly")]),
      call("Pair", "Device1", of: id.path), call("Disconnect", "Device1", of: id.path),
    ] { _ = try await other.call(call, timeout: patience) }
    #expect(await central.central.wait(patience) { $0.tree.devices[id.path]?.isConnected == false })
    #expect(try await central.central.connect(id).contains { $0.uuid == Self.batteryLevel })
    #expect(await central.central.tree.devices[id.path]?.isPaired == true)
    await other.close()
  }

  // MARK: The agent

  /// What a bluetoothd gets that asks the agent about another device, and what another program gets.
  @Test func theAgentServesBluetoothdAloneAndForItsPairingAlone() async throws {
    let clients = Record<String>()
    let pairings = Record<DBusCall>()
    let faults = try await Faults(answers: [
      "RegisterAgent": { fake, call in
        clients.append(call.sender ?? "")
        fake.reply(call)
      },
      "Pair": { fake, call in pairings.append(call) },
      "CancelPairing": { fake, call in
        fake.reply(call)
        for call in pairings.elements {
          fake.refuse(call, "org.bluez.Error.AuthenticationCanceled", "Authentication Canceled")
        }
      },
      "UnregisterAgent": FakeBlueZ.ok,
    ])
    let id = Recorded.id
    async let error = pair(faults.tested, id)
    let client = try await clients.next("an agent") { $0 }
    try await faults.fake.called("Pair")
    let device = DBusValue.objectPath(id.path)
    func ask(_ member: String, _ device: DBusValue) -> DBusCall {
      DBusCall(member, on: "org.bluez.Agent1", of: "/microbit_gateway/agent", at: client, [device])
    }
    let stranger = try await DBusConnection.open(faults.bus.address) { _ in }
    #expect(
      await errorName(of: ask("RequestPasskey", device), on: stranger) == DBusName.Failure.unknownMethod)
    await stranger.close()
    let bluetoothd = try #require(await faults.fake.connection)
    #expect(
      await errorName(of: ask("RequestPasskey", .objectPath("/other")), on: bluetoothd)
        == "org.bluez.Error.Rejected")
    #expect(await errorName(of: ask("DisplayPinCode", device), on: bluetoothd) == "org.bluez.Error.Rejected")
    #expect(await errorName(of: ask("RequestAuthorization", device), on: bluetoothd) == nil)
    // It is not needed for pairing.
    #expect(
      await errorName(of: ask("AuthorizeService", device), on: bluetoothd) == "org.bluez.Error.Rejected")
    await faults.central.enter(passkey: 7, for: id)
    #expect(await errorName(of: ask("RequestPasskey", device), on: bluetoothd) == nil)
    for member in ["RequestConfirmation", "RequestAuthorization"] {
      #expect(await errorName(of: ask(member, device), on: bluetoothd) == "org.bluez.Error.Rejected")
    }
    await faults.central.cancelPairing(id)
    #expect(await error == .linkLost)
    try await faults.tested.end()
  }

  /// The name of the error that answers a call; nil: none.
  private func errorName(of call: DBusCall, on connection: DBusConnection) async -> String? {
    do throws(DBusError) {
      _ = try await connection.call(call, timeout: patience)
      return nil
    } catch {
      return error.name
    }
  }
}

extension Fixture {
  /// How the micro:bit pairs from now on.
  fileprivate func pairing(pairs: Bool = true, fault: ControlRequest.Fault? = nil) async {
    var request = ControlRequest(op: .pairing, i: 0)
    request.pairs = pairs
    request.fault = fault
    _ = await simulator.control(request)
  }

  /// The micro:bit loses its bond.
  fileprivate func forget() async { _ = await simulator.control(ControlRequest(op: .forget, i: 0)) }
}
