import BlueZ
import Configuration
import TestSupport
import Testing

@testable import BlueZSimulator
@testable import Devices

/// An engine with two adapters.
@Suite struct AdapterTests {
  private typealias Engine = EngineUnderTest

  private static func configuration(adapter: String? = nil) -> Configuration {
    var configuration = Configuration()
    configuration.bluetooth.adapters = ["hci0", "hci1"]
    var entry = Configuration.Device(match: .identifier(Engine.address))
    entry.adapter = adapter
    configuration.devices = [entry]
    return configuration
  }

  /// - Parameter strengths: in dBm, by adapter.
  private static func engine(
    _ strengths: [Int?], _ configuration: Configuration = configuration(), absentAdapter: Int? = nil
  ) async throws -> Engine {
    try await Engine(configuration, absentAdapter: absentAdapter) { options in
      options.adapters = 2
      options.strengths = [0: strengths]
      // Some of the tests wait for many readings.
      options.period = 20
    }
  }

  /// The device is online, and its readings arrive.
  private static func online(_ tested: Engine, after mark: Int = 0) async throws -> String? {
    let device = try await tested.frontEnd.availability(true, from: mark)
    try await tested.frontEnd.event(from: tested.frontEnd.events.elements.count, "a reading") {
      if case .reading(Engine.temperature, _, _) = $0 { true } else { false }
    }
    return device.adapter
  }

  private static let strengths: [[Int?]] = [[-80, -50], [-50, -80], [nil, -70], [-70, nil]]

  @Test(arguments: strengths)
  func adapterWithStrongestSignalConnects(strengths: [Int?]) async throws {
    let tested = try await Self.engine(strengths)
    #expect(
      try await Self.online(tested) == ((strengths[0] ?? -99) > (strengths[1] ?? -99) ? "hci0" : "hci1"))
    await tested.end()
  }

  @Test func pinnedDeviceUsesOnlyItsAdapter() async throws {
    let tested = try await Self.engine([-80, -50], Self.configuration(adapter: "hci0"))
    #expect(try await Self.online(tested) == "hci0")
    // Pinned to the other adapter, it moves at once.
    let mark = tested.frontEnd.events.elements.count
    await tested.engine.configure(Self.configuration(adapter: "hci1"))
    #expect(try await Self.online(tested, after: mark) == "hci1")
    await tested.end()
  }

  @Test func deviceMovesWhenItsAdapterGoesAndStaysAfterwards() async throws {
    let tested = try await Self.engine([-50, -70])
    #expect(try await Self.online(tested) == "hci0")
    let gone = tested.frontEnd.events.elements.count
    await tested.plug(0, false)
    try await tested.frontEnd.availability(false, from: gone)
    #expect(try await Self.online(tested, after: gone) == "hci1")

    let back = tested.frontEnd.events.elements.count
    let changes = tested.frontEnd.adapters.elements.count
    await tested.plug(0, true)
    _ = try await tested.frontEnd.adapters.first(from: changes, within: patience, "hci0 on") {
      $0[0].state.isOn
    }
    // The stronger adapter scans again, and the link stays where it is.
    for _ in 0..<20 {
      try await tested.frontEnd.event(from: tested.frontEnd.events.elements.count, "a reading") {
        if case .reading(Engine.temperature, _, _) = $0 { true } else { false }
      }
    }
    #expect(
      !tested.frontEnd.events.elements[back...].contains {
        if case .changed(.availability, _) = $0 { true } else { false }
      })
    #expect(await tested.engine.device(Engine.id)?.adapter == "hci1")
    await tested.end()
  }

  @Test func anAbsentAdapterDoesNotStopTheOther() async throws {
    let tested = try await Self.engine([-50, -70], absentAdapter: 0)
    #expect(try await Self.online(tested) == "hci1")
    _ = try await tested.frontEnd.adapters.first(within: patience, "hci0 absent") {
      $0.count == 2 && $0[0].name == "hci0" && $0[0].state == .adapterAbsent && $0[1].state.isOn
    }
    do throws(RequestError) {
      _ = try await tested.engine.adapter(named: nil)
      Issue.record("it chose one of two")
    } catch {
      #expect(error.reason == "this gateway uses hci0 and hci1: name one of them by \"adapter\"")
    }
    await tested.end()
  }

  /// After a reset on USB the first one is hci2, also after the next start of the gateway.
  @Test func anAdapterWithAnotherNameIsFoundByItsAddress() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/state.db"
    let tested = try await Engine(Self.configuration(adapter: "hci0"), state: path) { $0.adapters = 2 }
    #expect(try await Self.online(tested) == "hci0")
    let mark = tested.frontEnd.events.count
    await tested.plug(0, false)
    await tested.plug(0, true, as: "hci2")
    try await tested.frontEnd.availability(false, from: mark)
    #expect(try await Self.online(tested, after: mark) == "hci0")
    #expect(await tested.engine.adapters.map(\.name) == ["hci0", "hci1"])
    #expect(
      await tested.engine.adapters.first?.state == .on(adapter: "hci2", address: "02:00:5E:00:53:01"))
    await tested.end()

    let again = try await Engine(Self.configuration(adapter: "hci0"), state: path, absentAdapter: 0) {
      $0.adapters = 2
    }
    await again.plug(0, true, as: "hci2")
    #expect(try await Self.online(again) == "hci0")
    await again.end()
  }

  @Test func anAdapterThatNobodyUsesIsNamedIfAnotherIsAbsent() async throws {
    var configuration = Configuration()
    configuration.bluetooth.adapters = ["hci0"]
    let tested = try await Engine(configuration, absentAdapter: 0) { $0.adapters = 2 }
    _ = try await tested.frontEnd.adapters.first("hci0 absent") { $0[0].state == .adapterAbsent }
    let finding = await tested.engine.findings.first
    #expect(finding?.text == "there is no Bluetooth adapter hci0; there is hci1")
    #expect(finding?.remedy == "name hci1 in bluetooth.adapters of the configuration, or plug hci0 in")
    await tested.end()
  }

  /// Then its devices may well be in range.
  @Test func noDeviceIsOutOfRangeOfAnAdapterThatCannotScan() async throws {
    let tested = try await Engine { $0.timing.temporary = .milliseconds(10) }
    try await tested.frontEnd.availability(true)
    await tested.scans(false)
    let (mark, changes) = (tested.frontEnd.events.count, tested.frontEnd.adapters.count)
    await tested.vanish()
    try await tested.frontEnd.availability(false, from: mark)
    _ = try await tested.frontEnd.adapters.first(from: changes, "a recovery") { $0[0].recovery != nil }
    try await eventually("the device is absent") { await tested.engine.device(Engine.id)?.session == .absent }
    #expect(await tested.engine.findings.map(\.text).allSatisfy { $0.hasPrefix("hci0 cannot scan") })
    await tested.end()
  }

  @Test func anAdapterWithoutAFreeLinkIsNotChosen() async throws {
    var configuration = Self.configuration()
    configuration.bluetooth.links = 1
    configuration.devices = [Configuration.Device()]
    let tested = try await Engine(configuration) { options in
      options.adapters = 2
      options.devices = 2
      options.strengths = [0: [-50, -70], 1: [-50, -70]]
    }
    let first = try await tested.frontEnd.availability(true)
    let second = try await tested.frontEnd.event("another device online") {
      if case .changed(.availability, let device) = $0 {
        device.isOnline && device.id != first.id
      } else {
        false
      }
    }
    guard case .changed(_, let other) = second else { throw Failure("no description") }
    #expect(Set([first.adapter, other.adapter]) == ["hci0", "hci1"])
    await tested.end()
  }

  // MARK: Start and reload

  @Test func adaptersThatAreNotUpYetAreAwaitedAtStart() async throws {
    let tested = try await Self.engine([-80, -50], absentAdapter: 1)
    await tested.plug(1, true)
    #expect(try await Self.online(tested) == "hci1")
    await tested.end()
  }

  /// `bluetooth.adapters` takes effect at the next start, and so does a pin to an adapter that a reload adds.
  @Test func pinToAnUnusedAdapterDoesNotMoveTheDevice() async throws {
    let tested = try await Self.engine([-80, -50], Self.configuration(adapter: "hci0"))
    #expect(try await Self.online(tested) == "hci0")
    let mark = tested.frontEnd.events.count
    await tested.engine.configure(Self.configuration(adapter: "hci2"))
    for _ in 0..<20 {
      try await tested.frontEnd.event(from: tested.frontEnd.events.count, "a reading") {
        if case .reading(Engine.temperature, _, _) = $0 { true } else { false }
      }
    }
    #expect(
      !tested.frontEnd.events.elements[mark...].contains {
        if case .changed(.availability, _) = $0 { true } else { false }
      })
    // The pin to the first adapter still holds for the next link.
    await tested.hangUp()
    try await tested.frontEnd.availability(false, from: mark)
    #expect(try await Self.online(tested, after: mark) == "hci0")
    await tested.end()
  }

  // MARK: Bonds

  /// The peripheral requires pairing, and is paired with before anything else.
  private static func pairingEngine(
    adapter: String? = nil, strengths: [Int?] = [-50, -70], bondLimit: Duration = .seconds(60)
  ) async throws -> Engine {
    try await Engine(pairing(adapter: adapter), bondLimit: bondLimit) { options in
      options.adapters = 2
      options.strengths = [0: strengths]
      options.pairing = .justWorks
      // Each advertisement is reported once, so that nothing but a timer changes the state of the engine.
      options.timing.scan = .seconds(3600)
    }
  }

  private static func pairing(adapter: String? = nil) -> Configuration {
    var configuration = configuration(adapter: adapter)
    configuration.devices[0].pairing = .always
    return configuration
  }

  @Test func unpairingDeletesTheBondsOfAllAdapters() async throws {
    let tested = try await Self.pairingEngine(adapter: "hci0")
    #expect(try await Self.online(tested) == "hci0")
    let bond = await tested.engine.device(Engine.id)?.record.bond
    #expect(bond != nil)
    let mark = tested.frontEnd.events.count
    await tested.engine.configure(Self.pairing(adapter: "hci1"))
    #expect(try await Self.online(tested, after: mark) == "hci1")
    let replies = Record<Result<Void, RequestError>>()
    try await tested.engine.unpair(.id(Engine.id)) { replies.append($0) }
    let reply = try await replies.first("a reply") { _ in true }
    #expect(throws: Never.self) { try reply.get() }
    #expect(await tested.isBonded() == false)
    #expect(await tested.engine.device(Engine.id)?.record.bond == nil)
    await tested.end()
  }

  @Test func simultaneousUnpairRequestsHaveOneOutcome() async throws {
    let tested = try await Self.pairingEngine()
    #expect(try await Self.online(tested) == "hci0")
    let replies = Record<Result<Void, RequestError>>()
    try await tested.engine.unpairTwice(Engine.id) { replies.append($0) }
    _ = try await replies.first(2)
    // bluetoothd does not know the device now: it is as little paired.
    try await tested.engine.unpair(.id(Engine.id)) { replies.append($0) }
    for reply in try await replies.first(3) { #expect(throws: Never.self) { try reply.get() } }
    #expect(await tested.isBonded() == false)
    await tested.end()
  }

  /// An engine whose device is bonded with the first adapter, which was removed.
  private static func engineWithoutItsBondedAdapter(
    strengths: [Int?] = [-50, -70], bondLimit: Duration = .seconds(60)
  ) async throws -> (Engine, mark: Int) {
    let tested = try await pairingEngine(strengths: strengths, bondLimit: bondLimit)
    #expect(try await online(tested) == "hci0")
    let (mark, changes) = (tested.frontEnd.events.count, tested.frontEnd.adapters.count)
    await tested.plug(0, false)
    try await tested.frontEnd.availability(false, from: mark)
    // The device disappears before its adapter.
    _ = try await tested.frontEnd.adapters.first(from: changes, "hci0 absent") { !$0[0].state.isOn }
    return (tested, mark)
  }

  @Test func theBondOfAnAbsentAdapterCannotBeDeleted() async throws {
    let (tested, _) = try await Self.engineWithoutItsBondedAdapter()
    let replies = Record<Result<Void, RequestError>>()
    try await tested.engine.unpair(.id(Engine.id)) { replies.append($0) }
    guard case .failure(let error) = try await replies.first("a reply", where: { _ in true }) else {
      throw Failure("reported as unpaired, though the bond still exists")
    }
    #expect(error.reason == "hci0: the Bluetooth adapter is missing or off")
    #expect(await tested.isBonded() == true)
    await tested.end()
  }

  @Test func pairRequestIgnoresTheBondOfAnAbsentAdapter() async throws {
    let (tested, mark) = try await Self.engineWithoutItsBondedAdapter()
    let replies = Record<Result<PairingProgress, RequestError>>()
    try await tested.engine.pair(.id(Engine.id), passkey: nil) { replies.append($0) }
    #expect(try await Self.online(tested, after: mark) == "hci1")
    #expect(try await replies.first("a reply") { _ in true }.get() == .paired)
    await tested.end()
  }

  @Test func otherAdapterIsUsedWhenTheBondedOneStaysAbsent() async throws {
    let (tested, mark) = try await Self.engineWithoutItsBondedAdapter(bondLimit: .seconds(1))
    #expect(try await Self.online(tested, after: mark) == "hci1")
    await tested.end()
  }

  /// The adapter that has the bond comes back while the request waits for the device to come into range.
  @Test func pairRequestSucceedsWhenTheBondedAdapterReturns() async throws {
    let (tested, mark) = try await Self.engineWithoutItsBondedAdapter(strengths: [-50, nil])
    let replies = Record<Result<PairingProgress, RequestError>>()
    try await tested.engine.pair(.id(Engine.id), passkey: nil) { replies.append($0) }
    #expect(replies.elements.isEmpty, "it is out of range")
    await tested.plug(0, true)
    #expect(try await Self.online(tested, after: mark) == "hci0")
    #expect(try await replies.first("a reply") { _ in true }.get() == .paired)
    await tested.end()
  }
}

extension DeviceManager {
  /// Both in one iteration of the loop.
  fileprivate func unpairTwice(_ id: DeviceID, reply: @escaping UnpairingReply) throws(RequestError) {
    for _ in 0..<2 { try unpair(.id(id), reply: reply) }
  }
}
