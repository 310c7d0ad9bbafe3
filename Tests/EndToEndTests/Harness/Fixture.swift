import Glibc
import Store
import Synchronization
import TestSupport

/// What a ``Fixture`` is made of. Times are short, so that the tests are.
struct Plan: Sendable {
  enum Part: Sendable { case bus, simulator, broker, observer, gateway }
  enum Broker: Sendable {
    case mosquitto, ejabberd
    /// The neighbour's, and its observer.
    case shared
    /// A mosquitto of its own, bridged to the neighbour's in both directions.
    case bridged
  }

  /// The gateway's id.
  var id = Fixture.gatewayID
  var devices = 1
  var strangers = 0
  /// What the micro:bits start with, in ms.
  var period = 50
  /// More options of the simulator.
  var simulator: [String] = []
  /// The members of the configuration's `devices`.
  var entries = #"{"match":{"name_prefix":"BBC micro:bit"}}"#
  /// The members of the configuration's `profiles`.
  var profiles = ""
  /// The configuration's `profiles_directory`.
  var profilesDirectory: String?
  /// More members of the configuration's `gateway`.
  var gateway = ""
  /// The members of the configuration's `bluetooth`.
  var bluetooth = ""
  /// More members of the configuration's `mqtt`.
  var mqtt = ""
  var broker = Broker.mosquitto
  /// Who is let in by mosquitto, as lines of mosquitto.conf; given the fixture's folder.
  var access: @Sendable (_ folder: String) -> String = { _ in "allow_anonymous true" }
  /// Files of the fixture's folder, by name.
  var files: [String: String] = [:]
  /// As whom the observer connects: name and password.
  var observer: (name: String, password: String)?
  /// Whether the gateway reaches its broker by a ``Wire``.
  var isWired = false
  /// What is not there at the start.
  var absent: Set<Part> = []
}

/// The whole path on addresses of its own: a bus, virtual micro:bits, a broker, an observer at the broker, and the
/// real gateway.
final class Fixture: Sendable {
  static let gatewayID = "fixture"

  let plan: Plan
  let folder: TemporaryFolder
  let bus: PrivateBus
  let broker: any TestBroker
  let wire: Wire?
  private struct Residents {
    var simulator: VirtualBlueZ?
    var observer: Observer?
    /// The gateways so far; the last one may run.
    var gateways: [ChildProcess] = []
  }
  private let residents = Mutex(Residents())

  /// How long anything may take that takes a moment, on a machine that has much else to do.
  static let patience = Duration.seconds(60)

  init(_ plan: Plan, beside neighbour: Fixture? = nil) async throws {
    self.plan = plan
    let folder = try TemporaryFolder()
    self.folder = folder
    for (name, text) in plan.files { try folder.write(text, to: name) }
    async let bus = PrivateBus(isStarted: !plan.absent.contains(.bus))
    broker = try await Self.broker(of: plan, in: folder, beside: neighbour)
    wire = plan.isWired ? try Wire(to: broker.port) : nil
    self.bus = try await bus
    if plan.broker == .shared, let observer = try neighbour?.observer {
      adopt(observer)
    } else if plan.absent.contains(.broker) {
      try await broker.kill()
    } else if !plan.absent.contains(.observer) {
      try await startObserver()
    }
    try configure(entries: plan.entries)
  }

  /// In a function of its own: in the initializer, Swift 6.0.3 cannot compile the use of a mutex.
  private func adopt(_ observer: Observer) { residents.withLock { $0.observer = observer } }

  private static func broker(
    of plan: Plan, in folder: TemporaryFolder, beside neighbour: Fixture?
  ) async throws -> any TestBroker {
    switch (plan.broker, neighbour) {
    case (.ejabberd, _): return try await Ejabberd(folder: folder)
    case (.shared, let neighbour?): return neighbour.broker
    case (.bridged, let neighbour?):
      return try await MosquittoBroker(folder: folder) { folder in
        plan.access(folder) + "\n" + Self.bridge(to: neighbour.broker.port)
      }
    case (.mosquitto, _), (.shared, nil), (.bridged, nil):
      return try await MosquittoBroker(folder: folder, configuration: plan.access)
    }
  }

  /// Lines of mosquitto.conf.
  private static func bridge(to port: UInt16) -> String {
    """
    connection neighbour
    address 127.0.0.1:\(port)
    topic microbit/# both 1
    topic homeassistant/# both 1
    restart_timeout 1
    notifications false
    """
  }

  /// Writes the configuration, with other entries than before; the next gateway reads it.
  func configure(entries: String) throws {
    try folder.write(configuration(entries), to: "config.json")
  }

  func begin() async throws {
    if plan.absent.isDisjoint(with: [.bus, .simulator]) { try await startSimulator() }
    if !plan.absent.contains(.gateway) { try startGateway() }
  }

  /// The text of a configuration with these entries.
  func configuration(_ entries: String) -> String {
    let port = wire?.port ?? broker.port
    return """
      {
        "gateway": { "id": "\(plan.id)"\(plan.gateway.isEmpty ? "" : ", ")\(plan.gateway) },
        "bluetooth": {\(plan.bluetooth)},
        "mqtt": { "host": "127.0.0.1", "port": \(port)\(plan.mqtt.isEmpty ? "" : ", ")\(plan.mqtt) },
        "devices": [\(entries)],
        "profiles": {\(plan.profiles)}\(plan.profilesDirectory.map { ", \"profiles_directory\": \"\($0)\"" } ?? "")
      }
      """
  }

  /// Ends all of it, the gateway first; but what it shares.
  func leave() async {
    let (gateway, simulator) = residents.withLock { ($0.gateways.last, $0.simulator) }
    for process in [gateway, simulator?.process].compactMap({ $0 }) {
      process.signal(SIGKILL)
      _ = try? await process.exitStatus(within: .seconds(10))
    }
    bus.kill()
    if plan.broker != .shared { try? await broker.kill() }
  }

  // MARK: The micro:bits

  /// - Parameter changed: options beside those of the plan, which take their place.
  func startSimulator(_ changed: [String]? = nil) async throws {
    let options: [(String, Int)] = [
      ("--devices", plan.devices), ("--decoys", plan.strangers), ("--period", plan.period),
      ("--connect-ms", 20), ("--disconnect-ms", 20), ("--advertise-ms", 20), ("--scan-ms", 200),
      ("--supervision-ms", 50),
    ]
    let simulator = try await VirtualBlueZ(
      bus: bus.address, control: folder.path + "/control",
      options.flatMap { [$0, "\($1)"] } + (changed ?? plan.simulator))
    residents.withLock { $0.simulator = simulator }
  }

  /// Ends it as a crash of bluetoothd would, and resets the micro:bits.
  func killSimulator() async throws {
    let process = try simulator.process
    process.signal(SIGKILL)
    try await process.exitStatus(within: Self.patience)
  }

  var simulator: VirtualBlueZ {
    get throws {
      guard let simulator = residents.withLock({ $0.simulator }) else { throw Failure("no simulator") }
      return simulator
    }
  }

  /// `{device}` of micro:bit `index`, as it is unless it is configured.
  func id(_ index: Int = 0) async throws -> String { try await simulator.device(index).id }

  // MARK: The gateway

  /// The environment in which the gateway finds the bus, and the place for its state.
  var environment: [String: String] {
    [
      "DBUS_SYSTEM_BUS_ADDRESS": bus.address, "STATE_DIRECTORY": folder.path + "/state",
      "RUNTIME_DIRECTORY": folder.path,
    ]
  }

  @discardableResult
  func startGateway(_ options: [String] = [], environment more: [String: String] = [:]) throws -> ChildProcess
  {
    let gateway = try ChildProcess(
      try program("microbit-gateway"), ["run", "--config", folder.path + "/config.json"] + options,
      environment: environment.merging(more) { $1 })
    residents.withLock { $0.gateways.append(gateway) }
    return gateway
  }

  /// The one that was started last.
  var gateway: ChildProcess {
    get throws {
      guard let gateway = residents.withLock({ $0.gateways.last }) else { throw Failure("no gateway") }
      return gateway
    }
  }

  /// Waits for a line of the gateway's log with `text` in it, unless there is one.
  func logged(_ text: String) async throws {
    let gateway = try gateway
    if gateway.text.contains(text) { return }
    _ = try await gateway.line(within: Self.patience) { $0.contains(text) }
  }

  /// The lines of the gateway's log with `text` in them, so far.
  func lines(with text: String) throws -> [Substring] {
    try gateway.text.split(separator: "\n").filter { $0.contains(text) }
  }

  /// Ends the gateway in order; its exit status.
  func stopGateway() async throws -> Int32 {
    let gateway = try gateway
    gateway.signal(SIGTERM)
    return try await gateway.exitStatus(within: Self.patience)
  }

  /// Waits until the state database holds `text` about a device: the gateway writes it when the disk lets it.
  func remembered(_ text: String) async throws {
    let path = folder.path + "/state/\(plan.id).db"
    let deadline = ContinuousClock.now + Self.patience
    while true {
      let records = try? Self.stateRecords(path)
      if records?.values.contains(where: { String(decoding: $0, as: UTF8.self).contains(text) }) == true {
        return
      }
      guard ContinuousClock.now < deadline else {
        throw Failure("\(text) is not remembered: \(records ?? [:])")
      }
      // No event says that a file was written: its writer gets a moment.
      try await Task.sleep(for: .milliseconds(10))
    }
  }

  /// The records of a gateway's state database.
  static func stateRecords(_ path: String) throws -> [String: [UInt8]] {
    try StateStore.records(path: path, schema: Schema(version: 2, migrations: [{ $0 }, { $0 }]))
  }

  /// What `check` prints.
  func check() async throws -> String {
    let check = try ChildProcess(
      try program("microbit-gateway"), ["check", "--config", folder.path + "/config.json"],
      environment: environment)
    try await check.exitStatus(within: Self.patience)
    return check.text
  }

  /// The logs of all gateways of this fixture.
  var logs: String {
    residents.withLock { $0.gateways }.enumerated().map { index, gateway in
      "--- log of gateway \(plan.id) \(index + 1), process \(gateway.pid)\n\(gateway.text)\n"
    }.joined()
  }

  /// Runs `body` before the gateway can notice.
  func freezingGateway(_ body: () async throws -> Void) async throws {
    let gateway = try gateway
    gateway.signal(SIGSTOP)
    defer { gateway.signal(SIGCONT) }
    try await body()
  }

  // MARK: The broker

  /// Starts the broker again. The gateway reaches it after the observer, so none of its messages is missed.
  func restartBroker() async throws {
    try await freezingGateway {
      try await broker.start()
      try await observer.synchronize()
    }
  }

  func startObserver() async throws {
    let observer = try await Observer(
      port: broker.port, username: plan.observer?.name, password: plan.observer?.password)
    residents.withLock { $0.observer = observer }
  }

  var observer: Observer {
    get throws {
      guard let observer = residents.withLock({ $0.observer }) else { throw Failure("no observer") }
      return observer
    }
  }

  /// The first message on `topic`, below the base topic, after `mark` that satisfies `condition`.
  @discardableResult
  func message(
    _ topic: String, after mark: Int = 0,
    where condition: @escaping @Sendable (Observer.Message) -> Bool = { _ in true }
  ) async throws -> Observer.Message {
    try await observer.message("microbit/" + topic, after: mark, within: Self.patience, where: condition)
  }

  /// As ``message(_:after:where:)``, for a payload that is `text`.
  @discardableResult
  func message(_ topic: String, _ text: String, after mark: Int = 0) async throws -> Observer.Message {
    try await message(topic, after: mark) { $0.text == text }
  }

  /// The subscriptions of the gateway are in force, and it has said so.
  @discardableResult
  func bridgeOnline(after mark: Int = 0) async throws -> Observer.Message {
    try await message("bridge/\(plan.id)/state", "online", after: mark)
  }

  @discardableResult
  func online(_ id: String, after mark: Int = 0) async throws -> Observer.Message {
    try await message("\(id)/availability", "online", after: mark)
  }

  @discardableResult
  func offline(_ id: String, after mark: Int = 0) async throws -> Observer.Message {
    try await message("\(id)/availability", "offline", after: mark)
  }

  /// What the broker retains, by topic, below the base topic where it begins with that.
  func retained() async throws -> [String: Observer.Message] {
    let late = try await Observer(
      port: broker.port, username: plan.observer?.name, password: plan.observer?.password)
    var kept: [String: Observer.Message] = [:]
    for message in late.messages where message.retain {
      let isBelow = message.topic.hasPrefix("microbit/")
      kept[String(message.topic.dropFirst(isBelow ? "microbit/".count : 0))] = message
    }
    return kept
  }
}

/// Runs `body` in a fixture of its own, and ends all of it. What it throws shows the gateway's log.
@discardableResult
func withFixture<T: Sendable>(
  _ plan: Plan = Plan(), _ body: @escaping @Sendable (Fixture) async throws -> T
) async throws -> T {
  try await Neighbourhood.shared.enter()
  let result: T
  do {
    let fixture = try await Fixture(plan)
    do {
      try await fixture.begin()
      result = try await body(fixture)
    } catch {
      await fixture.leave()
      throw Failure("\(error)\n\(fixture.logs)")
    }
    await fixture.leave()
  } catch {
    await Neighbourhood.shared.leave()
    throw error
  }
  await Neighbourhood.shared.leave()
  return result
}

/// As ``withFixture(_:_:)``, for what has to be in time, which `body` returns: in one of three fixtures it must be, for
/// the machine may have had much else to do in the others.
func withOneOfThree(
  _ plan: Plan = Plan(), _ body: @escaping @Sendable (Fixture) async throws -> Bool
) async throws {
  for _ in 1...2 {
    if try await withFixture(plan, body) { return }
  }
  try await withFixture(plan) { fixture in
    guard try await body(fixture) else { throw Failure("not in time in any of three fixtures") }
  }
}

/// How many fixtures there are at a time: a machine with two cores has to keep up with them all.
actor Neighbourhood {
  static let shared = Neighbourhood()
  private var free = 8
  private var waiting: [CheckedContinuation<Void, Never>] = []

  func enter() async throws {
    if free > 0 {
      free -= 1
    } else {
      await withCheckedContinuation { waiting.append($0) }
    }
  }

  func leave() {
    if waiting.isEmpty { free += 1 } else { waiting.removeFirst().resume() }
  }
}
