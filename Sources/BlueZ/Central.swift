import DBus
import EventLoop
import GATT
import Log

/// The central: finds peripherals by an adapter of BlueZ, connects to them, and works on their
/// characteristics.
///
/// It follows bluetoothd through its absence, its end and its return, and the adapter likewise; its owner
/// hears of both by events, called synchronously on the loop. D-Bus and object paths stop here.
public actor Central {
  nonisolated let loop: EventLoop
  /// The loop's thread: who is on it may enter the actor by `assumeIsolated`.
  public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  let log = Logger(component: "bluetooth")
  private let address: DBusAddress
  let adapterName: String
  private let isExclusive: Bool
  let handler: @Sendable (CentralEvent) -> Void
  let notifications: NotificationMethod
  /// The values of characteristics that come as signals.
  let values = ByteFeed(of: "Value", on: BlueZName.characteristic)

  private var bus: DBusConnection?
  private var busEnded = Waiter<Void>()
  private(set) var isBusLost = false
  /// From the first connection to the bus to the end of the run.
  var adapterLock: AdapterLock?
  private var busRetry: Duration
  private var owner: String?
  /// Runs when bluetoothd has just come: its adapters follow one by one, and get their power after that.
  private var startup: LoopTimer?
  /// How often the bus has told who owns `org.bluez`.
  private var ownersTold = 0
  /// What came while the object tree was being fetched, to be applied to it; nil when it is not.
  private var backlog: [BlueZEvent]?
  private var conditions: [Condition] = []

  var tree = ObjectTree()
  private(set) var state = CentralState.noBus("not connected yet")
  private var told: CentralState?
  var links: [PeripheralID: Link] = [:]
  let connectTurn = Turn()
  var connecting: PeripheralID?
  /// Peripherals that a Disconnect is under way for.
  var leaving: Set<PeripheralID> = []
  /// Peripherals that were removed from bluetoothd here, and are to be found again.
  var removed: Set<PeripheralID> = []
  var scanner = Scanner()
  var isStopping = false
  /// The adapter is being switched off and on again: not to be left half-way.
  var isResetting = false
  let limits: Limits

  /// - Parameters:
  ///   - adapter: BlueZ's name of the adapter to use: `hci0`.
  ///   - notifications: how they come from bluetoothd.
  ///   - bus: where bluetoothd is; elsewhere than on the system bus only in tests.
  ///   - isExclusive: whether it waits until no other exclusive central works with the adapter.
  public init(
    adapter: String, notifications: NotificationMethod = .signal, bus: DBusAddress = .system,
    isExclusive: Bool = true, loop: EventLoop, handler: @escaping @Sendable (CentralEvent) -> Void
  ) {
    self.init(
      adapter: adapter, notifications: notifications, bus: bus, isExclusive: isExclusive, limits: Limits(),
      loop: loop, handler: handler)
  }

  init(
    adapter: String, notifications: NotificationMethod = .signal, bus: DBusAddress, isExclusive: Bool = true,
    limits: Limits, loop: EventLoop, handler: @escaping @Sendable (CentralEvent) -> Void
  ) {
    self.adapterName = adapter
    self.notifications = notifications
    self.isExclusive = isExclusive
    self.address = bus
    self.limits = limits
    self.busRetry = limits.busRetry.first
    self.loop = loop
    self.handler = handler
  }

  var adapterPath: String { "/org/bluez/" + adapterName }

  // MARK: Running

  /// Works until it is cancelled. What is missing (bus, bluetoothd, adapter) is told once and waited for.
  public func run() async {
    while !Task.isCancelled {
      do {
        try await serve()
      } catch {
        if !Task.isCancelled { become(.noBus("\(error)")) }
      }
      await leaveBus()
      do { try await loop.sleep(for: busRetry) } catch { return }
      busRetry = min(busRetry * 2, limits.busRetry.longest)
    }
  }

  /// One connection to the bus, to its end.
  private func serve() async throws {
    busEnded = Waiter()
    isBusLost = false
    let bus = try await DBusConnection.open(address, on: loop, feed: values) { [weak self] event in
      self?.assumeIsolated { $0.receive(event) }
    }
    self.bus = bus
    if isExclusive { try await lockAdapter(on: bus) }
    let told = ownersTold
    // The matches first, then the look: what changes in between is then not missed.
    for rule in Self.rules { try await bus.addMatch(rule) }
    let owner = try await currentOwner(on: bus)
    // What a signal has told on this connection is newer than the answer, or the same.
    if told == ownersTold { becomeOwned(by: owner) }
    busRetry = limits.busRetry.first
    try await busEnded.value()
    throw DBusError.disconnected
  }

  /// What is told of org.bluez.
  private static let rules =
    [
      "type='signal',sender='\(DBusName.bus)',member='NameOwnerChanged',arg0='\(BlueZName.service)'",
      "type='signal',sender='\(BlueZName.service)',interface='\(DBusName.objectManager)'",
    ]
    + [BlueZName.adapter, BlueZName.device, BlueZName.characteristic].map { interface in
      "type='signal',sender='\(BlueZName.service)',interface='\(DBusName.properties)',arg0='\(interface)'"
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

  private func leaveBus() async {
    await bus?.close()
    bus = nil
    if Task.isCancelled { adapterLock = nil }
    becomeOwned(by: nil)
  }

  private func receive(_ event: DBusEvent) {
    switch event {
    case .signal(let signal):
      guard let event = BlueZEvent(signal, owner: owner) else { return }
      if case .owner(let owner) = event {
        ownersTold += 1
        becomeOwned(by: owner)
      } else if backlog != nil {
        backlog?.append(event)
      } else {
        apply(event)
      }
    case .call(let call):
      // Nothing is offered to anybody.
      bus?.assumeIsolated {
        try? $0.reply(to: call, error: DBusName.unknownMethod, "this is a central")
      }
    case .disconnected:
      isBusLost = true
      busEnded.resume(.success(()))
      checkConditions()
    }
  }

  // MARK: bluetoothd

  private func becomeOwned(by owner: String?) {
    self.owner = owner
    values.setSender(owner)
    // Until the objects are fetched, nothing is known of the adapter.
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
        guard let objects = BlueZEvent.objects(reply) else { throw DBusError.invalid("no objects in it") }
        let changes = (objects + (backlog ?? [])).flatMap { tree.apply($0) }
        backlog = nil
        // The adapter is told before what it has heard.
        updateState()
        return handle(changes)
      } catch {
        if !hasFailed { log.warning("cannot list bluetoothd's objects", ["error": error]) }
        hasFailed = true
        // The next answer comes after all of it.
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
        if tree.devices[path]?.adapter == adapterPath, let peripheral = tree.peripheral(at: path) {
          handler(.seen(peripheral))
        }
      case .characteristics(let path):
        servicesChanged(PeripheralID(path: path))
      case .disconnected(let path):
        let id = PeripheralID(path: path)
        linkEnded(id)
        handler(.disconnected(id))
      case .deviceRemoved(let path):
        let id = PeripheralID(path: path)
        if !removed.contains(id) { handler(.lost(id)) }
      }
    }
    checkConditions()
  }

  /// Tells the tree what was learnt otherwise than by a signal.
  func learn(_ properties: BlueZEvent.Properties, of id: PeripheralID) {
    apply(.changed(path: id.path, interface: BlueZName.device, properties: properties, invalidated: []))
  }

  private func updateState() {
    guard owner != nil else { return become(bus == nil ? state : .noBluetoothd) }
    guard backlog == nil else { return }
    let adapter = tree.adapters[adapterPath]
    if let adapter, adapter.isPowered {
      startup?.cancel()
      startup = nil
      return become(.on(adapter: adapterName, address: adapter.address))
    }
    if startup != nil { return }
    guard let adapter else { return become(.adapterAbsent) }
    if adapter.powerState == "off-blocked" || RFKill.blocks(adapter: adapterName) {
      become(.adapterBlocked)
    } else {
      become(.adapterOff)
    }
  }

  func become(_ new: CentralState) {
    // Discovery does not survive the adapter's being off.
    if state.isOn, !new.isOn { scanner.adapterWentAway() }
    let isNews =
      switch (told, new) {
      // Another reason why there is no bus is none to say so again.
      case (.noBus, .noBus): false
      default: told != new
      }
    state = new
    if isNews {
      told = new
      handler(.state(new))
    }
    reconcileScan()
  }

  // MARK: Calls and waits

  /// Calls bluetoothd; `done` gets the answer.
  func call(
    _ member: String, on interface: String, of path: String, _ arguments: [DBusValue], timeout: Duration,
    _ done: @escaping @Sendable (Result<[DBusValue], CentralError>) -> Void
  ) {
    guard let bus, owner != nil else { return done(.failure(.unavailable)) }
    let call = DBusCall(member, on: interface, of: path, at: BlueZName.service, arguments)
    let answered: @Sendable (DBusAnswer) -> Void = { [weak self] answer in
      switch answer {
      case .success(let arguments):
        done(.success(arguments))
      case .failure(let error):
        if error.name == BlueZName.Failure.limitsExceeded { self?.assumeIsolated { $0.tooManyCalls() } }
        done(.failure(CentralError(error, during: member)))
      }
    }
    bus.assumeIsolated { $0.call(call, timeout: timeout, answered) }
  }

  /// Calls bluetoothd and waits for the answer.
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

  /// The bus counts the calls that bluetoothd never answered. A new connection starts from nothing.
  private func tooManyCalls() {
    log.warning("too many calls were never answered: connecting to the bus again")
    busEnded.resume(.success(()))
  }

  /// Somebody who waits for the tree to come to something.
  private struct Condition {
    let isMet: @Sendable (isolated Central) -> Bool
    let waiter: Waiter<Bool>
  }

  /// Waits until `condition` holds, for at most `limit`; whether it does then.
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

  /// Stops scanning and ends every link, for at most `limit`. Then cancel ``run()``.
  public func stop(within limit: Duration) async {
    isStopping = true
    scanner.isWanted = false
    reconcileScan()
    let ends = Set(links.keys).union(connecting.map { [$0] } ?? [])
    // What bluetoothd does not answer in time is left to it.
    for id in ends { loop.task(of: self) { await $0.disconnect(id) } }
    _ = await wait(limit) { central in
      central.scanner.isIdle && !central.isResetting && ends.allSatisfy { !central.isLinked($0) }
    }
  }
}
