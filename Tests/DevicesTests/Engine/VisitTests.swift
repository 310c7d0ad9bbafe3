import Configuration
import EventLoop
import GATT
import JSON
import Peripherals
import TestSupport
import Testing

@testable import BlueZSimulator
@testable import Devices

/// Devices that are connected on demand, and sequences.
@Suite struct VisitTests {
  private typealias Engine = EngineUnderTest

  private func configuration(
    every: Int? = nil, _ change: (inout Configuration.Device) -> Void = { _ in }
  ) -> Configuration {
    var configuration = Configuration()
    var entry = Configuration.Device(match: .identifier(Engine.address))
    entry.connect = every == nil ? nil : .onDemand
    entry.every = every
    change(&entry)
    configuration.devices = [entry]
    return configuration
  }

  /// Starts an engine whose device was visited and is disconnected again.
  private func visited(
    every: Int = 600, _ configuration: Configuration? = nil,
    _ change: (inout SimulatorOptions) -> Void = { _ in }
  ) async throws -> Engine {
    let tested = try await Engine(configuration ?? self.configuration(every: every), change)
    try await tested.frontEnd.availability(true)
    try await tested.frontEnd.idle()
    return tested
  }

  private func profile(_ properties: [Property]) throws -> Configuration {
    let profile = try Profile(name: "meter", properties: properties)
    var configuration = configuration(every: 600) { $0.profile = "meter" }
    configuration.profiles = [profile]
    return configuration
  }

  private static func property(
    _ name: String, _ uuid: UInt32, _ kind: Property.Kind, _ access: Property.Access,
    _ mode: Property.WriteMode? = nil
  ) -> Property {
    Property(
      name: name, service: BluetoothUUID(short: 0x2220), characteristic: BluetoothUUID(short: uuid),
      kind: kind, access: access, writeMode: mode, codec: .uint8)
  }

  // MARK: Visits

  @Test func isVisitedRegularlyAndStaysOnline() async throws {
    let tested = try await visited(every: 5, configuration(every: 5) { $0.period = 500 })
    let first = tested.frontEnd.events.count
    #expect(await tested.heldPeriod() == 500, "the desired value is applied")
    let again = try await tested.frontEnd.availability(true, from: first)
    #expect(again.lastConnected != nil)
    try await tested.frontEnd.idle(from: first)
    let events = tested.frontEnd.events.elements
    let changes = events.compactMap { event -> Bool? in
      if case .changed(.availability, let device) = event { device.isOnline } else { nil }
    }
    #expect(!changes.contains(false) && changes.count >= 2)
    let readings = events.compactMap { event -> UInt64? in
      if case .reading(Engine.temperature, _, let sequence?) = event { sequence } else { nil }
    }
    #expect(readings == Array(1...UInt64(readings.count)) && readings.count >= 2)
    #expect(await tested.engine.onlineCount == 1)
    await tested.end()
    try await tested.frontEnd.availability(false, from: first)
  }

  @Test func visitAwaitsNotifiedStatesButNotEvents() async throws {
    let configuration = try profile([
      Self.property("level", 0x2221, .state, .notify), Self.property("key", 0x2222, .event, .notify),
    ])
    let tested = try await Engine(configuration) {
      $0.devices = 0
      $0.described = [
        PeripheralDescription(name: "Meter", profile: configuration.profiles[0], address: Engine.address)
      ]
    }
    try await tested.frontEnd.change("subscribing") { $0.session == .subscribing }
    try await tested.notifies(BluetoothUUID(short: 0x2221))
    await tested.notify(BluetoothUUID(short: 0x2221), "07")
    try await tested.frontEnd.reading(0, 7)
    try await tested.frontEnd.availability(true)
    try await tested.frontEnd.idle()
    await tested.end()
  }

  // MARK: Commands between two visits

  @Test func aCommandConnectsAtOnce() async throws {
    let tested = try await visited()
    #expect(await tested.isConnected() == false)
    let outcomes = await tested.command(500)
    #expect(try await outcomes.final() == .applied(actual: 500))
    #expect(outcomes.elements == [.pending, .applied(actual: 500)])
    try await tested.frontEnd.idle(from: tested.frontEnd.events.count - 1)
    await tested.end()
  }

  @Test func commandWithLongTTLWaitsForTheNextVisit() async throws {
    let tested = try await visited()
    let waits = await tested.command(500, ttl: 3600)
    #expect(await tested.engine.device(Engine.id)?.session == .idle)
    #expect(waits.elements == [.pending])
    // A read connects at once, and both are carried out on one link.
    let urgent = await tested.get(Engine.temperature)
    guard case .read = try await urgent.final() else { throw Failure("\(urgent.elements)") }
    #expect(try await waits.final() == .applied(actual: 500))
    await tested.end()
  }

  @Test func eventWithoutTTLConnectsAtOnce() async throws {
    let configuration = try profile([
      Self.property("level", 0x2221, .state, .read), Self.property("add", 0x2222, .event, .write, .request),
    ])
    let tested = try await visited(configuration) {
      $0.devices = 0
      $0.described = [
        PeripheralDescription(name: "Meter", profile: configuration.profiles[0], address: Engine.address)
      ]
    }
    let outcomes = await tested.command(5, 1)
    #expect(try await outcomes.final() == .accepted)
    #expect(try await tested.writes(0x2222) == [[5]])
    await tested.end()
  }

  @Test func manyReadsShareOneLink() async throws {
    let tested = try await visited()
    let before = tested.frontEnd.events.count
    let all = (0..<65).map { _ in Record<Outcome>() }
    try await tested.engine.get("period", of: Engine.id, for: all)
    #expect(
      all.last?.elements == [.failed(reason: "64 requests are waiting for the device already")])
    for outcomes in all.dropLast() {
      guard case .read = try await outcomes.final() else { throw Failure("\(outcomes.elements)") }
    }
    try await tested.frontEnd.idle(from: before)
    let connects = tested.frontEnd.events.elements.dropFirst(before).filter {
      if case .changed(.session, let device) = $0 { device.session == .connecting } else { false }
    }
    #expect(connects.count == 1)
    await tested.end()
  }

  @Test func stopAnswersWaitingRequests() async throws {
    let tested = try await visited()
    await tested.vanish()
    let outcomes = await tested.get(Engine.period)
    await tested.end()
    #expect(outcomes.elements == [.failed(reason: "the gateway is stopping")])
  }

  @Test func deviceVisitedByAnotherGatewayIsOffline() async throws {
    let tested = try await visited()
    let attic = try #require(GatewayID("attic"))
    let before = tested.frontEnd.events.count
    await tested.engine.setOwner(.other(attic), of: Engine.id, isTakenOver: true, hasNewLink: true)
    try await tested.frontEnd.availability(false, from: before)
    #expect(await tested.get(Engine.period).elements == [.failed(reason: "the device is offline")])
    #expect(await tested.engine.device(Engine.id)?.session == .idle)
    await tested.end()
  }

  @Test func theEndOfAVisitDoesNotCutOffAnInspection() async throws {
    let tested = try await visited { $0.timing.attribute = .milliseconds(100) }
    let inspection = Task { try await tested.engine.inspect(.id(Engine.id)) }
    #expect(try await tested.command(500).final() == .applied(actual: 500))
    let inspected = try await inspection.value
    #expect(inspected.unread == nil && !inspected.items.isEmpty)
    try await tested.frontEnd.idle(from: tested.frontEnd.events.count - 1)
    await tested.end()
  }

  @Test func whatWaitsForALinkFailsWhenAnotherGatewayVisits() async throws {
    let tested = try await visited()
    await tested.vanish()
    let (read, replies) = (await tested.get(Engine.period), Record<Result<PairingProgress, RequestError>>())
    try await tested.engine.pair(.id(Engine.id), passkey: nil) { replies.append($0) }
    let attic = try #require(GatewayID("attic"))
    await tested.engine.setOwner(.other(attic), of: Engine.id, isTakenOver: true, hasNewLink: true)
    let reason = "another gateway has taken the device over"
    #expect(read.elements == [.failed(reason: reason)])
    #expect(replies.elements == [.failure(RequestError(reason))])
    // It is not paired with when it is visited here again.
    await tested.engine.setOwner(.this, of: Engine.id, isTakenOver: false)
    await tested.comeBack()
    _ = await tested.command(500)
    try await tested.frontEnd.availability(true, from: tested.frontEnd.events.count)
    #expect(await tested.isBonded() == false)
    await tested.end()
  }

  /// It is online and has made no visit, or is offline.
  @Test(arguments: [true, false])
  func deviceThatAnotherGatewayDoesNotVisitIsVisited(isTakenOver: Bool) async throws {
    let tested = try await Engine(configuration(every: 600), isInRange: false)
    let attic = try #require(GatewayID("attic"))
    await tested.engine.setOwner(.other(attic), of: Engine.id, isTakenOver: isTakenOver)
    #expect(await tested.engine.device(Engine.id)?.session == .absent)
    await tested.comeBack()
    try await tested.frontEnd.availability(true)
    await tested.end()
  }

  // MARK: Options

  @Test func requestChangesTheConnectOption() async throws {
    let tested = try await Engine(configuration())
    try await tested.frontEnd.availability(true)
    var before = tested.frontEnd.events.count
    await #expect(
      throws: RequestError(
        .invalid,
        "options.every: only a device that is connected on demand has an interval "
          + #"(add "connect": "on_demand")"#)
    ) { try await tested.engine.change(Engine.id, ["every": 60]) }
    _ = try await tested.engine.change(Engine.id, ["connect": "on_demand", "every": 60])
    try await tested.frontEnd.idle(from: before)
    before = tested.frontEnd.events.count
    _ = try await tested.engine.change(Engine.id, ["connect": .null, "every": .null])
    try await tested.frontEnd.availability(true, from: before)
    #expect(await tested.engine.device(Engine.id)?.session == .live)
    await tested.end()
  }

  /// Its `every` has no effect then.
  @Test("A device that config.json no longer connects on demand can be renamed, and given other options")
  func intervalThatNoLongerHasAnEffect() async throws {
    let tested = try await Engine(configuration(every: 600))
    try await tested.frontEnd.availability(true)
    _ = try await tested.engine.change(Engine.id, ["every": 60])
    await tested.engine.configure(configuration())
    let renamed = try await tested.engine.rename(Engine.id, name: "Window", to: DeviceID("window"))
    #expect(renamed.description == "window")
    let device = try #require(await tested.engine.device(renamed))
    #expect(device.name == "Window")
    _ = try await tested.engine.change(renamed, ["area": "Hall"])
    await #expect(
      throws: RequestError(
        .invalid,
        "options.every: only a device that is connected on demand has an interval "
          + #"(add "connect": "on_demand")"#)
    ) { try await tested.engine.change(renamed, ["every": 30]) }
    await tested.end()
  }

  // MARK: Sequences

  @Test(arguments: [nil, 600] as [Int?])
  func aSequenceIsCarriedOutInOrder(every: Int?) async throws {
    let tested = try await Engine(configuration(every: every)) { $0.period = 300 }
    try await tested.frontEnd.availability(true)
    if every != nil { try await tested.frontEnd.idle() }
    let before = tested.frontEnd.events.count
    let results = try await tested.engine.sequence(
      [
        SequenceStep("period"), SequenceStep("period", 700), SequenceStep("period"),
        SequenceStep("period", "500"),
      ], on: Engine.id, within: 60)
    #expect(
      results.map(\.outcome) == [
        .read(actual: 300), .applied(actual: 700), .read(actual: 700), .applied(actual: 500),
      ])
    #expect(results.map(\.requested) == [nil, 700, nil, 500])
    #expect(await tested.engine.device(Engine.id)?.desired == ["period": 500])
    if every != nil { try await tested.frontEnd.idle(from: before) }
    await tested.end()
  }

  @Test func aSequenceStopsAtTheFirstFailure() async throws {
    let configuration = try profile([
      Self.property("level", 0x2221, .state, [.read, .write], .confirm),
      Self.property("gone", 0x2229, .state, [.read, .write], .confirm),
    ])
    let offered = try Profile(name: "meter", properties: [configuration.profiles[0].properties[0]])
    let tested = try await visited(configuration) {
      $0.devices = 0
      $0.described = [
        PeripheralDescription(name: "Meter", profile: offered, address: Engine.address)
      ]
    }
    let results = try await tested.engine.sequence(
      [
        SequenceStep("level", 7), SequenceStep("gone"), SequenceStep("level", 8),
      ], on: Engine.id, within: 60)
    #expect(
      results.map(\.outcome) == [
        .applied(actual: 7),
        .failed(reason: "the device does not offer gone: its service 2220 has no characteristic 2229"),
      ])
    #expect(results.map(\.outcome.isSuccess) == [true, false])
    #expect(try await tested.writes(0x2221) == [[7]])
    await tested.end()
  }

  private static let refused: [(step: SequenceStep, reason: String)] = [
    (
      SequenceStep("temprature"),
      "steps[1]: c5a1b2c3d4e5 has no property temprature: did you mean temperature?"
    ),
    (
      SequenceStep("button_a"),
      "steps[1]: button_a cannot be read, as it is an event: watch shows it when it happens"
    ),
    (SequenceStep("temperature", 1), "steps[1]: temperature cannot be set"),
    (
      SequenceStep("period", "fast"),
      #"steps[1]: "fast" is not a whole number in plain digits"#
    ),
    (
      SequenceStep("period", 10),
      "steps[1]: 10 is below the smallest period, 20 ms"
    ),
  ]

  @Test func aSequenceIsCheckedBeforeItBegins() async throws {
    let tested = try await visited(
      configuration(every: 600) { $0.properties = ["temperature", "period", "button_a"] }
    ) { $0.services = [.temperature, .buttons] }
    let held = await tested.heldPeriod()
    for (step, reason) in Self.refused {
      await #expect(throws: RequestError(.invalid, reason)) {
        try await tested.engine.sequence(
          [SequenceStep("period", 900), step], on: Engine.id, within: 60)
      }
    }
    await #expect(throws: RequestError(.notFound, "no device is called nobody")) {
      try await tested.engine.sequence([], on: try DeviceID("nobody"), within: 60)
    }
    #expect(await tested.heldPeriod() == held)
    await tested.end()
  }

  @Test func sequenceForAnOfflineDeviceFails() async throws {
    let tested = try await Engine(configuration(), isInRange: false)
    await #expect(throws: RequestError("c5a1b2c3d4e5: the device is offline")) {
      try await tested.engine.sequence([SequenceStep("period")], on: Engine.id, within: 60)
    }
    await tested.end()
  }

  @Test func sequenceTimesOutAndOnlyOneRunsAtATime() async throws {
    let tested = try await visited()
    let mark = tested.frontEnd.events.count
    await tested.vanish()
    let first = Task {
      try await tested.engine.sequence([SequenceStep("period")], on: Engine.id, within: 20)
    }
    try await tested.frontEnd.change(from: mark, "absent or connecting") {
      $0.session == .absent || $0.session == .connecting
    }
    await #expect(throws: RequestError("another sequence of c5a1b2c3d4e5 is being carried out")) {
      try await tested.engine.sequence([SequenceStep("period")], on: Engine.id, within: 20)
    }
    #expect(await tested.engine.isUrgent(Engine.id))
    await #expect(throws: RequestError.self) { try await first.value }
    #expect(await !tested.engine.isUrgent(Engine.id), "no longer than the sequence waits")
    // The timeout does not affect the next sequence.
    await tested.comeBack()
    let results = try await tested.engine.sequence(
      [SequenceStep("period")], on: Engine.id, within: 60)
    #expect(results.map(\.outcome.isSuccess) == [true])
    try await tested.frontEnd.idle(from: tested.frontEnd.events.count - 1)
    await tested.end()
  }
}

extension DeviceManager {
  /// All in one loop iteration.
  fileprivate func get(_ property: String, of id: DeviceID, for all: [Record<Outcome>]) throws {
    for outcomes in all { try get(property, of: id) { outcomes.append($0.outcome) } }
  }
}

extension RecordingFrontEnd {
  /// The visit is over, and the link has ended.
  func idle(from start: Int = 0) async throws {
    try await change(from: start, "idle") { $0.session == .idle }
  }
}
