import DBus
import EventLoop
import GATT
import Log

/// A central: finds peripherals by a BlueZ adapter, connects to them, and operates on their characteristics.
///
/// It recovers from the absence and the restart of bluetoothd and of the adapter, and reports both as events, called
/// synchronously on the loop. D-Bus and object paths are hidden from the users of this module.
public actor Central {
  nonisolated let loop: EventLoop
  /// The loop's executor: code on its thread may enter the actor by `assumeIsolated`.
  public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  let log = Logger(component: "bluetooth")
  private let address: DBusAddress
  let adapterName: String
  private let isExclusive: Bool
  let handler: @Sendable (CentralEvent) -> Void
  let notifications: NotificationMethod
  /// Values of characteristics that arrive as signals.
  let values = ByteFeed(of: "Value", on: BlueZName.characteristic)

  private var bus: DBusConnection?
  private var busEnded = Waiter<Void>()
  private(set) var isBusLost = false
  /// Held from the first connection to the bus until the end of ``run()``.
  var adapterLock: AdapterLock?
  private var busBackOff: BackOff
  /// bluetoothd's unique name.
  private(set) var owner: String?
  /// Runs after bluetoothd has started: its adapters appear and are powered one by one.
  private var startup: LoopTimer?
  /// How many signals have reported the owner of `org.bluez`.
  private var ownerSignals = 0
  /// Events received while the object tree is being fetched, to be applied to it; nil at other times.
  private var backlog: [BlueZEvent]?
  private var conditions: [Condition] = []

  var tree: ObjectTree
  private(set) var state = CentralState.noBus("not connected yet")
  private var reportedState: CentralState?
  var links: [PeripheralID: Link] = [:]
  let connectMutex = AsyncMutex()
  var connecting: PeripheralID?
  /// The links during the connection attempt in progress.
  var attemptedLink = AttemptedLink()
  var pairing: Pairing?
  /// Peripherals whose link is being ended.
  var disconnecting: Set<PeripheralID> = []
  /// Peripherals that the central has removed from bluetoothd, and expects to be found again.
  var awaitingRediscovery: Set<PeripheralID> = []
  var scanner = Scanner()
  var isStopping = false
  /// The adapter is being powered off and on again, which must be completed.
  var isResetting = false
  let limits: Limits

  /// - Parameters:
  ///   - adapter: BlueZ's name of the adapter: `hci0`.
  ///   - notifications: how bluetoothd delivers notifications.
  ///   - bus: bluetoothd's bus; another than the system bus only in tests.
  ///   - isExclusive: whether to lock the adapter, and to wait while another exclusive central holds the lock.
  package init(
    adapter: String, notifications: NotificationMethod = .signal, bus: DBusAddress = .system,
    isExclusive: Bool = true, limits: Limits = Limits(), loop: EventLoop,
    handler: @escaping @Sendable (CentralEvent) -> Void
  ) {
    self.adapterName = adapter
    self.tree = ObjectTree(adapter: "/org/bluez/" + adapter)
    self.notifications = notifications
    self.isExclusive = isExclusive
    self.address = bus
    self.limits = limits
    self.busBackOff = limits.busBackOff
    self.loop = loop
    self.handler = handler
  }

  var adapterPath: String { tree.adapterPath }

  // MARK: Running

  /// Runs until cancelled. Reports once what is missing (bus, bluetoothd, adapter) and waits for it.
  public func run() async {
    while !Task.isCancelled {
      do {
        try await serve()
      } catch {
        if !Task.isCancelled { setState(.noBus("\(error)")) }
      }
      await closeBus()
      do { try await loop.sleep(for: busBackOff.next()) } catch { return }
    }
  }

  /// Runs one connection to the bus until it ends.
  private func serve() async throws {
    busEnded = Waiter()
    isBusLost = false
    let bus = try await DBusConnection.open(address, on: loop, feed: values) { [weak self] event in
      self?.assumeIsolated { $0.receive(event) }
    }
    self.bus = bus
    if isExclusive { try await lockAdapter(on: bus) }
    let signals = ownerSignals
    // Subscribed before the owner is queried, so that no change between the two is missed.
    for rule in rules { try await bus.addMatch(rule) }
    let owner = try await currentOwner(on: bus)
    // A signal received on this connection is at least as new as the reply.
    if signals == ownerSignals { ownerChanged(to: owner) }
    busBackOff.reset()
    try await busEnded.value()
    throw DBusError.disconnected
  }

  /// Match rules for the signals of bluetoothd. Values of other adapters' peripherals do not reach the process.
  private var rules: [String] {
    [
      "type='signal',sender='\(DBusName.bus)',member='NameOwnerChanged',arg0='\(BlueZName.service)'",
      "type='signal',sender='\(BlueZName.service)',interface='\(DBusName.objectManager)'",
    ]
      + [BlueZName.adapter, BlueZName.device, BlueZName.characteristic].map { interface in
        "type='signal',sender='\(BlueZName.service)',interface='\(DBusName.properties)',"
          + "path_namespace='\(adapterPath)',arg0='\(interface)'"
      }
  }

  private func currentOwner(on bus: DBusConnection) async throws(DBusError) -> String? {
    do throws(DBusError) {
      let reply = try await bus.call(
        DBusCall(
          "GetNameOwner", on: DBusName.bus, of: DBusName.busPath, at: DBusName.bus,
          [.string(BlueZName.service)]),
        timeout: limits.local)
      return reply.first?.text
    } catch {
      guard error.name == BlueZName.Failure.nameHasNoOwner else { throw error }
      return nil
    }
  }

  private func closeBus() async {
    await bus?.close()
    bus = nil
    if Task.isCancelled { adapterLock = nil }
    ownerChanged(to: nil)
  }

  private func receive(_ event: DBusEvent) {
    switch event {
    case .signal(let signal):
      guard let event = BlueZEvent(signal, owner: owner) else { return }
      if case .owner(let owner) = event {
        ownerSignals += 1
        ownerChanged(to: owner)
      } else if backlog != nil {
        backlog?.append(event)
      } else {
        apply(event)
      }
    case .call(let call):
      answer(call)
    case .disconnected:
      isBusLost = true
      busEnded.resume(.success(()))
      checkConditions()
    }
  }

  // MARK: bluetoothd

  private func ownerChanged(to owner: String?) {
    self.owner = owner
    values.setSender(owner)
    // The state of the adapter is unknown until the objects are fetched.
    backlog = owner == nil ? nil : []
    apply(.owner(owner))
    startup?.cancel()
    startup = nil
    guard let owner else { return }
    startup = loop.timer(after: limits.startup) { [weak self] in
      self?.assumeIsolated { central in
        central.startup = nil
        central.updateState()
      }
    }
    loop.task(of: self) { await $0.fetchTree(of: owner) }
  }

  private func fetchTree(of owner: String) async {
    let get = DBusCall(
      "GetManagedObjects", on: DBusName.objectManager, of: "/", at: BlueZName.service)
    var hasFailed = false
    while self.owner == owner {
      do throws(DBusError) {
        guard let reply = try await bus?.call(get, timeout: .seconds(30)), self.owner == owner else { return }
        guard let objects = BlueZEvent.objects(reply) else {
          throw DBusError.invalid("the reply has no objects")
        }
        let changes = (objects + (backlog ?? [])).flatMap { tree.apply($0) }
        backlog = nil
        // The adapter's state is reported before its peripherals.
        updateState()
        return handle(changes)
      } catch {
        if !hasFailed { log.warning("cannot list bluetoothd's objects", ["error": error]) }
        hasFailed = true
        // The next reply includes them.
        backlog = []
        try? await loop.sleep(for: limits.retry)
      }
    }
  }

  private func apply(_ event: BlueZEvent) { handle(tree.apply(event)) }

  private func handle(_ changes: [ObjectTree.Change]) {
    for change in changes {
      switch change {
      case .adapter, .owner:
        updateState()
      case .device(let path):
        if connecting?.path == path, tree.devices[path]?.isConnected == true { attemptedLink.up() }
        if let peripheral = tree.peripheral(at: path) { handler(.seen(peripheral)) }
      case .characteristics(let path):
        servicesChanged(PeripheralID(path: path))
      case .disconnected(let path):
        let id = PeripheralID(path: path)
        if connecting == id { attemptedLink.down() }
        linkEnded(id)
        handler(.disconnected(id))
      case .deviceRemoved(let path):
        let id = PeripheralID(path: path)
        if !awaitingRediscovery.contains(id) { handler(.lost(id)) }
      }
    }
    checkConditions()
  }

  /// Applies properties that were read rather than signalled.
  func update(_ properties: BlueZEvent.Properties, of id: PeripheralID) {
    apply(.changed(path: id.path, interface: BlueZName.device, properties: properties, invalidated: []))
  }

  private func updateState() {
    guard owner != nil else { return setState(bus == nil ? state : .noBluetoothd) }
    guard backlog == nil else { return }
    let adapter = tree.adapter
    if let adapter, adapter.isPowered {
      startup?.cancel()
      startup = nil
      return setState(.on(adapter: adapterName, address: adapter.address))
    }
    if startup != nil { return }
    guard let adapter else { return setState(.adapterAbsent) }
    if adapter.powerState == "off-blocked" || RFKill.blocks(adapter: adapterName) {
      setState(.adapterBlocked)
    } else {
      setState(.adapterOff)
    }
  }

  func setState(_ new: CentralState) {
    // Discovery ends when the adapter is powered off.
    if state.isOn, !new.isOn { scanner.adapterTurnedOff() }
    let isChange =
      switch (reportedState, new) {
      // A different reason for the missing bus is not reported again.
      case (.noBus, .noBus): false
      default: reportedState != new
      }
    state = new
    if isChange {
      reportedState = new
      handler(.state(new))
    }
    reconcileScan()
  }

  // MARK: Calls and waits

  /// Calls a method of bluetoothd; `done` is called with its own answer.
  func request(
    _ member: String, on interface: String, of path: String, _ arguments: [DBusValue], timeout: Duration,
    _ done: @escaping @Sendable (DBusAnswer) -> Void
  ) {
    guard let bus, owner != nil else { return done(.failure(.disconnected)) }
    let call = DBusCall(member, on: interface, of: path, at: BlueZName.service, arguments)
    let answered: @Sendable (DBusAnswer) -> Void = { [weak self] answer in
      if case .failure(let error) = answer, error.name == BlueZName.Failure.limitsExceeded {
        self?.assumeIsolated { $0.tooManyCalls() }
      }
      done(answer)
    }
    bus.assumeIsolated { $0.call(call, timeout: timeout, answered) }
  }

  /// Calls a method of bluetoothd; `done` is called with the answer.
  func call(
    _ member: String, on interface: String, of path: String, _ arguments: [DBusValue], timeout: Duration,
    _ done: @escaping @Sendable (Result<[DBusValue], CentralError>) -> Void
  ) {
    request(member, on: interface, of: path, arguments, timeout: timeout) { answer in
      switch answer {
      case .success(let arguments): done(.success(arguments))
      case .failure(let error): done(.failure(CentralError(error, during: member)))
      }
    }
  }

  /// Replies to a call of bluetoothd.
  func reply(to call: DBusCall, _ arguments: [DBusValue] = []) {
    bus?.assumeIsolated { try? $0.reply(to: call, arguments) }
  }

  /// Replies to a call with an error.
  func reply(to call: DBusCall, error name: String, _ text: String) {
    bus?.assumeIsolated { try? $0.reply(to: call, error: name, text) }
  }

  /// Calls a method of bluetoothd and waits for the answer.
  func call(
    _ member: String, on interface: String, of path: String, _ arguments: [DBusValue] = [],
    timeout: Duration
  ) async throws(CentralError) -> [DBusValue] {
    try await withCheckedContinuation { continuation in
      call(member, on: interface, of: path, arguments, timeout: timeout) {
        continuation.resume(returning: $0)
      }
    }.get()
  }

  /// The bus counts calls that bluetoothd never answered; a new connection resets the count.
  private func tooManyCalls() {
    log.warning("too many D-Bus calls were never answered: reconnecting to the bus")
    busEnded.resume(.success(()))
  }

  /// A condition that a task waits for.
  private struct Condition {
    let isMet: @Sendable (isolated Central) -> Bool
    let waiter: Waiter<Bool>
  }

  /// Waits until `condition` holds, for at most `limit`; returns whether it does.
  func wait(_ limit: Duration, until condition: @escaping @Sendable (isolated Central) -> Bool) async -> Bool
  {
    if condition(self) { return true }
    let waiter = Waiter<Bool>()
    conditions.append(Condition(isMet: condition, waiter: waiter))
    let timer = loop.timer(after: limit) { waiter.resume(.success(false)) }
    let met = (try? await waiter.value()) ?? false
    timer.cancel()
    conditions.removeAll { $0.waiter === waiter }
    return met
  }

  func checkConditions() {
    for condition in conditions where condition.isMet(self) { condition.waiter.resume(.success(true)) }
  }

  // MARK: Ending

  /// Stops scanning and ends every link, waiting for at most `limit`. Cancel ``run()`` afterwards.
  public func stop(within limit: Duration) async {
    isStopping = true
    scanner.isRequested = false
    reconcileScan()
    let ends = Set(links.keys).union(connecting.map { [$0] } ?? [])
    // Links that bluetoothd does not end in time are left to it.
    for id in ends { loop.task(of: self) { await $0.disconnect(id) } }
    _ = await wait(limit) { central in
      central.scanner.isIdle && !central.isResetting && ends.allSatisfy { !central.isLinked($0) }
    }
  }
}
