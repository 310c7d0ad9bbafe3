import Bridge
import Configuration
import Control
import Devices
import EventLoop
import HomeAssistant
import Log
import Store
import Web

/// The gateway: builds its parts, starts and ends them in order, reloads the configuration.
@LoopActor final class Gateway {
  nonisolated let id: GatewayID
  private let log = Logger(component: "gateway")
  private var file: ConfigurationFile
  private var fleet: Fleet { didSet { bridge.report.fleet = fleet.status } }
  /// The configuration in force.
  private(set) var configuration: Configuration
  private let state: StateDatabase
  private let run: StateSection
  private let engine: DeviceManager
  private let bridge: Bridge
  private let homeAssistant: HomeAssistantDiscovery
  private let control: ControlServer
  private let web: WebServer
  private let serviceManager: ServiceManager
  private let stopping = Waiter<Void>()
  /// The most that may wait for a reload.
  private static let mostReloads = 64
  /// Who has asked for a reload that has not begun.
  private var reloads: [ReloadReply] = []
  private var isReloading = false
  /// Nil: the gateway is set up, or cannot be set up in a browser.
  private var setup: BrowserSetup?
  /// Whether the gateway has ended to be started with another configuration.
  private(set) var startsAgain = false
  private var isStopping = false

  init(
    _ file: ConfigurationFile, _ id: GatewayID, _ state: StateDatabase, _ serviceManager: ServiceManager
  ) {
    self.id = id
    self.state = state
    run = state.section("run")
    self.serviceManager = serviceManager
    self.file = file
    fleet = Fleet(state.section(Fleet.section), isAllowed: file.configuration.fleet)
    configuration = fleet.configuration(with: file)
    engine = DeviceManager(
      configuration, gateway: id, state: state.section("devices"),
      adapters: state.section("adapters"))
    bridge = Bridge(
      configuration, gateway: id, engine: engine, state: state,
      spool: configuration.spool.isEnabled ? StateFolder.path(of: .spool, id) : nil,
      recordings: StateFolder.path(of: .recordings, id),
      crashNote: CrashNote(path: StateFolder.path(of: .crash, id)))
    homeAssistant = HomeAssistantDiscovery(configuration, bridge, state.section("home_assistant"))
    bridge.add(homeAssistant)
    bridge.configurationFile = (file.path.absolutePath, file.digest)
    control = ControlServer(bridge)
    web = WebServer(bridge)
    bridge.report.onPublished = { [serviceManager, web] in
      serviceManager.status($0)
      web.gatewayChanged()
    }
    web.onChange = { [unowned bridge] in (bridge.page, bridge.pageFinding) = ($0, $1) }
    setup = browserSetup(file)
    control.openSetup = { [weak self] in
      guard let self, !self.file.isSetUp else {
        return .failure(RequestError("the gateway is set up: to change it, sudo microbit-gateway init"))
      }
      let remedy = "edit it, and restart the gateway"
      return setup?.open()
        ?? .failure(
          RequestError("nothing is set up, and the gateway cannot write \(self.file.path): \(remedy)"))
    }
    bridge.reload = { [weak self] in self?.reload($0) }
    bridge.onFleetConfiguration = { [weak self] payload in
      self?.receive(fleet: payload)
    }
  }

  private func browserSetup(_ file: ConfigurationFile) -> BrowserSetup? {
    guard BrowserSetup.isPossible(file) else { return nil }
    return BrowserSetup(file, id, engine, host: bridge) { [weak self] in self?.stop(startsAgain: true) }
  }

  // MARK: Life

  /// Runs until ``stop()``; then ends every link, publishes `offline`, and returns within 5 s.
  func serve() async {
    // On a disk that is read-only since, a run cannot note that it has ended.
    if let started = run.takeRecords()[Self.started], state.opening == .opened {
      log.warning(
        "the last run did not end normally (a crash, a power failure, or a disk that could not be written): "
          + "readings of its last second may be lost",
        ["started": String(decoding: started, as: UTF8.self)])
    }
    run.put(Self.started, Array(Timestamp.now.description.utf8))
    bridge.report.fleet = fleet.status
    bridge.start()
    homeAssistant.start()
    engine.add(bridge)
    engine.start()
    web.configure(configuration)
    _ = setup?.open()
    let listening = loop.task { await self.listen() }
    // Cancelled, but not awaited: a bus may not answer.
    let running = loop.task { [engine] in await engine.run() }
    await withTaskGroup(of: Void.self) { group in
      group.addTask { await self.bridge.run() }
      serviceManager.ready()
      try? await stopping.value()
      serviceManager.stopping()
      listening.cancel()
      await shutDown()
    }
    running.cancel()
    run.put(Self.started, nil)
    await state.close()
  }

  /// The key of the time when a run that has not ended was started.
  private static let started = "started"

  /// Opens the socket for the command line, also after another gateway has closed it.
  private func listen() async {
    var isReported = false
    repeat {
      do throws(RequestError) {
        guard let path = RuntimeFolder.socket(of: id, StateFolder.environment) else {
          throw RequestError("there is no folder for its socket: set XDG_RUNTIME_DIR or HOME")
        }
        try control.listen(at: path)
        if isReported { log.notice("the command line can reach this gateway") }
        return
      } catch {
        if !isReported { log.warning("the command line cannot reach this gateway: \(error.reason)") }
        isReported = true
      }
    } while (try? await loop.sleep(for: .seconds(5))) != nil
  }

  /// May be called again: a signal while the gateway ends to be started again ends it for good.
  func stop(startsAgain: Bool = false) {
    self.startsAgain = startsAgain && !isStopping
    isStopping = true
    stopping.resume(.success(()))
  }

  private func shutDown() async {
    log.info("stopping")
    control.stop()
    web.stop()
    setup?.close()
    // bluetoothd needs more than 2 s to end a link; the broker has another second, all within 5 s.
    let deadline = Moment.now + .milliseconds(2750)
    await engine.unsubscribe(within: .seconds(1))
    engine.endSessions()
    let recorded = loop.task { [bridge] in await bridge.recorder.stop(within: .seconds(1)) }
    bridge.goOffline()
    await engine.stop(within: Moment.now.duration(to: deadline))
    await bridge.stop(deadline: .seconds(1))
    await recorded.value
  }

  // MARK: Configuration

  /// Reads config.json again; with an error in it nothing changes. Whoever asks while it is read gets the result of one further reload.
  func reload(_ reply: @escaping ReloadReply = { _ in }) {
    guard reloads.count < Self.mostReloads else {
      return reply(.failure(RequestError("too many reloads are asked for")))
    }
    reloads.append(reply)
    guard !isReloading else { return }
    isReloading = true
    loop.task {
      while !self.reloads.isEmpty {
        let replies = self.reloads
        self.reloads = []
        let answer = await self.reloaded()
        for reply in replies { reply(answer) }
      }
      self.isReloading = false
    }
  }

  private func reloaded() async -> Result<[String], RequestError> {
    do throws(ConfigurationErrors) {
      // Off the loop: a file may be on a slow disk or a network.
      let file = try await EventLoop.blocking { [path = file.path] () throws(ConfigurationErrors) in
        try ConfigurationFile.load(path: path)
      }
      return isStopping ? .failure(RequestError("the gateway is stopping")) : .success(apply(file))
    } catch {
      log.error("configuration not reloaded: keeping the previous one", ["error": error])
      return .failure(RequestError(.invalid, error.description))
    }
  }

  private func apply(_ file: ConfigurationFile) -> [String] {
    for warning in file.warnings { log.warning("\(warning.description(in: file.path))") }
    let keepsSetup = !file.isSetUp && setup != nil && file.configuration.http == self.file.configuration.http
    self.file = file
    if !keepsSetup {
      setup?.close()
      setup = browserSetup(file)
    }
    if !file.configuration.fleet { fleet.forget() }
    bridge.configurationFile = (file.path.absolutePath, file.digest)
    let plan = applyConfiguration()
    // Now the page that was served before has left its port.
    if !keepsSetup { _ = setup?.open() }
    if plan.waiting.isEmpty {
      log.notice("configuration reloaded", ["configuration": file.path])
    } else {
      log.warning(
        "configuration reloaded; some changes need a restart", ["keys": plan.waiting.joined(separator: ", ")])
    }
    for key in plan.waiting where ["gateway.id", "mqtt.base_topic"].contains(key) {
      log.warning(
        "what is retained under the present \(key) stays at the broker: to clear it, put \(key) back, stop the gateway, "
          + "run: sudo microbit-gateway forget, and only then change it")
    }
    return plan.waiting
  }

  private func applyConfiguration() -> ReloadPlan {
    let plan = fleet.configuration(with: file).changes(from: configuration)
    configuration = plan.configuration
    bridge.configure(plan.configuration)
    // Before the engine: what was announced of a device that is another gateway's from now on is that one's to remove.
    homeAssistant.configure(plan.configuration)
    engine.configure(plan.configuration)
    web.configure(plan.configuration)
    return plan
  }

  /// A message for the whole fleet. Messages are read one at a time, off the loop, and at most one a second.
  private func receive(fleet payload: [UInt8]) {
    guard fleet.received(payload) else { return }
    loop.task {
      while let payload = self.fleet.next() {
        let message = await EventLoop.blocking { Fleet.Message(payload) }
        self.decide(message)
        try? await loop.sleep(for: .seconds(1))
      }
    }
  }

  func decide(_ message: Fleet.Message) {
    guard file.configuration.fleet, !isStopping else { return }
    if fleet.decide(message, file) { _ = applyConfiguration() }
    let version = fleet.status?.version.map(String.init) ?? "unknown"
    if let reason = fleet.status?.reason {
      log.warning("the fleet's configuration was rejected", ["version": version, "reason": reason])
    } else if fleet.status != nil {
      log.notice("the fleet's configuration is in force", ["version": version])
    } else {
      log.notice("the fleet's configuration was removed")
    }
  }
}
