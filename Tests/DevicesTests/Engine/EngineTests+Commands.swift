import Configuration
import GATT
import JSON
import TestSupport
import Testing

@testable import Devices

/// Commands, and reads on request.
extension EngineTests {
  @Test func aPeriodCommandIsApplied() async throws {
    let folder = try TemporaryFolder()
    let tested = try await Engine(state: folder.path + "/state.db")
    try await tested.frontEnd.availability(true)
    let before = tested.frontEnd.events.count
    #expect(try await tested.command(500).final() == .applied(actual: 500))
    try await tested.frontEnd.reading(Engine.period, 500, sequence: .some(nil), from: before)
    try await tested.frontEnd.change(from: before, "desired") { $0.desired == ["period": 500] }
    #expect(await tested.heldPeriod() == 500)
    await tested.end()
    let stored = try Engine.stored(in: folder.path + "/state.db")
    let desired = ["period": DeviceRecord.Desired(value: 500, source: .command)]
    #expect(stored.map(\.requested.desired) == [desired])
    #expect(stored.first?.id == Engine.id && stored.first?.offered == ["temperature", "period"])

    // The next run applies it again.
    let next = try await Engine(state: folder.path + "/state.db")
    guard case .attached(let device) = next.frontEnd.events.elements.first else {
      throw Failure("not attached")
    }
    #expect(device.desired == ["period": 500] && device.record.offered == ["temperature", "period"])
    try await next.frontEnd.reading(Engine.period, 500, sequence: .some(nil))
    await next.end()
  }

  @Test func aDesiredValueIsStoredBeforeTheAnswerAndReportedAfterIt() async throws {
    let tested = try await Engine(configuration(), isInRange: false)
    let seen = Record<String>()
    try await tested.execute(500) { [frontEnd = tested.frontEnd, engine = tested.engine] in
      let isReported = frontEnd.events.elements.contains {
        if case .changed(.handover, _) = $0 { true } else { false }
      }
      let desired = engine.device(Engine.id)?.desired["period"]
      seen.append("\($0.outcome.word) \(desired.map { "\($0)" } ?? "none") \(isReported)")
    }
    #expect(seen.elements == ["pending 500 false"])
    try await tested.frontEnd.event("the value") {
      if case .changed(.handover, let device) = $0 { device.desired == ["period": 500] } else { false }
    }
    await tested.end()
  }

  @Test func aCommandForAnUnknownDeviceFails() async throws {
    let tested = try await Engine(isInRange: false)
    let nobody = try DeviceID("nobody")
    let failure = Outcome.rejected(reason: "no device is called nobody")
    #expect(await tested.command(500, of: nobody).elements == [failure])
    #expect(await tested.get(Engine.period, of: nobody).elements == [failure])
    await tested.end()
  }

  @Test func aCommandForAPropertyThatCannotBeSetIsRejected() async throws {
    let tested = try await Engine(configuration(), isInRange: false)
    #expect(
      await tested.command(21, Engine.temperature).elements == [
        .rejected(reason: "temperature cannot be set")
      ])
    await tested.end()
  }

  @Test func aCommandWaitsForTheDevice() async throws {
    let tested = try await Engine(configuration(), isInRange: false)
    let first = await tested.command(400)
    let second = await tested.command(500)
    #expect(first.elements == [.pending, .superseded])
    #expect(second.elements == [.pending])
    #expect(await tested.engine.device(Engine.id)?.desired == ["period": 500])
    await tested.comeBack()
    #expect(try await second.final() == .applied(actual: 500))
    #expect(await tested.heldPeriod() == 500)
    await tested.end()
  }

  @Test func waitingCommandExpires() async throws {
    let tested = try await Engine(configuration(), isInRange: false)
    let outcomes = await tested.command(500, ttl: 1)
    #expect(await tested.engine.device(Engine.id)?.desired == [:], "a command with a ttl is not kept")
    #expect(try await outcomes.final() == .timeout(reason: "not applied within 1 s"))
    #expect(outcomes.elements.first == .pending)
    try await eventually("no urgent link") { await !tested.engine.isUrgent(Engine.id) }
    await tested.end()
  }

  @Test func aLinkIsUrgentAsLongAsAnythingWaitsForIt() async throws {
    let tested = try await Engine(configuration(), isInRange: false)
    _ = await tested.command(500, ttl: 3600)
    #expect(await tested.engine.isUrgent(Engine.id))
    _ = await tested.command(600)
    _ = await tested.command(700, ttl: 3600)
    #expect(await tested.engine.isUrgent(Engine.id))
    await tested.end()
  }

  @Test func aCommandWhoseLinkEndsMakesTheNextOneUrgent() async throws {
    let tested = try await Engine(configuration())
    try await tested.frontEnd.availability(true)
    let outcomes = Record<Outcome>()
    let value = try Property.microbitPeriod.encode(500)
    #expect(try await tested.engine.isUrgent(after: EncodedCommand(value: value) { outcomes.append($0) }))
    #expect(try await outcomes.final() == .applied(actual: 500))
    // Now it has been told as pending.
    let pending = EncodedCommand(value: value, isPendingReported: true) { _ in }
    #expect(try await tested.engine.isUrgent(after: pending))
    await tested.end()
  }

  @Test func waitingCommandSurvivesARestart() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/state.db"
    let tested = try await Engine(configuration(), state: path, isInRange: false)
    let waits = await tested.command(500, sender: ["transaction": "t"])
    try await waits.pending()
    await tested.end()
    #expect(waits.elements == [.pending, .deferred])
    let next = try await Engine(configuration(), state: path)
    try await next.frontEnd.reading(Engine.period, 500, sequence: .some(nil))
    let result = RecordingFrontEnd.Event.answer(
      "period", .applied(actual: 500), sender: ["transaction": "t"])
    #expect(next.frontEnd.events.elements.count { $0 == result } == 1)
    await next.end()
    #expect(try Engine.stored(in: path).first?.requested.waiting == [:])
  }

  @Test func waitingCommandOfAPropertyThatIsGoneFailsAfterARestart() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/state.db"
    var record = DeviceRecord(address: Engine.address)
    record.requested.waiting = [
      "wings": DeviceRecord.Desired(value: 1, sender: "a"),
      "period": DeviceRecord.Desired(value: 1, sender: "b"),
    ]
    await Engine.store(record, in: path)
    let tested = try await Engine(configuration(), state: path, isInRange: false)
    for (property, sender) in [("wings", "a"), ("period", "b")] as [(String, JSONValue)] {
      try await tested.frontEnd.event("\(property) failed") {
        if case .answer(property, .failed, sender) = $0 { true } else { false }
      }
    }
    await tested.end()
    #expect(try Engine.stored(in: path).first?.requested.waiting ?? [:] == [:])
  }

  @Test func aPropertyOfADeviceOutOfRangeIsNotRead() async throws {
    let tested = try await Engine(isInRange: false)
    #expect(await tested.get(Engine.period, of: Engine.id).elements.count == 1)
    await tested.end()
  }

  @Test func aPropertyIsReadOnRequest() async throws {
    let tested = try await Engine { $0.period = 300 }
    try await tested.frontEnd.availability(true)
    let before = tested.frontEnd.events.count
    #expect(try await tested.get(Engine.period).final() == .read(actual: 300))
    // A value that is never notified is a reading when it is requested.
    try await tested.frontEnd.event(from: before, "a reading of the period") {
      if case .reading(Engine.period, 300, .some) = $0 { true } else { false }
    }
    guard case .read = try await tested.get(Engine.temperature).final() else {
      throw Failure("the temperature was not read")
    }
    await tested.vanish()
    try await tested.frontEnd.availability(false, from: before)
    #expect(
      await tested.get(Engine.period).elements == [.failed(reason: "the device is offline: the link ended")])
    await tested.end()
  }

  /// bluetoothd also notifies the value of the read, if it is subscribed to; there is one reading per read.
  @Test(arguments: [nil, Duration.seconds(3600)])
  func requestedReadIsPublishedOnce(poll: Duration?) async throws {
    let profile = try Profile(
      name: "meter", properties: [Self.property("level", 0x2221, [.read, .notify], poll: poll)])
    let tested = try await engine(profile)
    try await tested.frontEnd.availability(true)
    await tested.notify(BluetoothUUID(short: 0x2221), "07")
    if poll == nil { try await tested.frontEnd.reading(0, 7) }
    let before = tested.frontEnd.events.count
    #expect(try await tested.get(0).final() == .read(actual: 7))
    try await tested.frontEnd.reading(0, 7, from: before)
    #expect(try await tested.get(0).final() == .read(actual: 7))
    let readings = tested.frontEnd.events.elements.dropFirst(before).filter { event in
      if case .reading(0, 7, _) = event { true } else { false }
    }
    #expect(readings.count == 2)
    await tested.end()
  }

  /// The reads of the writer are notified if the property is subscribed to; otherwise they are not readings.
  @Test(arguments: [Property.Access.notify, []])
  func readBackIsPublishedOnce(notify: Property.Access) async throws {
    let profile = try Profile(
      name: "lamp", properties: [Self.property("level", 0x2221, [.read, .write, notify], .confirm)])
    let tested = try await engine(profile)
    try await tested.frontEnd.availability(true)
    #expect(try await tested.command(9, 0).final() == .applied(actual: 9))
    #expect(try await tested.command(8, 0).final() == .applied(actual: 8))
    try await tested.frontEnd.reading(0, 8)
    let readings = tested.frontEnd.events.elements.filter { event in
      if case .reading = event { true } else { false }
    }
    let isReading = notify == .notify
    #expect(
      readings == [
        .reading(0, 9, sequence: isReading ? 1 : nil), .reading(0, 8, sequence: isReading ? 2 : nil),
      ])
    await tested.end()
  }
}

extension DeviceManager {
  private func links(_ id: DeviceID) -> LinkSession? { (try? requireDevice(id))?.session.linkSession }
  func isUrgent(_ id: DeviceID) -> Bool { links(id)?.isUrgent == true }
  /// Whether the next link is urgent when the link ends during a command's write.
  fileprivate func isUrgent(after command: EncodedCommand) throws -> Bool {
    registry.byID[EngineUnderTest.id]?.channels[EngineUnderTest.period].writer?.execute(command)
    let session = try #require(links(EngineUnderTest.id))
    let peripheral = try #require(session.peripheral)
    session.handle(.disconnected(peripheral, reason: nil), of: peripheral)
    return session.isUrgent
  }
}
