import Configuration
import DBus
import EventLoop
import GATT
import JSON
import Log
import Store
import TestSupport
import Testing

@testable import BlueZSimulator
@testable import Devices

/// The engine against a simulated bluetoothd on a private bus, with a front end that records the calls it gets.
///
/// There is no broker.
final class EngineUnderTest: Sendable {
  static let address = BluetoothAddress(truncating: 0xC5A1_B2C3_D4E5)
  static let id = DeviceID(address)
  static let gateway = GatewayID(hostName: "here")
  static let temperature = 0
  static let period = 1

  let engine: DeviceManager
  let frontEnd: RecordingFrontEnd
  private let bus: PrivateBus
  /// The names of properties of bluetoothd's objects that became true.
  private let becameTrue: Record<String>
  private let listener: DBusConnection
  private let simulator: Simulator
  private let state: StateDatabase
  private let running: Task<Void, Never>

  /// - Parameters:
  ///   - path: of the state database; nil: in memory.
  ///   - change: of the simulated world, which has one micro:bit at ``address``.
  ///   - isInRange: whether the micro:bit is in range from the start.
  ///   - absentAdapter: an adapter that is absent at the start.
  init(
    _ configuration: Configuration = Configuration(), state path: String? = nil, isInRange: Bool = true,
    absentAdapter: Int? = nil, bondLimit: Duration = .seconds(60), servicesLimit: Duration = .seconds(3),
    capacity: Int = DeviceManager.capacity,
    _ change: (inout SimulatorOptions) -> Void = { _ in }
  ) async throws {
    var options = SimulatorOptions()
    options.devices = 1
    options.addresses = [0: Self.address.description]
    options.period = 200
    options.timing.connect = .milliseconds(16)
    options.timing.disconnect = .milliseconds(20)
    options.timing.advertising = .milliseconds(5)
    options.timing.supervision = .milliseconds(10)
    change(&options)
    bus = try await PrivateBus()
    let becameTrue = Record<String>()
    self.becameTrue = becameTrue
    listener = try await DBusConnection.open(bus.address) { event in
      guard case .signal(let signal) = event, signal.arguments.count > 1 else { return }
      for (name, value) in signal.arguments[1].map ?? [:] where value.bool == true { becameTrue.append(name) }
    }
    try await listener.addMatch(["member": "PropertiesChanged"])
    simulator = try await Simulator.start(options, address: bus.address)
    if !isInRange { _ = await simulator.control(ControlRequest(op: .vanish, i: 0)) }
    if let absentAdapter {
      _ = await simulator.control(ControlRequest(op: .plug, adapter: absentAdapter, on: false))
    }
    state = await StateDatabase(path: path)
    let engine = await DeviceManager(
      configuration, gateway: Self.gateway, state: state.section("devices"),
      adapters: state.section("adapters"), bus: bus.address,
      bondLimit: bondLimit, servicesLimit: servicesLimit, capacity: capacity)
    let frontEnd = RecordingFrontEnd()
    (self.engine, self.frontEnd) = (engine, frontEnd)
    await frontEnd.follow(engine)
    await engine.start()
    running = loop.task { await engine.run() }
  }

  deinit {
    running.cancel()
  }

  /// Stops the engine as the gateway does.
  func end() async {
    await engine.endSessions()
    await engine.stop(within: .seconds(3))
    await state.close(within: patience)
  }

  // MARK: Commands and requests

  /// Executes a command, and records its outcomes in order; an error is recorded as a rejection.
  func command(
    _ value: Value, _ property: Int = EngineUnderTest.period, of id: DeviceID = EngineUnderTest.id,
    ttl: Int? = nil, sender: JSONValue? = nil
  ) async -> Record<Outcome> {
    let outcomes = Record<Outcome>()
    let (name, codec) = await nameAndCodec(property, of: id)
    let command = Command(id, name, codec.json(value), ttl: ttl, sender: sender)
    do throws(RequestError) {
      try await engine.execute(command) { outcomes.append($0.outcome) }
    } catch {
      outcomes.append(.rejected(reason: error.reason))
    }
    return outcomes
  }

  /// Sets the period.
  @LoopActor func execute(_ period: Int, reply: @escaping CommandReply) throws {
    try engine.execute(Command(Self.id, "period", .integer(period)), reply: reply)
  }

  func get(_ property: Int, of id: DeviceID = EngineUnderTest.id) async -> Record<Outcome> {
    let outcomes = Record<Outcome>()
    let (name, _) = await nameAndCodec(property, of: id)
    do throws(RequestError) {
      try await engine.get(name, of: id) { outcomes.append($0.outcome) }
    } catch {
      outcomes.append(.rejected(reason: error.reason))
    }
    return outcomes
  }

  private func nameAndCodec(_ property: Int, of id: DeviceID) async -> (String, Codec) {
    let property = await engine.device(id)?.profile.properties[property] ?? .microbitPeriod
    return (property.name, property.codec)
  }

  // MARK: The peripheral

  func vanish(_ index: Int = 0) async { _ = await simulator.control(ControlRequest(op: .vanish, i: index)) }
  func comeBack(_ index: Int = 0) async { _ = await simulator.control(ControlRequest(op: .return, i: index)) }
  /// The link stays, but nothing is notified any more.
  func silence() async { _ = await simulator.control(ControlRequest(op: .silent, i: 0, on: true)) }
  /// Requests for notifications fail with this error code of ATT.
  func refuseSubscriptions(_ code: Int) async {
    _ = await simulator.control(
      ControlRequest(op: .subscription, i: 0, fault: .error, code: code, count: 100))
  }
  func hangUp() async { _ = await simulator.control(ControlRequest(op: .disconnect, i: 0)) }
  /// An adapter is added or removed.
  func plug(_ adapter: Int, _ on: Bool, as name: String? = nil) async {
    _ = await simulator.control(ControlRequest(op: .plug, adapter: adapter, on: on, name: name))
  }
  /// The kernel lets the adapter scan, or refuses it.
  func scans(_ on: Bool) async { _ = await simulator.control(ControlRequest(op: .scan, on: on)) }
  /// The peripheral has a service, or no longer.
  func serve(_ service: BluetoothUUID, _ isOwnerOnline: Bool) async {
    var request = ControlRequest(op: .serve, i: 0, on: isOwnerOnline)
    request.service = service
    _ = await simulator.control(request)
  }
  /// A characteristic holds and notifies these bytes.
  @LoopActor func notify(_ characteristic: BluetoothUUID, _ hex: String, by index: Int = 0) async {
    var request = ControlRequest(op: .value, i: index, bytes: Hexadecimal.bytes(hex))
    request.characteristic = characteristic
    _ = await simulator.control(request)
  }
  /// What a peripheral advertises as the data of a service.
  func advertise(_ bytes: [UInt8], of service: BluetoothUUID, by index: Int) async {
    var request = ControlRequest(op: .advertise, i: index, bytes: bytes)
    request.service = service
    _ = await simulator.control(request)
  }
  /// The program adds to its data log.
  func log(_ text: String, afterClearing isCleared: Bool = false) async {
    var request = ControlRequest(op: .log, i: 0, on: !isCleared)
    request.bytes = Array(text.utf8)
    _ = await simulator.control(request)
  }
  /// What the peripheral calls itself from now on.
  func rename(to name: String) async {
    var request = ControlRequest(op: .name, i: 0)
    request.name = name
    _ = await simulator.control(request)
  }
  /// How well the adapter receives a peripheral from now on, in dBm.
  func receive(_ index: Int, at strength: Int) async {
    _ = await simulator.control(ControlRequest(op: .strength, i: index, v: strength))
  }
  /// The micro:bit's temperature, which it notifies in each period.
  func measure(_ temperature: UInt8) async {
    _ = await simulator.control(ControlRequest(op: .value, i: 0, bytes: [temperature]))
  }
  /// The period that the micro:bit itself holds.
  func heldPeriod() async -> Int? {
    await microbit?["period"]?.integer
  }

  /// The state of the first peripheral itself.
  private var microbit: JSONValue? {
    get async {
      guard case .array(let states) = await simulator.control(ControlRequest(op: .list)) else { return nil }
      return states.first
    }
  }

  func isConnected() async -> Bool? { await microbit.map { $0["connected"] == .bool(true) } }
  /// Whether any adapter has a bond with the peripheral.
  func isBonded() async -> Bool? { await microbit.map { $0["bonded"] == .bool(true) } }

  /// Waits until a characteristic has a subscriber.
  func notifies(_ characteristic: BluetoothUUID) async throws {
    repeat { try await becomesTrue("Notifying") } while await !isSubscribed(characteristic)
  }

  private func isSubscribed(_ characteristic: BluetoothUUID) async -> Bool {
    guard case .array(let subscribed) = await microbit?["subscribed"] else { return false }
    return subscribed.contains(.string(characteristic.description))
  }

  /// Waits until a property of one of bluetoothd's objects becomes true, the next time.
  func becomesTrue(_ property: String) async throws {
    try await becameTrue.next(property) { $0 == property ? () : nil }
  }

  /// What was written to a characteristic, in order.
  func writes(_ characteristic: UInt32) async throws -> [[UInt8]] {
    try await writes(BluetoothUUID(short: characteristic))
  }
  func writes(_ characteristic: BluetoothUUID) async throws -> [[UInt8]] {
    var request = ControlRequest(op: .writes)
    request.characteristic = characteristic
    guard case .array(let writes) = await simulator.control(request)["writes"] else {
      throw Failure("no writes")
    }
    return writes.compactMap { $0.text.flatMap { Hexadecimal.bytes($0) } }
  }

  // MARK: State

  /// What a scan has found as soon as there are so many.
  @LoopActor func scan(finding count: Int) async throws -> [BluetoothAddress] {
    let scan = try engine.beginScan()
    try await eventually("\(count) are found") { await scan.peripherals.count == count }
    engine.end(scan)
    return scan.peripherals.map(\.address)
  }

  @LoopActor func isAnonymous(_ id: DeviceID) -> Bool? { engine.registry.byID[id]?.isAnonymous }

  @LoopActor func hasObject(of address: BluetoothAddress) -> Bool {
    engine.registry.byPeripheral.values.contains { $0.address == address }
  }

  /// Writes a record into a state database for an engine that is started later.
  @LoopActor static func store(_ record: DeviceRecord, in path: String) async {
    let state = StateDatabase(path: path)
    state.section("devices").put(record.address.description, record.bytes)
    await state.close(within: patience)
  }

  static func stored(in path: String) throws -> [DeviceRecord] {
    let sections = try StateDatabase.sections(path: path)
    let records = DeviceRecord.records(sections["devices"] ?? [:])
    return records.values.sorted { $0.address.value < $1.address.value }
  }
}

/// Records the engine's calls.
@LoopActor final class RecordingFrontEnd: FrontEnd {
  enum Event: Sendable, Equatable {
    case attached(DeviceDescription)
    case reading(Int, Value, sequence: UInt64?)
    /// Of a value that the program names itself.
    case value(String, Value)
    case changed(DeviceChange, DeviceDescription)
    case logged(LogRow, measured: Timestamp?)
    /// A command of an earlier run.
    case answer(String, Outcome, sender: JSONValue)
    case detached(DetachReason)
    case orphan(DeviceID, BluetoothAddress, offered: Set<String>)
  }

  nonisolated let events = Record<Event>()
  /// What becomes of commands, as observers are told; nil: one begins.
  nonisolated let outcomes = Record<Outcome?>()
  /// The adapters at each change that the engine reported.
  nonisolated let adapters = Record<[AdapterStatus]>()
  weak var engine: DeviceManager?
  /// Ids of devices that only another gateway knows.
  var usedElsewhere: Set<DeviceID> = []

  func isUsedElsewhere(_ id: DeviceID) -> Bool { usedElsewhere.contains(id) }

  func follow(_ engine: DeviceManager) {
    self.engine = engine
    engine.add(self)
  }

  func attach(_ device: DeviceDescription) -> (any DeviceObserver)? {
    events.append(.attached(device))
    return Observer(self, device.address)
  }
  func engineChanged() {
    if let engine { adapters.append(engine.adapters) }
  }
  func foundOrphan(_ id: DeviceID, of address: BluetoothAddress, offered: Set<String>) {
    events.append(.orphan(id, address, offered: offered))
  }

  private final class Observer: DeviceObserver {
    let frontEnd: RecordingFrontEnd
    let address: BluetoothAddress
    var events: Record<Event> { frontEnd.events }
    init(_ frontEnd: RecordingFrontEnd, _ address: BluetoothAddress) {
      (self.frontEnd, self.address) = (frontEnd, address)
    }
    func reported(_ reading: Reading) {
      events.append(
        reading.key.map { .value($0.description, reading.value) }
          ?? .reading(reading.property, reading.value, sequence: reading.sequence))
    }
    func logged(_ row: LogRow, measured: Timestamp?) { events.append(.logged(row, measured: measured)) }
    func changed(_ change: DeviceChange, _ device: DeviceDescription) {
      events.append(.changed(change, device))
    }
    func commandChanged(_ value: Value, for property: String, _ outcome: Outcome?) {
      frontEnd.outcomes.append(outcome)
    }
    func answer(_ result: CommandResult, to sender: JSONValue) {
      events.append(.answer(result.property, result.outcome, sender: sender))
    }
    /// This front end has published nothing under the device's id.
    func detach(_ reason: DetachReason) {
      events.append(.detached(reason))
      if reason == .removed { frontEnd.engine?.storeID(of: address) }
    }
  }

  // MARK: Waiting

  func adapterIsOn() async throws {
    _ = try await adapters.first(within: patience, "an adapter that is on") { $0[0].state.isOn }
  }

  /// The first event from place `start` on for which `condition` holds.
  @discardableResult
  func event(
    from start: Int = 0, _ what: String, where condition: @escaping @Sendable (Event) -> Bool
  ) async throws -> Event {
    try await events.first(from: start, within: patience, what, where: condition)
  }

  /// - Returns: the device's description at that time.
  @discardableResult
  func availability(_ isOnline: Bool, from start: Int = 0) async throws -> DeviceDescription {
    let event = try await event(from: start, isOnline ? "online" : "offline") {
      if case .changed(.availability, let device) = $0 { device.isOnline == isOnline } else { false }
    }
    guard case .changed(_, let device) = event else { throw Failure("no description") }
    return device
  }

  func reading(
    _ property: Int, _ value: Value, sequence: UInt64?? = .none, from start: Int = 0
  ) async throws {
    try await event(from: start, "a reading \(value)") {
      guard case .reading(property, value, let number) = $0 else { return false }
      return sequence.map { $0 == number } ?? true
    }
  }

  /// Waits for a reading, and checks the numbers of all that there were in this run.
  func noSequenceNumberIsGivenTwice(from start: Int) async throws {
    try await event(from: start, "a reading") {
      if case .reading(_, _, .some) = $0 { true } else { false }
    }
    let numbers = events.elements.compactMap { event -> UInt64? in
      if case .reading(_, _, let number) = event { number } else { nil }
    }
    #expect(numbers == Array(1...UInt64(numbers.count)))
  }

  func detached(_ reason: DetachReason) async throws {
    try await event("detached: \(reason)") { $0 == .detached(reason) }
  }

  /// Waits for a change that leaves a description for which `condition` holds.
  func change(
    from start: Int = 0, _ what: String, where condition: @escaping @Sendable (DeviceDescription) -> Bool
  ) async throws {
    try await event(from: start, what) {
      if case .changed(_, let device) = $0 { condition(device) } else { false }
    }
  }
}

extension Record<Outcome> {
  /// The final outcome, and before it at most one that is pending.
  func final() async throws -> Outcome {
    try await first(within: patience, "a final outcome") { $0 != .pending }
  }
  func pending() async throws { _ = try await first(within: patience, "pending") { $0 == .pending } }
}
