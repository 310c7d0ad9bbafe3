import DBus
import EventLoop
import Log

/// A central: finds peripherals with a BlueZ adapter, connects to them, and operates on their characteristics.
///
/// A central recovers from the absence and the restart of bluetoothd and of the adapter, and reports both as events, called
/// synchronously. D-Bus and object paths are hidden from the users of this module.
@LoopActor public final class Central {
  let log = Logger(component: "bluetooth")
  var selection: AdapterSelection
  /// Whether it is changing to another adapter.
  var isSelecting = false
  /// The configured name of the adapter: `hci0`.
  public var adapterName: String { selection.name }
  /// BlueZ's name of the adapter in use, which is another one than ``adapterName`` if the kernel has renamed it.
  public var currentName: String { BlueZName.adapterName(tree.adapterPath) }
  private let busAddress: String
  /// Whether the adapter is locked, as by a gateway.
  package let isExclusive: Bool
  let limits: Limits
  let handler: @LoopActor (CentralEvent) -> Void

  private(set) var bluetoothd: BluetoothdConnection?
  var tree: ObjectTree
  private(set) var status = CentralStatus()
  let scanner: Scanner
  let queue = ConnectionQueue()
  let links = Links()
  var monitor = AdvertisementMonitor()
  var waits: [Wait] = []
  /// The peripherals that have become keyboards or mice of this machine while they were used: their bonds are deleted.
  private(set) var unwantedBonds: Set<PeripheralID> = []
  /// The peripherals that this gateway has paired with.
  package internal(set) var ownBonds: Set<PeripheralID> = []

  /// - Parameters:
  ///   - adapter: the adapter to use.
  ///   - bus: bluetoothd's bus; another than the system bus only in tests.
  ///   - isExclusive: whether to lock the adapter, and to wait while another exclusive central holds the lock.
  package init(
    adapter: AdapterSelection, bus: String = DBusName.systemBus, isExclusive: Bool = true,
    limits: Limits = Limits(),
    handler: @escaping @LoopActor (CentralEvent) -> Void
  ) {
    selection = adapter
    busAddress = bus
    self.isExclusive = isExclusive
    self.limits = limits
    tree = ObjectTree(adapter: BlueZName.adapterPath(adapter.name))
    scanner = Scanner(
      resetBackOff: limits.scanReset, silenceBackOff: limits.scanCheck, fullScan: limits.briefScan)
    self.handler = handler
  }

  var adapterPath: String { tree.adapterPath }
  /// The address of the adapter that is used, or was last.
  package var address: String? { selection.address }
  /// Whether the adapter can be used, and if not, why.
  public var state: CentralState { status.state }
  /// The ``state``, but that an adapter which is being reset is shown as it was before.
  public var shownState: CentralState { status.shown }
  /// Whether the adapter is being powered off and on again.
  public var isResetting: Bool { status.isResetting }

  /// Whether peripherals can be connected to.
  var isAvailable: Bool { state.isOn && !queue.isClosed }

  // MARK: Running

  /// Runs until cancelled. Reports once what is missing (bus, bluetoothd, adapter) and waits for it.
  public func run() async {
    var backOff = limits.busBackOff
    while !Task.isCancelled {
      do {
        try await serve(&backOff)
      } catch {
        if !Task.isCancelled { setState(.noBus("\(error)")) }
      }
      closeBus()
      do { try await loop.sleep(for: backOff.next()) } catch { return }
    }
  }

  /// Runs one connection to the bus until it ends.
  private func serve(_ backOff: inout BackOff) async throws {
    let bluetoothd = try await BluetoothdConnection(
      busAddress, byteSignals: links.byteSignals, limits: limits
    ) { [weak self] in self?.receive($0) }
    self.bluetoothd = bluetoothd
    if isExclusive { try await lockAdapter(on: bluetoothd) }
    try await bluetoothd.watch(adapterPath: adapterPath)
    backOff.reset()
    try await bluetoothd.waitForEnd()
  }

  /// The next connection to the bus watches this adapter.
  func use(adapter name: String) {
    closeBus()
    tree.adapterPath = BlueZName.adapterPath(name)
  }

  private func closeBus() {
    bluetoothd?.close()
    bluetoothd = nil
    status.set(.unknown)
    apply(.owner(nil))
  }

  private func receive(_ event: BluetoothdEvent) {
    switch event {
    case .owner(let owner):
      if owner != nil { status.set(.listing, startup: startupTimer()) } else { status.set(.absent) }
      apply(.owner(owner))
    case .objects(let events):
      status.set(.listed)
      let changes = events.flatMap { tree.apply($0) }
      // The adapter's state is reported before its peripherals.
      updateState()
      handle(changes)
      selectAdapter()
    case .changed(let event): apply(event)
    case .unlisted(let isDenied):
      status.set(isDenied ? .denied : .silent)
      updateState()
    case .call(let call) where call.path.hasPrefix(AdvertisementMonitor.root): answerAsMonitor(call)
    case .call(let call): answer(call)
    case .disconnected: checkConditions()
    }
  }

  private func startupTimer() -> LoopTimer {
    loop.timer(after: limits.startup) { [weak self] in
      self?.status.startupEnded()
      self?.updateState()
    }
  }

  // MARK: Objects

  private func apply(_ event: BlueZEvent) {
    let advertisements = tree.advertisements
    if case .owner = event { scanner.forgetGone() }
    handle(tree.apply(event))
    if tree.advertisements != advertisements { noteScan() }
  }

  private func handle(_ changes: [ObjectTree.Change]) {
    for change in changes {
      switch change {
      case .adapter:
        updateState()
        reconcileMonitor()
      case .addresses: selectAdapter()
      case .device(let path):
        let id = PeripheralID(path: path)
        if let attempt = queue.attempt(with: id), isConnected(id) { attempt.linkBegan() }
        if let peripheral = tree.peripheral(at: path) { handler(.seen(peripheral)) }
        noteInput(of: id)
      case .inputDevice(let path): inputDeviceAppeared(PeripheralID(path: path))
      case .characteristics(let path): servicesChanged(PeripheralID(path: path))
      case .disconnected(let path, let reason):
        let id = PeripheralID(path: path)
        let attempt = queue.attempt(with: id)
        attempt?.linkEnded()
        if reason == Self.localEnd { attempt?.wasEndedLocally = true }
        linkEnded(id)
        handler(.disconnected(id, reason: reason))
      case .deviceRemoved(let path):
        // What another program has begun with it has ended.
        links.busySince[PeripheralID(path: path)] = nil
        handler(.lost(PeripheralID(path: path)))
      }
    }
    checkConditions()
  }

  /// An earlier run of this gateway has paired with the peripheral.
  package func keepsOwnBond(_ id: PeripheralID) {
    if ownBonds.insert(id).inserted, tree.devices[id.path]?.isInputDevice == true { inputDeviceAppeared(id) }
  }

  /// A keyboard or mouse of this machine has appeared. Another program has paired with it, unless it is used here, or its bond
  /// is that of this central.
  private func inputDeviceAppeared(_ id: PeripheralID) {
    let isUsed = links[id] != nil || queue.attempt(with: id) != nil
    guard isUsed || ownBonds.contains(id) else { return }
    unwantedBonds.insert(id)
    // bluetoothd would use it as soon as it connects. In use, the bond is deleted with the link.
    if !isUsed { loop.task { [weak self] in await self?.removeBond(id) } }
  }

  /// Reports a peripheral that is used, and must not be any longer.
  private func noteInput(of id: PeripheralID) {
    if !isPaired(id) {
      unwantedBonds.remove(id)
      ownBonds.remove(id)
    }
    // During an attempt its result tells it.
    if links[id] != nil, queue.attempt(with: id) == nil, isRefused(id) {
      handler(.unusable(id, CentralError.inputDevice.description))
    }
  }

  /// Whether the peripheral must not be used: with HID over GATT and a bond it is a keyboard or mouse of this machine,
  /// and bluetoothd itself pairs with it on a link (LEAutoSecurity in its input.conf). One that another program has
  /// paired with may be used.
  func isRefused(_ id: PeripheralID) -> Bool {
    guard let device = tree.devices[id.path], device.offersInput else { return false }
    return !device.isPaired || unwantedBonds.contains(id)
  }

  /// Why a link has ended that bluetoothd has ended.
  private static let localEnd = "Connection terminated by local host"

  /// Applies properties that were read rather than signalled.
  func update(_ properties: BlueZEvent.Properties, of id: PeripheralID) {
    apply(.changed(path: id.path, interface: BlueZName.device, properties: properties, invalidated: []))
  }

  // MARK: State

  private func updateState() {
    if let state = status.next(tree.adapter, name: currentName) { setState(state) }
  }

  func setState(_ new: CentralState) {
    // Discovery ends when the adapter is powered off.
    if state.isOn, !new.isOn { scanner.adapterTurnedOff(isReset: status.isResetting) }
    if case .on(_, let address) = new { selection.address = address }
    if status.set(new) { handler(.state(new)) }
    reconcileScan()
  }

  /// Whether the link to a peripheral is being ended by ``disconnect(_:)``.
  public func isEnding(_ id: PeripheralID) -> Bool { links.isEnding(id) }

  // MARK: Resetting and ending

  /// Powers the adapter off and on again, which ends every link and clears the controller's state.
  public func resetAdapter() async throws(CentralError) {
    guard isAvailable else { throw .unavailable }
    if status.isResetting { throw .busy("it is being reset") }
    status.beforeReset = state
    defer {
      status.beforeReset = nil
      // Until now this was not shown.
      if state == .adapterOff { handler(.state(state)) }
      checkConditions()
    }
    try await powerOffAndOn()
  }

  /// Stops scanning and ends every link, waiting for at most `limit`. Cancel ``run()`` afterwards.
  public func stop(within limit: Duration) async {
    queue.isClosed = true
    scan(false)
    let ends = links.peripherals.union(queue.peripherals)
    // Links that bluetoothd does not end in time are left to it.
    for id in ends { loop.task { await self.disconnect(id) } }
    _ = await wait(limit) {
      self.scanner.isIdle && !self.status.isResetting && ends.allSatisfy { !self.isLinked($0) }
    }
  }
}
