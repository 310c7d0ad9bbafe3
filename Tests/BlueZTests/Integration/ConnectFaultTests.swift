import DBus
import EventLoop
import TestSupport
import Testing

@testable import BlueZ

/// Connects that go wrong as real ones did, and worse.
@Suite struct ConnectFaultTests {
  @Test func aConnectWithoutAnAnswerIsCalledOff() async throws {
    let faults = try await Faults(answers: ["Connect": FakeBlueZ.never]) { $0.connect = .seconds(10) }
    await #expect(throws: CentralError.timedOut("Connect: no answer in time")) {
      try await faults.connect()
    }
    #expect(faults.fake.count("Disconnect") == 1)
    // The lock was released.
    await faults.fake.answer("Connect", FakeBlueZ.linked(inTime: .zero))
    #expect(try await faults.connect().count == 2)
    try await faults.tested.end()
  }

  @Test func scanningResumesBrieflyBetweenManyConnects() async throws {
    let faults = try await Faults(answers: ["Connect": FakeBlueZ.never]) {
      $0.connect = .milliseconds(50)
      $0.scanPause = .milliseconds(20)
      $0.briefScan = .milliseconds(10)
    }
    await faults.central.scan(true)
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<3 { group.addTask { _ = try? await faults.connect() } }
    }
    #expect(faults.fake.count("Connect") == 3)
    // Before the first connect, and before each that came late; beside none of them.
    #expect(faults.fake.count("StartDiscovery") >= 3)
    #expect(faults.fake.count("StopDiscovery") >= 3)
    try await faults.tested.end()
  }

  /// Of a paired device it may be a weak radio signal, or a lost bond.
  @Test(arguments: [false, true])
  func failedConnectGivesItsReasonAndLeavesNoHalfLink(isPaired: Bool) async throws {
    let faults = try await Faults(answers: [
      "Connect": { fake, call in
        // As recorded when a link fails to be established (0x3E).
        fake.signal(
          Recorded.device(["Connected": .boolean(true)]), Recorded.device(["Connected": .boolean(false)]))
        fake.refuse(call, "org.bluez.Error.Failed", "le-connection-abort-by-local")
      }
    ]) { $0.shortLink = patience }
    await faults.fake.signal(Recorded.device(["Paired": .boolean(isPaired)]))
    #expect(await faults.central.wait(patience) { $0.peripherals.first?.isPaired == isPaired })
    let text = "Failed: le-connection-abort-by-local"
    await #expect(throws: isPaired ? CentralError.cutShort(text) : .transient(text)) {
      try await faults.connect()
    }
    #expect(faults.fake.count("Disconnect") == 1)
    try await faults.tested.end()
  }

  /// Disconnect would end another program's pairing. But bluetoothd may keep the Connect of one that was killed.
  @Test(
    arguments: [true, false], [("InProgress", "In Progress"), ("Failed", "Operation already in progress")])
  func anotherProgramsAttemptIsNotEndedBeforeItsTime(_ isInTime: Bool, _ error: (String, String)) async throws
  {
    let refusal = FakeBlueZ.error("org.bluez.Error.\(error.0)", error.1)
    let faults = try await Faults(answers: [
      "Connect": refusal, "Pair": refusal, "RegisterAgent": FakeBlueZ.ok, "UnregisterAgent": FakeBlueZ.ok,
    ]) {
      if !isInTime { $0.pair = .zero }
    }
    let busy = CentralError.busy("\(error.0): \(error.1)")
    await #expect(throws: busy) { try await faults.connect() }
    await #expect(throws: PairingError.failed(busy)) {
      try await faults.central.pair(Recorded.id, passkey: nil) {}
    }
    #expect(faults.fake.count("Disconnect") == (isInTime ? 0 : 2))
    try await faults.tested.end()
  }

  /// An attempt that has lasted for an hour is ended, unless what happened meanwhile shows that it is another one.
  @Test(arguments: ["removed", "gone", "busy"])
  func theTimeOfAnotherProgramsAttemptBeginsAnew(state: String) async throws {
    let busy = FakeBlueZ.error("org.bluez.Error.InProgress", "In Progress")
    let faults = try await Faults(answers: ["Connect": busy])
    await #expect(throws: CentralError.busy("InProgress: In Progress")) { try await faults.connect() }
    await faults.anotherAttemptHasLastedAnHour()
    if state == "removed" {
      await faults.fake.signal(Recorded.removed(Recorded.device, "org.bluez.Device1"))
      #expect(await faults.central.wait(patience) { $0.peripherals.isEmpty })
      await faults.fake.signal(Recorded.deviceAdded)
      #expect(await faults.central.wait(patience) { !$0.peripherals.isEmpty })
    } else if state == "gone" {
      await faults.fake.answer("Connect", FakeBlueZ.error(DBusName.Failure.unknownObject, "no such object"))
      await #expect(throws: CentralError.gone) { try await faults.connect() }
      await faults.fake.answer("Connect", busy)
    }
    await #expect(throws: CentralError.busy("InProgress: In Progress")) { try await faults.connect() }
    #expect(faults.fake.count("Disconnect") == (state == "busy" ? 1 : 0))
    try await faults.tested.end()
  }

  /// bluetoothd 5.83 and newer give the reason, before `Connected` is false.
  @Test func reasonOfTheEndOfALinkIsReported() async throws {
    let faults = try await Faults()
    _ = try await faults.connect()
    await faults.fake.signal(
      .linkEnded(path: Recorded.device, reason: "terminated by the peer"),
      Recorded.device(["Connected": .boolean(false)]))
    let reason = try await faults.tested.events.next("the end") { event -> String? in
      if case .disconnected(Recorded.id, let reason) = event { reason ?? "no reason" } else { nil }
    }
    #expect(reason == "terminated by the peer")
    try await faults.tested.end()
  }

  @Test func linkWithoutASignalIsQueried() async throws {
    let faults = try await Faults(answers: [
      "Connect": { fake, call in
        fake.reply(call)
        for event in FakeBlueZ.linked { fake.signal(event) }
      },
      "Get": { fake, call in fake.reply(call, .variant(.boolean(true))) },
    ])
    let characteristics = try await faults.connect()
    #expect(characteristics.count == 2)
    #expect(try await faults.central.read(characteristics[0]).get() == [21])
    // Its end is reported like that of any other.
    await faults.fake.signal(Recorded.device(["Connected": .boolean(false)]))
    try await faults.tested.disconnected(Recorded.id)
    try await faults.tested.end()
  }

  @Test func connectReplyWithoutALinkIsAFailure() async throws {
    let faults = try await Faults(answers: [
      "Connect": FakeBlueZ.ok, "Get": { fake, call in fake.reply(call, .variant(.boolean(false))) },
    ]) { $0.treeUpdate = .milliseconds(20) }
    await #expect(throws: CentralError.disconnected) { try await faults.connect() }
    try await faults.tested.end()
  }

  /// The answer about the property is overtaken by the end of the link.
  @Test func signalOverridesAnEarlierReply() async throws {
    let faults = try await Faults(answers: [
      "Connect": FakeBlueZ.ok,
      "Get": { fake, call in
        fake.reply(call, .variant(.boolean(true)))
        fake.signal(Recorded.device(["Connected": .boolean(false)]))
      },
    ]) { $0.treeUpdate = .milliseconds(20) }
    for attempt in 1...20 {
      try await deadline(patience, "a connect to fail") { () async throws -> Void in
        await #expect(throws: CentralError.disconnected) { try await faults.connect() }
      }
      // It is not taken for linked by the next attempt.
      #expect(faults.fake.count("Connect") == attempt)
    }
    try await faults.tested.end()
  }

  @Test func servicesMayTakeTheirTime() async throws {
    let faults = try await Faults(answers: ["Connect": FakeBlueZ.linked(inTime: .milliseconds(50))])
    #expect(try await faults.connect().count == 2)
    try await faults.tested.end()
  }

  @Test func servicesMayBeExportedAfterTheyAreResolved() async throws {
    let faults = try await Faults(answers: [
      "Connect": { fake, call in
        fake.signal(Recorded.device(["Connected": .boolean(true)]))
        fake.reply(call)
        fake.signal(Recorded.device(["ServicesResolved": .boolean(true)]))
        fake.later(.milliseconds(30)) { for event in Recorded.servicesAdded { fake.signal(event) } }
      }
    ])
    #expect(try await faults.connect().count == 2)
    try await faults.tested.end()
  }

  /// Of a paired device, whose link stays, the kernel has lost the key, unless bluetoothd does not answer.
  @Test(arguments: [(false, true), (true, true), (true, false)])
  func servicesThatAreNeverResolvedEndTheAttempt(isPaired: Bool, isAnswered: Bool) async throws {
    var answers: [String: FakeBlueZ.Answer] = [
      "Connect": { fake, call in
        fake.signal(Recorded.device(["Connected": .boolean(true), "Paired": .boolean(isPaired)]))
        fake.reply(call)
      }
    ]
    if !isAnswered { answers["Get"] = FakeBlueZ.never }
    let faults = try await Faults(answers: answers) {
      $0.resolve = .milliseconds(30)
      if !isAnswered { $0.local = .milliseconds(30) }
    }
    let late = CentralError.timedOut("the services were not resolved in time")
    await #expect(throws: isPaired && isAnswered ? .keyMissing : late) { try await faults.connect() }
    #expect(faults.fake.count("Disconnect") == 1)
    try await faults.tested.end()
  }

  /// As recorded with 5.87, if the kernel has lost the key of a paired device.
  @Test(arguments: [
    ("Connection terminated by local host", true), ("Connection terminated by local host", false),
    ("Connection timeout", true),
  ])
  func aLinkThatBluetoothdEndsWasNotEncrypted(reason: String, isPaired: Bool) async throws {
    let faults = try await Faults(answers: [
      "Connect": { fake, call in
        fake.signal(Recorded.device(["Connected": .boolean(true), "Paired": .boolean(isPaired)]))
        fake.reply(call)
        fake.later(.milliseconds(20)) {
          fake.signal(
            .linkEnded(path: Recorded.device, reason: reason),
            Recorded.device(["Connected": .boolean(false)]))
        }
      }
    ]) {
      $0.shortLink = .zero
      $0.unencryptedLink = patience
    }
    let isLost = isPaired && reason.hasSuffix("local host")
    await #expect(throws: isLost ? CentralError.keyMissing : .disconnected) { try await faults.connect() }
    try await faults.tested.end()
  }

  @Test func aPeripheralWithoutServicesIsReportedAsThat() async throws {
    let faults = try await Faults(answers: ["Connect": FakeBlueZ.resolvedWithoutServices]) {
      $0.export = .milliseconds(30)
    }
    #expect(try await faults.connect() == [])
    try await faults.tested.end()
  }

  /// A peripheral that answers no request: "resolved" without services, and 2 s later the link is gone.
  @Test func aWedgedPeripheralIsNoneWithoutServices() async throws {
    let faults = try await Faults(answers: [
      "Connect": { fake, call in
        FakeBlueZ.resolvedWithoutServices(fake, call)
        fake.later(.milliseconds(20)) {
          fake.signal(Recorded.device(["ServicesResolved": .boolean(false), "Connected": .boolean(false)]))
        }
      }
    ])
    await #expect(throws: CentralError.disconnected) { try await faults.connect() }
    try await faults.tested.end()
  }

  @Test(arguments: [false, true])
  func aLinkThatEndsWhileItIsResolvedEndsTheAttempt(forgotten: Bool) async throws {
    let faults = try await Faults(answers: [
      "Connect": { fake, call in
        fake.signal(Recorded.device(["Connected": .boolean(true)]))
        fake.reply(call)
        fake.later(.milliseconds(20)) {
          if forgotten {
            fake.signal(Recorded.deviceRemoved.last!)
          } else {
            fake.signal(Recorded.device(["Connected": .boolean(false)]))
          }
        }
      }
    ])
    try await deadline(patience, "the end of the attempt") { () async throws -> Void in
      await #expect(throws: CentralError.disconnected) { try await faults.connect() }
    }
    try await faults.tested.end()
  }

  @Test func aConnectWaitsForADisconnectThatIsUnderWay() async throws {
    let faults = try await Faults()
    _ = try await faults.connect()
    await faults.fake.answer("Disconnect") { fake, call in
      fake.later(.milliseconds(50)) {
        fake.signal(Recorded.device(["ServicesResolved": .boolean(false), "Connected": .boolean(false)]))
        fake.reply(call)
      }
    }
    let disconnecting = Task { await faults.central.disconnect(Recorded.id) }
    try await faults.fake.called("Disconnect")
    #expect(try await faults.connect().count == 2)
    #expect(faults.fake.calls.elements.suffix(2) == ["Disconnect", "Connect"])
    await disconnecting.value
    // The new link is not taken down by the end of the old one.
    let temperature = try #require(try await faults.connect().temperature)
    #expect(try await faults.central.read(temperature).get() == [21])
    try await faults.tested.end()
  }

  /// bluetoothd answers nothing for a while: nothing would be read over the link either.
  @Test func aLinkThatWasNotEndedIsNotUsedAgain() async throws {
    let faults = try await Faults(answers: ["Disconnect": FakeBlueZ.never]) {
      $0.disconnect = .milliseconds(50)
      $0.treeUpdate = .milliseconds(10)
    }
    _ = try await faults.connect()
    await faults.central.disconnect(Recorded.id)
    await #expect(throws: CentralError.timedOut("the last link has not ended")) { try await faults.connect() }
    #expect(faults.fake.count("Disconnect") == 2)
    await faults.fake.answer("Disconnect") { fake, call in
      fake.signal(Recorded.device(["ServicesResolved": .boolean(false), "Connected": .boolean(false)]))
      fake.reply(call)
    }
    await #expect(throws: CentralError.timedOut("the last link has not ended")) { try await faults.connect() }
    #expect(try await faults.connect().count == 2)
    try await faults.tested.end()
  }

  /// It keeps its link, and answers late.
  @Test func othersAreConnectedWhileServicesAreNotResolved() async throws {
    let faults = try await Faults(answers: [
      "Connect": FakeBlueZ.linked(inTime: .seconds(3600)), "Disconnect": FakeBlueZ.ok,
    ]) {
      $0.turn = .milliseconds(30)
      $0.servicesChange = .zero
    }
    await faults.central.scan(true)
    let late = Task { try await faults.connect() }
    try await faults.fake.called("Connect")
    // Scanning goes on, too.
    try await faults.fake.called("StartDiscovery")
    await faults.fake.answer(
      "Connect", FakeBlueZ.error("org.bluez.Error.Failed", "le-connection-abort-by-local"))
    await faults.fake.signal(Recorded.otherAdded)
    _ = try await faults.tested.seen(Recorded.otherAddress)
    await #expect(throws: CentralError.self) {
      try await faults.central.connect(Recorded.otherID)
    }
    for event in FakeBlueZ.linked { await faults.fake.signal(event) }
    let characteristics = try await late.value
    #expect(characteristics.count == 2)
    #expect(try await faults.central.read(characteristics[0]).get() == [21])
    // Its services have come, not changed.
    let isChange = { if case .servicesChanged = $0 as CentralEvent { true } else { false } }
    #expect(!faults.tested.events.elements.contains(where: isChange))
    try await faults.tested.end()
  }

  /// As if the device is disabled, and enabled again at once.
  @Test func anAttemptWaitsForTheLastOneWithThePeripheral() async throws {
    let faults = try await Faults(answers: ["Connect": FakeBlueZ.linked(inTime: .seconds(3600))]) {
      $0.turn = .milliseconds(10)
    }
    let last = Task { try await faults.connect() }
    try await faults.fake.called("Connect")
    #expect(await faults.central.wait(patience) { $0.queue.isResolving(Recorded.id) })
    await faults.fake.answer("Connect", FakeBlueZ.linked(inTime: .zero))
    let ending = Task { await faults.central.disconnect(Recorded.id) }
    try await faults.fake.called("Disconnect")
    let characteristics = try await faults.connect()
    await #expect(throws: CentralError.disconnected) { try await last.value }
    await ending.value
    #expect(faults.fake.calls.elements.suffix(1) == ["Connect"])
    #expect(try await faults.central.read(characteristics[0]).get() == [21])
    try await faults.tested.end()
  }

  @Test func anAttemptThatWaitsForTheLastOneHoldsUpNoOther() async throws {
    let faults = try await Faults(answers: [
      "Connect": FakeBlueZ.linked(inTime: .seconds(3600)), "Disconnect": FakeBlueZ.ok,
    ]) {
      $0.turn = .milliseconds(10)
      $0.disconnect = .seconds(3600)
      $0.servicesChange = .zero
    }
    let last = Task { try await faults.connect() }
    try await faults.fake.called("Connect")
    #expect(await faults.central.wait(patience) { $0.queue.isResolving(Recorded.id) })
    let next = Task { try await faults.connect() }
    await faults.fake.answer(
      "Connect", FakeBlueZ.error("org.bluez.Error.Failed", "le-connection-abort-by-local"))
    await faults.fake.signal(Recorded.otherAdded)
    _ = try await faults.tested.seen(Recorded.otherAddress)
    let other = Task { try await faults.central.connect(Recorded.otherID) }
    try await faults.fake.called("Connect")
    await #expect(throws: CentralError.self) { try await other.value }
    for event in FakeBlueZ.linked { await faults.fake.signal(event) }
    for attempt in [last, next] { #expect(try await attempt.value.count == 2) }
    try await faults.tested.end()
  }

  @Test func stopDoesNotWaitForABluetoothdThatDoesNotAnswer() async throws {
    let faults = try await Faults(answers: [
      "Disconnect": FakeBlueZ.never, "StopDiscovery": FakeBlueZ.never,
    ]) {
      // Longer than a busy machine takes to stop without waiting for them.
      $0.disconnect = .seconds(60)
      $0.local = .seconds(60)
    }
    await faults.central.scan(true)
    try await faults.fake.called("StartDiscovery")
    await faults.fake.signal(Recorded.device(["Connected": .boolean(true)]))
    for event in FakeBlueZ.linked { await faults.fake.signal(event) }
    _ = try await faults.connect()
    let start = ContinuousClock.now
    await faults.central.stop(within: .milliseconds(100))
    #expect(start.duration(to: .now) < .seconds(20))
    try await faults.fake.called("Disconnect")
    #expect(faults.fake.count("Disconnect") == 1)
    try await faults.tested.end()
  }
}

extension FakeBlueZ {
  /// Connects, and resolves the services after a while.
  static func linked(inTime delay: Duration) -> Answer {
    { fake, call in
      fake.signal(Recorded.device(["Connected": .boolean(true)]))
      fake.reply(call)
      fake.later(delay) { for event in linked { fake.signal(event) } }
    }
  }

  static let resolvedWithoutServices: Answer = { fake, call in
    fake.signal(Recorded.device(["Connected": .boolean(true)]))
    fake.reply(call)
    fake.signal(Recorded.device(["ServicesResolved": .boolean(true)]))
  }
}
