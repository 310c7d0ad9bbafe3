import BlueZ
import Configuration
import DBus
import EventLoop
import GATT
import JSON
import Log
import Store

/// The engine: which devices there are, their sessions, and what commands and requests do to them.
///
/// The engine knows nothing of its front ends but ``FrontEnd`` and ``DeviceObserver``. Commands and requests are calls; none of
/// them waits for a front end.
@LoopActor package final class DeviceManager {
  /// Maximum number of devices: anybody can advertise names that match.
  package nonisolated static let capacity = 1000

  /// The maximum number of devices; smaller than ``DeviceManager/capacity`` only in tests.
  let capacity: Int
  /// The day on which devices were last expired, in this run.
  var lastExpiry: Int?
  /// The days on which devices were seen in earlier runs, until devices are expired in this one.
  var daysSeenBefore: [Int] = []
  let context: DeviceContext
  /// The id of this gateway, as devices may be pinned to it.
  let gateway: GatewayID
  var configuration: Configuration
  var registry = Registry()
  /// How many devices are known by an advertised name alone, and were not connected yet.
  var neverConnected = 0
  var frontEnds: [any FrontEnd] = []
  /// Which micro:bits may join, and until when; nil: none.
  package internal(set) var permitJoin: PermitJoin?
  var joinTimer = DeadlineTimer()
  /// How micro:bits are numbered; nil: they are not.
  package internal(set) var numbering: Numbering?
  var numberTimer = DeadlineTimer()
  var radio = RadioState()
  /// How many inspections are running.
  var inspections = 0
  /// The scans that were requested, and are not over.
  var scans: [ScanRequest] = []
  private var isScanUpdateDue = false
  /// The addresses of the adapters that were used last, by their configured names.
  private let adapterAddresses: StateSection

  var store: DeviceStore { context.store }
  var log: Logger { context.log }

  /// - Parameters:
  ///   - state: where the devices' records are.
  ///   - adapters: where the addresses of the adapters are.
  ///   - bus: where bluetoothd is; elsewhere than on the system bus only in tests.
  ///   - bondLimit: how long a device waits for an adapter that has gone and has a bond with it; shorter only in tests.
  ///   - servicesLimit: how long a peripheral may take to add services after it was connected to; longer only in tests.
  ///   - isExclusive: false: the adapters may be used by a gateway too, and nothing is connected.
  ///   - capacity: maximum number of devices; fewer only in tests.
  package init(
    _ configuration: Configuration, gateway: GatewayID, state: StateSection,
    adapters: StateSection = .inMemory(), bus: String = DBusName.systemBus,
    bondLimit: Duration = .seconds(60), servicesLimit: Duration = .seconds(3), isExclusive: Bool = true,
    capacity: Int = DeviceManager.capacity
  ) {
    self.capacity = capacity
    self.configuration = configuration
    self.gateway = gateway
    context = DeviceContext(
      scheduler: LinkScheduler(configuration.bluetooth), bondLimit: bondLimit, servicesLimit: servicesLimit,
      store: DeviceStore(state))
    adapterAddresses = adapters
    let selections = configuration.bluetooth.selections(adapters.takeRecords())
    context.centrals = selections.enumerated().map { index, adapter in
      Central(adapter: adapter, bus: bus, isExclusive: isExclusive) { [weak self] in
        self?.handle($0, of: index)
      }
    }
    context.sessionChanged = { [weak self] in self?.devicesChanged() }
    context.hasNamesake = { [weak self] in self?.hasNamesake($0) == true }
    store.onChange = { [weak self] in self?.registry.byAddress[$0]?.description.record = $1 }
  }

  // MARK: Life

  /// Adds a front end, which then follows all devices, including those that there are already.
  package func add(_ frontEnd: any FrontEnd) {
    frontEnds.append(frontEnd)
    for device in registry.all { device.attach(frontEnd) }
  }

  /// `frontEnd` and its observers get no more calls.
  package func remove(_ frontEnd: any FrontEnd) {
    frontEnds.removeAll { $0 === frontEnd }
    for device in registry.all { device.remove(frontEnd) }
  }

  /// Creates the devices that are known from earlier runs.
  package func start() {
    loadKnownDevices()
    daysSeenBefore = store.records.values.compactMap(\.lastSeen)
    updateReceivers()
    scheduleExpiry()
  }

  private static let expiryInterval = Duration.seconds(3600)

  /// Expires devices every hour, the first time an hour after the start: until then the devices in range have been seen.
  private func scheduleExpiry() {
    loop.timer(after: Self.expiryInterval) { [weak self] in
      self?.expireDevices(today: Timestamp.now.day)
      self?.scheduleExpiry()
    }
  }

  /// Works until it is cancelled.
  package func run() async { await eachCentral { await $0.run() } }

  /// Ends the notifications, and waits for those on their way, for at most `limit`. bluetoothd takes 2 s to end a link,
  /// and would go on notifying.
  package func unsubscribe(within limit: Duration) async {
    await eachCentral { await $0.unsubscribeAll(within: limit) }
  }

  /// No more commands and readings: every device is offline.
  package func endSessions() {
    context.isStopping = true
    // Events that wait for a claim are told before the records are stored.
    claimsAreLost()
    updateReceivers()
    for device in registry.all {
      for channel in device.channels { channel.writer?.stop() }
      device.values.stop()
      device.session.stop()
    }
  }

  /// Ends every link, for at most `limit`.
  package func stop(within limit: Duration) async { await eachCentral { await $0.stop(within: limit) } }

  private func eachCentral(_ body: @escaping @Sendable @LoopActor (Central) async -> Void) async {
    await withTaskGroup(of: Void.self) { group in
      for central in context.centrals { group.addTask { await body(central) } }
    }
  }

  func engineChanged() { for frontEnd in frontEnds { frontEnd.engineChanged() } }

  // MARK: What there is

  /// The devices in the order of their ids.
  package var devices: [DeviceDescription] {
    registry.all.map(\.description).sorted { $0.id.description < $1.id.description }
  }

  /// The adapters in the order of the configuration with which the gateway was started.
  package var adapters: [AdapterStatus] {
    context.centrals.map { central in
      AdapterStatus(
        name: central.adapterName, state: central.shownState, recovery: central.recovery,
        isMonitoring: central.isMonitoring)
    }
  }
  /// How many links each adapter has, by its name, and how many each can have.
  package var adapterLinks: (used: [String: Int], most: Int) {
    let used = context.centrals.enumerated().reduce(into: [:]) { links, central in
      links[central.element.adapterName] = context.scheduler.used(on: central.offset)
    }
    return (used, configuration.bluetooth.links)
  }
  package var deviceCount: Int { registry.all.count }
  package var onlineCount: Int { registry.all.count { $0.description.isOnline } }
  package var counters: DeviceCounters { context.counters }

  package func device(_ id: DeviceID) -> DeviceDescription? { registry.byID[id]?.description }

  /// The last values in this run of ``DeviceDescription/allProperties``; empty if there is no such device.
  package func lastValues(of address: BluetoothAddress) -> [LastValue] {
    guard let device = registry.byAddress[address] else { return [] }
    return device.channels.map(\.last)
      + device.description.namedValues.map { device.values.last[$0.key] ?? LastValue() }
  }
  /// When the last reading of this run came; nil also for a device whose silence means nothing.
  package func lastReading(of address: BluetoothAddress) -> Timestamp? {
    registry.byAddress[address].flatMap { $0.session.sendsRegularly ? $0.lastReading : nil }
  }

  /// Whether the device is known by more than an advertised name: an entry has its address, or it was
  /// connected before, or a request was about it.
  package func isKnownByAddress(_ address: BluetoothAddress) -> Bool {
    store.records[address]?.isKnownByAddress == true || configuration.names(address)
  }

  /// Whether this gateway has known the device, and no longer serves it: a request has removed it, or its entry is gone.
  package func isRemoved(_ address: BluetoothAddress) -> Bool {
    guard let record = store.records[address] else { return false }
    return switch assignment(of: address, record.advertisement) {
    case .removed, .unmatched: true
    case .here, .elsewhere: false
    }
  }

  // MARK: The centrals' events

  func handle(_ event: CentralEvent, of adapter: Int) {
    switch event {
    case .state(let state):
      adapterChanged(adapter, to: state)
    case .recovery:
      for device in registry.all { device.session.adapterCannotScan() }
      engineChanged()
    case .seen(let seen):
      let peripheral = known(seen)
      for scan in scans { scan.add(peripheral) }
      guard let device = device(of: peripheral) else { return }
      let hasChanged = device.merge(Advertisement(peripheral))
      guard device.session.learn(from: peripheral) || hasChanged else {
        return device.found(peripheral, by: adapter)
      }
      advertisementChanged(of: device)
      // The new advertisement may assign the device to another entry, or give it more properties.
      guard let device = self.device(of: peripheral) else { return }
      _ = device.session.learn(from: peripheral)
      device.found(peripheral, by: adapter)
    case .disconnected(let id, _), .servicesChanged(let id, _), .unusable(let id, _):
      registry.byPeripheral[id]?.session.linkSession?.handle(event, of: id)
    case .lost(let id):
      registry.ignored[id] = nil
      guard let device = registry.byPeripheral.removeValue(forKey: id) else { return }
      device.session.lost(by: adapter)
      removeIfGone(device)
    }
  }

  /// How long the other adapters are waited for after the first one is on.
  private static let startLimit = Duration.seconds(5)

  private func adapterChanged(_ index: Int, to state: CentralState) {
    // The gateway or bluetoothd has started.
    if state.isOn, context.centrals.count(where: \.state.isOn) == 1 {
      context.startDeadline = .now + Self.startLimit
    }
    let central = context.centrals[index]
    let finding = state.finding(adapter: central.currentName)
    if case .on(let name, let address) = state {
      adapterAddresses.put(central.adapterName, Array(address.utf8))
      log.write(central.isResetting ? .info : .notice, "scanning", ["adapter": name, "address": address])
    } else if central.shownState.isOn || !central.isExclusive {
      // It is being reset, or a command that scans tells it.
    } else if finding.check == .adapter || context.centrals.count(where: { $0.state == state }) == 1 {
      // The bus and bluetoothd are the same for all adapters.
      log.warning("\(finding.text): waiting for it (\(finding.remedy ?? ""))")
    }
    if !state.isOn {
      // After the limit its bonds no longer count. One second more, as each device notes itself when the adapter went off.
      loop.timer(after: context.bondLimit + .seconds(1)) { [weak self] in
        guard let self else { return }
        for device in registry.all { device.session.rangeChanged() }
      }
    }
    for device in registry.all { device.session.adapterChanged(index, isOn: state.isOn) }
    updateScan()
    engineChanged()
  }

  /// There are other devices, or they are in another state.
  func devicesChanged() {
    updateScanLater()
    engineChanged()
  }

  /// Updates the scan once for all changes of a loop iteration, as that examines every device.
  func updateScanLater() {
    guard !isScanUpdateDue else { return }
    isScanUpdateDue = true
    loop.timer(after: .zero) { [weak self] in self?.updateScan() }
  }

  /// Scans as long as a device may still be found.
  private func updateScan() {
    isScanUpdateDue = false
    updateNeverConnected()
    let isNeeded =
      !scans.isEmpty || permitJoin != nil || configuration.devices.contains { mayFindDevices(by: $0.match) }
      || registry.all.contains { $0.settings.isEnabled && $0.session.needsScan }
    let forEach =
      Set(configuration.devices.compactMap(\.profile)).contains {
        configuration.profile(named: $0)?.session.isOnlyAdvertised == true
      }
      || registry.all.contains { type(of: $0.session).isOnlyAdvertised && $0.settings.isEnabled }
    for central in context.centrals { central.scan(isNeeded, forEach: forEach) }
  }

  private func mayFindDevices(by match: Configuration.Match) -> Bool {
    if match.isRadio { return false }
    guard let address = match.identifier else { return true }
    return match.needsAdvertisement && registry.byAddress[address] == nil
  }

  // MARK: Owners

  /// Which gateway owns the device.
  ///
  /// - Parameters:
  ///   - handover: what that one, or the one before, hands over; without an owner: it has removed the device.
  ///   - isTakenOver: whether another gateway uses the device: the link here, and commands that wait, end. While the owner
  ///     is offline, commands wait here, and visits go on.
  ///   - hasNewLink: whether it has made a link, or a visit, that was not known yet.
  package func setOwner(
    _ owner: Owner, of id: DeviceID, _ handover: Handover? = nil, isTakenOver: Bool = false,
    hasNewLink: Bool = false
  ) {
    guard let device = registry.byID[id] else { return }
    let wasDisabled = device.record.isDisabled
    device.setOwner(owner, handover, isTakenOver: isTakenOver, hasNewLink: hasNewLink)
    guard device.record.isDisabled != wasDisabled else { return }
    // Later, as the front end is in the midst of it.
    loop.timer(after: .zero) { [weak self] in self?.reconcile(device.address) }
  }

  /// A user has deleted the device where front ends announce it.
  package func setDeleted(_ id: DeviceID) { registry.byID[id]?.setDeleted(true) }

  /// A claim for the event of a device that is only heard has come from the broker, of this gateway or of another one: see
  /// ``HeardEvents``.
  package func claimed(_ event: HeardEvents.Event, of address: BluetoothAddress, byThis: Bool) {
    if byThis { context.claimsReturn = true }
    registry.byAddress[address]?.session.claimed(event, byThis: byThis)
  }

  /// Claims do not come back any more.
  package func claimsAreLost() {
    context.claimsReturn = false
    for device in registry.all { device.session.claimsAreLost() }
  }

  // MARK: Links

  /// Each device gets a short turn now, so that all have new values soon.
  package func beginRound() {
    // Also those that are out of range: they have one short turn when they come.
    for device in registry.all { device.session.linkSession?.beginRound() }
    context.scheduler.beginRound()
  }

  // MARK: Scans

  private static let mostScans = 8

  /// The peripherals in range, the strongest first, with the descriptions of those that are devices.
  package func scan(
    for duration: Duration
  ) async throws(RequestError) -> [(peripheral: Peripheral, device: DeviceDescription?)] {
    let scan = try beginScan()
    try? await loop.sleep(for: duration)
    end(scan)
    return scan.peripherals.map { ($0, registry.byAddress[$0.address]?.description) }
  }

  package func beginScan() throws(RequestError) -> ScanRequest {
    guard isOn else { throw RequestError("the Bluetooth adapter is missing or off") }
    guard scans.count < Self.mostScans else {
      throw RequestError("\(Self.mostScans) scans are running: try again later")
    }
    let scan = ScanRequest()
    scans.append(scan)
    updateScan()
    replayPeripherals()
    return scan
  }

  func end(_ scan: ScanRequest) {
    scans.removeAll { $0 === scan }
    updateScan()
  }

  /// Whether any adapter can be used.
  var isOn: Bool { context.centrals.contains { $0.state.isOn } }

  func replayPeripherals() {
    for central in context.centrals { central.replayPeripherals() }
  }

  /// The adapter that a request names; nil: the only one.
  package func adapter(named name: String?) throws(RequestError) -> AdapterStatus {
    let all = adapters
    if name == nil, all.count == 1 { return all[0] }
    if let named = all.first(where: { $0.name == name }) { return named }
    let names = all.map(\.name).joined(separator: " and ")
    throw RequestError(
      .invalid,
      name.map { "this gateway uses \(names), not \(Excerpt($0))" }
        ?? "this gateway uses \(names): name one of them by \"adapter\"")
  }

  /// Switches an adapter off and on.
  package func resetAdapter(_ name: String) async throws(CentralError) {
    guard let index = context.index(ofAdapter: name) else { throw .unavailable }
    log.notice("powering the adapter off and on", ["adapter": name])
    try await context.centrals[index].resetAdapter()
  }
}
