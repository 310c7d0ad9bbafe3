import Configuration
import GATT
import Log
import TestSupport
import Testing

@testable import Devices

/// Devices that another gateway has taken over.
extension EngineTests {
  @Test func deviceOwnedByAnotherGatewayIsReleased() async throws {
    let attic = try #require(GatewayID("attic"))
    let tested = try await Engine(configuration())
    try await tested.frontEnd.availability(true)
    let before = tested.frontEnd.events.count
    await #expect(throws: RequestError.self) {
      try await tested.engine.setOwnerAndRename(
        .other(attic), ["period": try Property.microbitPeriod.encode(800)],
        to: DeviceID("kitchen"))
    }
    try await tested.frontEnd.availability(false, from: before)
    #expect(await tested.engine.device(Engine.id)?.desired == ["period": 800])
    // The other gateway has lost the device: this one connects to it, and applies the value desired there.
    try await tested.frontEnd.availability(true, from: before)
    try await tested.frontEnd.reading(Engine.period, 800, sequence: .some(nil), from: before)
    await tested.end()
  }

  @Test func valueConfiguredElsewhereIsNotApplied() async throws {
    let attic = try #require(GatewayID("attic"))
    let tested = try await Engine(configuration { $0.period = 300 }, isInRange: false)
    let period = try Property.microbitPeriod.encode(800)
    func handOver(_ desired: EncodedValue?) async -> DeviceDescription? {
      await tested.engine.setOwner(
        .other(attic), of: Engine.id, Handover(desired: ["period": desired]), isTakenOver: true,
        hasNewLink: true)
      return await tested.engine.device(Engine.id)
    }
    var device = await handOver(nil)
    #expect(device?.desired == ["period": 300] && device?.configured == ["period"])
    device = await handOver(period)
    #expect(device?.desired == ["period": 800] && device?.configured == [])
    await #expect(throws: RequestError.self, "the owner would overwrite it") {
      try await tested.engine.add(Engine.address, ["desired": ["period": 500]])
    }
    // A request has withdrawn the override there.
    device = await handOver(nil)
    #expect(device?.desired == ["period": 300] && device?.configured == ["period"])
    await tested.end()
  }

  @Test(arguments: [500, 800])
  func waitingCommandIsNotKeptOnceThereIsAnOwner(there: Int) async throws {
    let folder = try TemporaryFolder()
    let attic = try #require(GatewayID("attic"))
    let tested = try await Engine(
      configuration(), state: folder.path + "/state.db", isInRange: false)
    let outcomes = await tested.command(500)
    #expect(outcomes.elements == [.pending])
    let period = try Property.microbitPeriod.encode(.integer(there))
    await tested.engine.setOwner(
      .other(attic), of: Engine.id, Handover(desired: ["period": period]), isTakenOver: true,
      hasNewLink: true)
    #expect(
      outcomes.elements.dropFirst()
        == (there == 500 ? [] : [.takenOver()]))
    await tested.end()
    #expect(
      try Engine.stored(in: folder.path + "/state.db").first?.requested.desired == [
        "period": DeviceRecord.Desired(value: .integer(there), source: .command)
      ])
  }

  @Test func takenOverCommandIsRemovedFromTheStoredState() async throws {
    let folder = try TemporaryFolder()
    let attic = try #require(GatewayID("attic"))
    let tested = try await Engine(
      configuration(), state: folder.path + "/state.db", isInRange: false)
    let outcomes = await tested.command(500)
    await tested.engine.setOwner(.other(attic), of: Engine.id, isTakenOver: true, hasNewLink: true)
    #expect(outcomes.elements == [.pending, .takenOver()])
    #expect(await tested.engine.device(Engine.id)?.desired == [:])
    await tested.end()
    #expect(try Engine.stored(in: folder.path + "/state.db").first?.requested.desired ?? [:] == [:])
  }

  @Test func aCommandWaitsHereWhileTheOwnerIsOffline() async throws {
    let attic = try #require(GatewayID("attic"))
    let tested = try await Engine(configuration(), isInRange: false)
    let period = try Property.microbitPeriod.encode(800)
    let desired: [String: EncodedValue?] = ["period": period]
    await tested.engine.setOwner(.other(attic), of: Engine.id, Handover(desired: desired, revision: 1))
    #expect(await tested.engine.device(Engine.id)?.desired == ["period": 800])
    let outcomes = await tested.command(500)
    // The broker was restarted, and sends it again.
    await tested.engine.setOwner(.other(attic), of: Engine.id, Handover(desired: desired, revision: 1))
    #expect(outcomes.elements == [.pending])
    #expect(await tested.engine.device(Engine.id)?.desired == ["period": 500])
    await tested.engine.setOwner(
      .other(attic), of: Engine.id, Handover(desired: desired, revision: 1), isTakenOver: true,
      hasNewLink: true)
    #expect(outcomes.elements == [.pending, .takenOver()])
    await tested.end()
  }

  @Test func waitingCommandIsLeftToAGatewayThatMayHaveIt() async throws {
    let attic = try #require(GatewayID("attic"))
    let cellar = try #require(GatewayID("cellar"))
    let tested = try await Engine(configuration(), isInRange: false)
    let desired: [String: EncodedValue?] = ["period": try Property.microbitPeriod.encode(500)]
    // While the owner is offline, the others all have the command.
    await tested.engine.setOwner(.other(attic), of: Engine.id)
    let outcomes = await tested.command(500)
    await tested.engine.setOwner(
      .other(cellar), of: Engine.id, Handover(desired: desired), isTakenOver: true, hasNewLink: true)
    #expect(outcomes.elements == [.pending])
    // It goes offline, and has not received this one.
    await tested.engine.setOwner(.other(cellar), of: Engine.id, Handover(desired: desired))
    let others = await tested.command(500)
    await tested.engine.setOwner(
      .other(cellar), of: Engine.id, Handover(desired: desired), isTakenOver: true, hasNewLink: true)
    #expect(others.elements == [.pending, .takenOver(isDesiredThere: true)])
    await tested.end()
  }

  @Test func waitingCommandExpiresUnlessTheOwnerCarriesItOut() async throws {
    let attic = try #require(GatewayID("attic"))
    let tested = try await Engine(configuration(), isInRange: false)
    let outcomes = await tested.command(500, ttl: 1)
    await tested.engine.setOwner(.other(attic), of: Engine.id, isTakenOver: true, hasNewLink: true)
    #expect(try await outcomes.final() == .timeout(reason: "not applied within 1 s"))
    await tested.end()
  }

  @Test(arguments: [-60_000, 60_000])
  func waitingCommandIsSupersededByWhatTheOwnerSetsLater(milliseconds: Int) async throws {
    let attic = try #require(GatewayID("attic"))
    let tested = try await Engine(configuration(), isInRange: false)
    let outcomes = await tested.command(500, ttl: 600)
    let there: [String: EncodedValue?] = ["period": try Property.microbitPeriod.encode(800)]
    let revision = Int(Timestamp.now.milliseconds) + milliseconds
    await tested.engine.setOwner(
      .other(attic), of: Engine.id, Handover(desired: there, revision: revision), isTakenOver: true,
      hasNewLink: true)
    #expect(outcomes.elements == (milliseconds > 0 ? [.pending, .superseded] : [.pending]))
    await tested.end()
  }

  @Test func newestDeletionCounts() async throws {
    let attic = try #require(GatewayID("attic"))
    let tested = try await Engine(configuration(), isInRange: false)
    func isDeleted(_ owner: Owner, _ handover: Handover) async -> Bool? {
      await tested.engine.setOwner(owner, of: Engine.id, handover)
      return await tested.engine.device(Engine.id)?.record.requested.isDeleted
    }
    #expect(await isDeleted(.other(attic), Handover(isDeleted: true, revision: 5)) == true)
    #expect(await isDeleted(.other(attic), Handover(revision: 6)) == false, "added again while this was off")
    await tested.engine.setDeleted(Engine.id)
    #expect(await isDeleted(.other(attic), Handover(revision: 6)) == true, "deleted while the owner was off")
    #expect(await isDeleted(.unknown, Handover()) == false, "removed at its owner")
    #expect(
      await isDeleted(.this, Handover(isDeleted: true, revision: 1 << 52)) == true,
      "killed before it was stored")
    await tested.end()
  }

  /// The switch in Home Assistant is that of the owner.
  @Test func deviceThatItsOwnerHasDisabledByRequestIsNotConnected() async throws {
    let attic = try #require(GatewayID("attic"))
    let tested = try await Engine(configuration())
    try await tested.frontEnd.availability(true)
    func set(_ handover: Handover) async {
      await tested.engine.setOwner(.other(attic), of: Engine.id, handover)
    }
    await set(Handover(isDisabled: true, revision: 1 << 51))
    try await tested.frontEnd.availability(false)
    #expect(await tested.engine.device(Engine.id)?.settings.isEnabled == false)
    await set(Handover(revision: 1))
    #expect(await tested.engine.device(Engine.id)?.record.isDisabled == true, "an older one")
    await set(Handover(revision: (1 << 51) + 1))
    try await tested.frontEnd.availability(true)
    // Set here, to be handed over to others.
    var patch = DeviceOptionsPatch()
    for isEnabled in [false, true] {
      let before = try #require(await tested.engine.device(Engine.id)?.record.revision)
      patch.options.isEnabled = isEnabled
      let changed = try await tested.engine.change(Engine.id, patch)
      #expect(changed?.record.isDisabled == !isEnabled && before < changed?.record.revision ?? 0)
    }
    await tested.end()
  }

  @Test("What a request has disabled at this gateway stays so, whatever the owner hands over")
  func ownDisablingIsNotTakenBackByTheOwner() async throws {
    let attic = try #require(GatewayID("attic"))
    let tested = try await Engine(configuration())
    try await tested.frontEnd.availability(true)
    func set(_ handover: Handover) async {
      await tested.engine.setOwner(.other(attic), of: Engine.id, handover, isTakenOver: true)
    }
    func isDisabled() async -> Bool? { await tested.engine.device(Engine.id)?.record.isDisabled }
    var patch = DeviceOptionsPatch()
    patch.options.isEnabled = false
    _ = try await tested.engine.change(Engine.id, patch)
    for revision in [0, 1, 1 << 51, (1 << 51) + 1] {
      await set(Handover(revision: revision))
      #expect(await isDisabled() == true, "\(revision)")
    }
    // Enabled here, and disabled at the owner before and after.
    await set(Handover(isDisabled: true, revision: (1 << 51) + 2))
    patch.options.isEnabled = true
    #expect(try await tested.engine.change(Engine.id, patch)?.record.isDisabled == false)
    await set(Handover(isDisabled: true, revision: (1 << 51) + 4))
    #expect(await isDisabled() == true)
    await set(Handover(revision: (1 << 51) + 5))
    #expect(await isDisabled() == false)
    let disabled = Handover(isDisabled: true, revision: 1 << 51)
    await tested.engine.setOwner(.other(attic), of: Engine.id, disabled)
    await tested.end()
  }

  @Test("A device that its owner has disabled, and then removed, is enabled again")
  func removalAtTheOwnerEnds() async throws {
    let attic = try #require(GatewayID("attic"))
    let tested = try await Engine(configuration())
    try await tested.frontEnd.availability(true)
    await tested.engine.setOwner(.other(attic), of: Engine.id, Handover(isDisabled: true, revision: 1 << 51))
    try await tested.frontEnd.availability(false)
    await tested.engine.setOwner(.unknown, of: Engine.id, Handover())
    try await tested.frontEnd.availability(true)
    await tested.end()
  }

  /// A gateway that was off meanwhile has an older value.
  @Test func desiredValueOutlivesTheRemovalOfTheDeviceAtItsOwner() async throws {
    let (attic, hall) = (try #require(GatewayID("attic")), try #require(GatewayID("hall")))
    let tested = try await Engine(configuration(), isInRange: false)
    func handover(_ period: Value, _ revision: Int) throws -> Handover {
      Handover(
        desired: ["period": try Property.microbitPeriod.encode(period)], revision: revision)
    }
    await tested.engine.setOwner(.other(attic), of: Engine.id, try handover(1500, 1))
    await tested.engine.setOwner(.other(attic), of: Engine.id, try handover(500, 2))
    await tested.engine.setOwner(.unknown, of: Engine.id, Handover())
    await tested.engine.setOwner(.other(hall), of: Engine.id, try handover(1500, 1))
    #expect(await tested.engine.device(Engine.id)?.desired == ["period": 500])
    #expect(await tested.engine.device(Engine.id)?.record.revision == 2)
    await tested.end()
  }

  @Test func waitingCommandOutlivesARestartBesideAnOfflineOwner() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/state.db"
    let attic = try #require(GatewayID("attic"))
    let desired: [String: EncodedValue?] = ["period": try Property.microbitPeriod.encode(800)]
    var tested = try await Engine(configuration(), state: path, isInRange: false)
    await tested.engine.setOwner(.other(attic), of: Engine.id, Handover(desired: desired))
    #expect(await tested.command(500).elements == [.pending])
    let revision = await tested.engine.device(Engine.id)?.record.revision
    await tested.end()
    tested = try await Engine(configuration(), state: path, isInRange: false)
    await tested.engine.setOwner(.other(attic), of: Engine.id)
    let device = await tested.engine.device(Engine.id)
    #expect(device?.record.revision == revision, "it is newer than the owner's")
    #expect(device?.desired == ["period": 500])
    await tested.comeBack()
    try await tested.frontEnd.reading(Engine.period, 500, sequence: .some(nil))
    await tested.end()
  }
}

extension DeviceManager {
  /// In one loop iteration: in the next one, the device may already be connecting again.
  fileprivate func setOwnerAndRename(
    _ owner: Owner, _ desired: [String: EncodedValue?], to id: DeviceID
  ) throws {
    setOwner(
      owner, of: EngineUnderTest.id, Handover(desired: desired), isTakenOver: true, hasNewLink: true)
    try rename(EngineUnderTest.id, to: id)
  }
}
