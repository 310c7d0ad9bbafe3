import Glibc
import Store
import Synchronization
import TestSupport

/// The whole path from the micro:bits to the broker: a private bus, virtual micro:bits, a broker, an observer at the
/// broker, and the real gateway.
final class Fixture: Sendable {
  static let gatewayID = "fixture"

  let plan: Plan
  let folder: TemporaryFolder
  let bus: PrivateBus
  let broker: any TestBroker
  let proxy: BrokerProxy?
  private struct Running {
    var simulator: VirtualBlueZ?
    var observer: Observer?
    /// The gateways so far; the last one may run.
    var gateways: [ChildProcess] = []
  }
  private let running = Mutex(Running())

  static let patience = TestSupport.patience

  init(_ plan: Plan, beside first: Fixture? = nil) async throws {
    self.plan = plan
    let folder = try TemporaryFolder()
    self.folder = folder
    for (name, text) in plan.files { try folder.write(text, to: name) }
    async let bus = PrivateBus(isStarted: !plan.absent.contains(.bus))
    broker = try await Self.broker(of: plan, in: folder, beside: first)
    proxy = plan.usesProxy ? try BrokerProxy(to: broker.port) : nil
    self.bus = try await bus
    if case .shared = plan.broker, let observer = try first?.observer {
      share(observer)
    } else if plan.absent.contains(.broker) {
      try await broker.kill()
    } else if !plan.absent.contains(.observer) {
      try await startObserver()
    }
    try configure(entries: plan.entries)
  }

  /// A separate function: in the initializer, Swift 6.0.3 cannot compile the use of a mutex.
  private func share(_ observer: Observer) { running.withLock { $0.observer = observer } }

  private static func broker(
    of plan: Plan, in folder: TemporaryFolder, beside first: Fixture?
  ) async throws -> any TestBroker {
    switch (plan.broker, first) {
    case (.ejabberd, _): return try await Ejabberd(folder: folder)
    case (.nodes(let nodes), _): return nodes[0]
    case (.shared, let first?): return first.broker
    case (.bridged, let first?):
      return try await MosquittoBroker(folder: folder) { folder in
        plan.access(folder) + "\n" + Self.bridge(to: first.broker.port)
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

  /// Writes the configuration with these entries; the next gateway or a reload reads it.
  func configure(entries: String) throws {
    try folder.write(configuration(entries), to: "config.json")
  }

  func begin() async throws {
    if plan.absent.isDisjoint(with: [.bus, .simulator]) { try await startSimulator() }
    if !plan.absent.contains(.gateway) { try startGateway() }
  }

  /// The text of a configuration with these entries.
  func configuration(_ entries: String) -> String {
    let port = proxy?.port ?? broker.port
    let bluetooth = plan.bluetooth.isEmpty ? #""links": \#(max(7, plan.devices))"# : plan.bluetooth
    return """
      {
        "gateway": { "id": "\(plan.id)"\(plan.gateway.isEmpty ? "" : ", ")\(plan.gateway) },
        "bluetooth": {\(bluetooth)},
        "mqtt": { \(hosts ?? #""host": "127.0.0.1", "port": \#(port)"#)\(plan.mqtt.isEmpty ? "" : ", ")\(plan.mqtt) },
        "devices": [\(entries)],\(plan.more.isEmpty ? "" : plan.more + ",")
        "profiles": {\(plan.profiles)}\(plan.profilesDirectory.map { ", \"profiles_directory\": \"\($0)\"" } ?? "")
      }
      """
  }

  /// The key of `mqtt` for the nodes of a cluster.
  private var hosts: String? {
    guard case .nodes(let nodes) = plan.broker else { return nil }
    return #""hosts": [\#(nodes.map { "\"127.0.0.1:\($0.port)\"" }.joined(separator: ", "))]"#
  }

  /// Ends all processes, the gateway first, except a shared broker.
  func tearDown() async {
    let (gateway, simulator) = running.withLock { ($0.gateways.last, $0.simulator) }
    for process in [gateway, simulator?.process].compactMap({ $0 }) {
      process.signal(SIGKILL)
      _ = try? await process.exitStatus(within: .seconds(10))
    }
    bus.kill()
    switch plan.broker {
    case .shared, .nodes: break
    case .mosquitto, .ejabberd, .bridged: try? await broker.kill()
    }
  }

  // MARK: The micro:bits

  /// - Parameter options: replace the options of the plan.
  func startSimulator(_ options: [String]? = nil) async throws {
    let defaults: [(String, Int)] = [
      ("--devices", plan.devices), ("--decoys", plan.decoys), ("--period", plan.period),
      ("--connect-ms", 20), ("--disconnect-ms", 20), ("--advertise-ms", 20), ("--scan-ms", 200),
      ("--supervision-ms", 50),
    ]
    let simulator = try await VirtualBlueZ(
      bus: bus.address, control: folder.path + "/control",
      defaults.flatMap { [$0, "\($1)"] } + (options ?? plan.simulator))
    running.withLock { $0.simulator = simulator }
  }

  /// For a plan without a simulator: its micro:bits come when the gateway is at the broker, so that each reading is published
  /// at once.
  func startSimulatorLast() async throws {
    try await bridgeOnline()
    try await startSimulator()
  }

  /// Ends it like a crash of bluetoothd. Its micro:bits lose their state.
  func killSimulator() async throws {
    let process = try simulator.process
    process.signal(SIGKILL)
    try await process.exitStatus(within: Self.patience)
  }

  var simulator: VirtualBlueZ {
    get throws {
      guard let simulator = running.withLock({ $0.simulator }) else { throw Failure("no simulator") }
      return simulator
    }
  }

  /// The default `{device}` of micro:bit `index`, made from its address.
  func id(_ index: Int = 0) async throws -> String { try await simulator.device(index).id }

  // MARK: The gateway

  /// Tells the gateway the bus, and the folders for its state and its socket.
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
    running.withLock { $0.gateways.append(gateway) }
    return gateway
  }

  /// The gateway that was started last.
  var gateway: ChildProcess {
    get throws {
      guard let gateway = running.withLock({ $0.gateways.last }) else { throw Failure("no gateway") }
      return gateway
    }
  }

  /// Waits until the gateway has logged a line that contains `text`.
  func logged(_ text: String) async throws {
    let gateway = try gateway
    if gateway.text.contains(text) { return }
    _ = try await gateway.line(within: Self.patience) { $0.contains(text) }
  }

  /// The lines of the gateway's log so far that contain `text`.
  func lines(with text: String) throws -> [Substring] {
    try gateway.text.split(separator: "\n").filter { $0.contains(text) }
  }

  /// Ends the gateway by SIGTERM; returns its exit status. What it has published has arrived then, unless the broker is dead.
  func stopGateway() async throws -> Int32 {
    let status = try await endGateway(SIGTERM)
    if broker.process.isRunning { try await running.withLock { $0.observer }?.synchronize() }
    return status
  }

  /// Ends the gateway by SIGKILL. What it has published has arrived then, and the will, unless the broker is dead.
  func killGateway() async throws {
    let mark = try observer.mark
    _ = try await endGateway(SIGKILL)
    if broker.process.isRunning { try await message("bridge/\(plan.id)/state", "offline", after: mark) }
  }

  private func endGateway(_ signal: Int32) async throws -> Int32 {
    let gateway = try gateway
    gateway.signal(signal)
    return try await gateway.exitStatus(within: Self.patience)
  }

  /// Waits until a record of the state database contains `text`: the gateway writes it asynchronously.
  func stored(_ text: String) async throws {
    let path = folder.path + "/state/\(plan.id).db"
    let deadline = ContinuousClock.now + Self.patience
    while true {
      let records = try? StateDatabase.records(path: path)
      if records?.values.contains(where: { String(decoding: $0, as: UTF8.self).contains(text) }) == true {
        return
      }
      guard ContinuousClock.now < deadline else {
        throw Failure("\(text) is not in the state database: \(records ?? [:])")
      }
      // There is no notification of the write, so the file is polled.
      try await Task.sleep(for: .milliseconds(10))
    }
  }

  /// The output of `check`.
  func check() async throws -> String { try await command(["check"]).text }

  /// The logs of all gateways of this fixture.
  var logs: String {
    running.withLock { $0.gateways }.enumerated().map { index, gateway in
      "--- log of gateway \(plan.id) \(index + 1), process \(gateway.pid)\n\(gateway.text)\n"
    }.joined()
  }

  /// Runs `body` while the gateway's process is stopped.
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

  /// Kills the broker when the observer has received every message that the broker has acknowledged. What it had only
  /// written to the observer's socket would be lost with it, and the gateway could not know.
  func killBroker() async throws {
    try await freezingGateway {
      // The broker reads a message of each client in turn, so one that waits comes between two of the observer's.
      var last = 0
      repeat {
        last = try observer.mark
        for _ in 0..<2 { try await observer.synchronize() }
      } while try observer.mark > last + 2
      try await broker.kill()
    }
  }

  func startObserver() async throws {
    let observer = try await Observer(
      port: broker.port, username: plan.observer?.name, password: plan.observer?.password)
    running.withLock { $0.observer = observer }
  }

  var observer: Observer {
    get throws {
      guard let observer = running.withLock({ $0.observer }) else { throw Failure("no observer") }
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

  /// Waits until the gateway has published that it is online: then its subscriptions are active.
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

  /// The retained messages at the broker by topic, without the base topic if it begins with that.
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

/// Runs `body` in a fixture of its own, and ends all its processes. Errors include the gateway's log.
@discardableResult
func withFixture<T: Sendable>(
  _ plan: Plan = Plan(), _ body: @escaping @Sendable (Fixture) async throws -> T
) async throws -> T {
  try await FixtureSlots.shared.acquire(first: plan.isLong)
  let result: T
  do {
    let fixture = try await Fixture(plan)
    do {
      try await fixture.begin()
      result = try await body(fixture)
    } catch {
      await fixture.tearDown()
      throw Failure("\(error)\n\(fixture.logs)")
    }
    await fixture.tearDown()
  } catch {
    await FixtureSlots.shared.release()
    throw error
  }
  await FixtureSlots.shared.release()
  return result
}

/// As ``withFixture(_:_:)``, for a `body` that returns whether a time limit was met: one of three attempts must meet
/// it, because the machine may be busy.
func withThreeAttempts(
  _ plan: Plan = Plan(), _ body: @escaping @Sendable (Fixture) async throws -> Bool
) async throws {
  for _ in 1...2 {
    if try await withFixture(plan, body) { return }
  }
  try await withFixture(plan) { fixture in
    guard try await body(fixture) else {
      throw Failure("the time limit was exceeded in each of three attempts")
    }
  }
}

/// Limits the number of fixtures at a time, for machines with two cores.
actor FixtureSlots {
  static let shared = FixtureSlots()
  private var free = 12
  private var waiting: [CheckedContinuation<Void, Never>] = []

  /// - Parameter first: before the others that wait.
  func acquire(first: Bool = false) async throws {
    if free > 0 {
      free -= 1
    } else {
      await withCheckedContinuation { waiting.insert($0, at: first ? 0 : waiting.count) }
    }
  }

  func release() {
    if waiting.isEmpty { free += 1 } else { waiting.removeFirst().resume() }
  }
}
