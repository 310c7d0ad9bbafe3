import DBus
import EventLoop
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
  func pair(
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
  func isFoundAgain(_ central: CentralUnderTest, _ id: PeripheralID) async -> Bool {
    await central.central.wait(patience) { $0.tree.devices[id.path]?.isPaired == false }
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
