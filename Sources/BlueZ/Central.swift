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
  public nonisolated let loop: EventLoop
  public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  let log = Logger(component: "bluetooth")
  private let address: DBusAddress
  private let adapterName: String
  private let handler: @Sendable (CentralEvent) -> Void

  private var bus: DBusConnection?
  private var busEnded = Waiter<Void>()
  private var owner: String?
  /// What came while the object tree was being fetched, to be applied to it; nil when it is not.
  private var backlog: [BlueZEvent]?
  private var conditions: [Condition] = []

  var tree = ObjectTree()
  private(set) var state = CentralState.noBus("not connected yet")
  var links: [PeripheralID: Link] = [:]
  let connectTurn = Turn()
  var connecting: PeripheralID?
  var scanner = Scanner()
  var isStopping = false

  /// - Parameters:
  ///   - adapter: BlueZ's name of the adapter to use: `hci0`.
  ///   - bus: where bluetoothd is; elsewhere than on the system bus only in tests.
  public init(
    adapter: String, bus: DBusAddress = .system, loop: EventLoop,
    handler: @escaping @Sendable (CentralEvent) -> Void
  ) {
    self.adapterName = adapter
    self.address = bus
    self.loop = loop
    self.handler = handler
  }

  var adapterPath: String { "/org/bluez/" + adapterName }

  // MARK: Running

  /// Works until it is cancelled. What is missing (bus, bluetoothd, adapter) is told once and waited for.
  public func run() async {
    var pause = Duration.milliseconds(500)
    while !Task.isCancelled {
      do {
        try await serve()
        pause = .milliseconds(500)
      } catch {
        if !Task.isCancelled { become(.noBus("\(error)")) }
      }
      await leaveBus()
      do { try await loop.sleep(for: pause) } catch { return }
      pause = min(pause * 2, .seconds(10))
    }
  }

  /// One connection to the bus, to its end.
  private func serve() async throws {
    busEnded = Waiter()
    let bus = try await DBusConnection.open(address, on: loop) { [weak self] event in
      self?.assumeIsolated { $0.receive(event) }
    }
    self.bus = bus
    // The matches first, then the look: what changes in between is then not missed.
    try await bus.addMatch("type='signal',sender='\(BlueZName.service)'")
    try await bus.addMatch(
      "type='signal',sender='\(DBusName.bus)',member='NameOwnerChanged',arg0='\(BlueZName.service)'")
    if owner == nil { becomeOwned(by: try? await currentOwner()) }
    try await busEnded.value()
    throw DBusError.disconnected
  }

  private func currentOwner() async throws -> String? {
    let reply = try await bus?.call(
      DBusCall(
        "GetNameOwner", on: DBusName.bus, of: DBusName.busPath, at: DBusName.bus,
        [.string(BlueZName.service)]),
      timeout: .seconds(10))
    return reply?.first?.text
  }

  private func leaveBus() async {
    await bus?.close()
    bus = nil
    owner = nil
    backlog = nil
    apply(.owner(nil))
  }

  private func receive(_ event: DBusEvent) {
    switch event {
    case .signal(let signal):
      guard let event = BlueZEvent(signal, owner: owner) else { return }
      if case .owner(let owner) = event {
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
      busEnded.resume(.success(()))
    }
  }

  // MARK: bluetoothd

  private func becomeOwned(by owner: String?) {
    self.owner = owner
    // Until the objects are fetched, nothing is known of the adapter.
    backlog = owner == nil ? nil : []
    apply(.owner(owner))
    if let owner { loop.task(of: self) { await $0.fetchTree(of: owner) } }
  }

  private func fetchTree(of owner: String) async {
    let get = DBusCall(
      "GetManagedObjects", on: DBusName.objectManager, of: "/", at: BlueZName.service)
    while self.owner == owner {
      do {
        guard let reply = try await bus?.call(get, timeout: .seconds(30)), self.owner == owner else { return }
        for event in (BlueZEvent.objects(reply) ?? []) + (backlog ?? []) { apply(event) }
        backlog = nil
        return updateState()
      } catch {
        log.warning("bluetoothd does not tell its objects", ["error": error])
        try? await loop.sleep(for: .seconds(2))
      }
    }
  }

  private func apply(_ event: BlueZEvent) {
    for change in tree.apply(event) {
      switch change {
      case .adapter, .owner:
        updateState()
      case .device(let path):
        if tree.devices[path]?.adapter == adapterPath, let peripheral = tree.peripheral(at: path) {
          handler(.seen(peripheral))
        }
      case .disconnected(let path):
        let id = PeripheralID(path: path)
        links.removeValue(forKey: id)?.end()
        handler(.disconnected(id))
      case .deviceRemoved(let path):
        handler(.lost(PeripheralID(path: path)))
      case .value(let path, let bytes):
        for link in links.values { link.received(bytes, from: path) }
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
    guard let adapter = tree.adapters[adapterPath] else { return become(.adapterAbsent) }
    if adapter.isPowered {
      become(.on(adapter: adapterName, address: adapter.address))
    } else if adapter.powerState == "off-blocked" || RFKill.blocks(adapter: adapterName) {
      become(.adapterBlocked)
    } else {
      become(.adapterOff)
    }
  }

  private func become(_ new: CentralState) {
    let wasOn = state.isOn
    if new != state {
      state = new
      handler(.state(new))
    }
    // Discovery does not survive the adapter's being off.
    if wasOn, !new.isOn { scanner.adapterWentAway() }
    reconcileScan()
  }

  // MARK: Calls and waits

  /// Calls bluetoothd; `operation` names it in errors.
  func call(
    _ member: String, on interface: String, of path: String, _ arguments: [DBusValue] = [],
    timeout: Duration
  ) async throws(CentralError) -> [DBusValue] {
    guard let bus, owner != nil else { throw .unavailable }
    do {
      return try await bus.call(
        DBusCall(member, on: interface, of: path, at: BlueZName.service, arguments), timeout: timeout)
    } catch {
      throw CentralError(error, during: member)
    }
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
    var ends = Set(links.keys)
    if let connecting { ends.insert(connecting) }
    await withTaskGroup(of: Void.self) { group in
      for id in ends { group.addTask { await self.disconnect(id, within: limit) } }
      group.addTask { _ = await self.wait(limit) { $0.scanner.isIdle } }
    }
  }
}
