import BlueZ
import Configuration
import EventLoop
import GATT
import Log

/// Runs the ``PeripheralSession`` of one device: chooses the adapter, connects, and ends the link.
@LoopActor final class DeviceSession {
  typealias Input =
    @LoopActor (inout PeripheralSession, PeripheralSession.Snapshot) -> [PeripheralSession.Action]

  let adapters: DeviceAdapters
  private(set) var machine: PeripheralSession
  private var timer = DeadlineTimer()
  /// The state last reported to the device.
  private var reportedState = SessionState.absent
  let link: DeviceLink
  private(set) lazy var visits = Visits(every: device.settings.visitInterval, of: self)
  /// Whether something waits for the next link: it comes before those of other devices.
  private(set) var isUrgent = false
  /// The characteristics after a change of services during `subscribing`, to be handled when the session is live.
  var changedServices: [Characteristic]?
  var requests = PairingRequests()
  unowned let device: Device

  var context: DeviceContext { device.context }

  /// - Parameter adapters: also those of the device's last session.
  init(of device: Device, _ adapters: DeviceAdapters) {
    self.device = device
    self.adapters = adapters
    link = DeviceLink(of: device)
    let profile = device.description.profile
    machine = PeripheralSession(
      now: .now,
      interval: profile.alive.map {
        profile.properties[$0.property].poll ?? $0.longestInterval ?? .seconds(1)
      },
      isOnDemand: device.settings.visitInterval != nil, isHeard: profile.isHeard,
      pairing: device.settings.pairing)
  }

  // MARK: Queries

  /// The adapter of the link, or of the last one.
  var adapter: Adapter { adapters.current }
  /// The object that the adapter has.
  var peripheral: PeripheralID? { adapters.peripheral }
  /// Whether the device may be connected by the adapter now: a session with a link uses that one alone.
  func mayUse(_ adapter: Int) -> Bool {
    context.turns.hasLink(device) ? adapters.isCurrent(adapter) : adapters.isEligible(adapter)
  }
  /// Whether a link can be made on demand: there is none, and the device had one lately, or waits for one.
  var isConnectable: Bool {
    machine.state != .listening && !machine.state.isLive
      && (visits.isOnline || context.turns.isWaiting(device))
  }

  // MARK: Inputs

  /// Called for every reading, of the property with this index.
  func readingReceived(of property: Int) {
    machine.liveness.readingReceived(at: .now, isPeriodic: link.alive == nil || link.alive == property)
  }

  func setPairing(_ mode: Configuration.PairingMode) { machine.setPairing(mode) }
  /// There is a bond now, or one that could not be deleted.
  func pairingEnded() { machine.pairingEnded() }
  func setPeriod(_ milliseconds: Int) { feed { $0.setPeriod(milliseconds, $1) } }
  func unresponsive() { feed { session, _ in session.unresponsive() } }
  func reconnect() {
    feed { $0.reconnect($1) }
    needsLinkNow()
  }
  func visitIsDue() { feed { $0.demanded($1) } }
  /// Something waits for a link.
  func needsLinkNow() {
    isUrgent = !machine.state.isLive
    visitIsDue()
    chooseAgain()
  }
  /// The last task of the device has ended.
  func tasksEnded() {
    if machine.isOnDemand { feed { session, _ in session.visitEnded() } } else { context.turns.tasksEnded() }
  }
  /// Another device gets the link.
  func endTurn() {
    guard machine.state.isLive, let adapter = adapters.chosen else { return }
    context.log.debug("gives up its link: others wait for one", device.fields)
    visits.turnEnds(nextAfter: context.turns.expectedWait(on: adapter))
    feed { $0.turnEnded($1) }
    device.report(.description)
  }

  /// - Parameter hasNewLink: whether the other gateway has made a link, or a visit, that was not known yet.
  func handedOver(hasNewLink: Bool) {
    if device.isHeard { return }
    // A device that is connected on demand stays there until a visit is overdue.
    if machine.isOnDemand, !hasNewLink { return }
    feed { session, _ in session.handedOver() }
    visits.visitedElsewhere()
    chooseAgain()
  }

  func seen(_ seen: Peripheral, by adapter: Int) {
    adapters.seen(seen, by: adapter)
    rangeChanged()
  }

  /// The device, which is only heard, has sent a value, or none that can be used, and why.
  func heard(_ trouble: PeripheralSession.Trouble?) {
    let before = machine.lastError
    feed { session, _ in session.heard(trouble) }
    if machine.lastError != before { device.report(.session) }
  }

  /// The device was heard, and had a value then or earlier: it is online for so long; nil: without a limit.
  func keepOnline(for limit: Duration?) { visits.heard(for: limit) }

  /// bluetoothd has removed the peripheral from an adapter.
  func lost(by adapter: Int) {
    adapters.lost(by: adapter)
    rangeChanged()
  }

  func adapterChanged(_ adapter: Int, isOn: Bool) {
    adapters.adapterChanged(adapter, isOn: isOn)
    if !isOn, context.adapters[adapter] === self.adapter {
      resetLink()
      feed { session, _ in session.adapterWentAway() }
    }
    rangeChanged()
  }

  /// What the adapters know of the device has changed, or for how long.
  func rangeChanged() {
    feed { $0.seen($1) }
    chooseAgain()
  }

  /// What the choice of the adapter waits for may have come: an advertisement, or a link.
  private func chooseAgain() { if adapters.isWaiting || context.turns.isWaiting(device) { connect() } }

  /// The link ended.
  func disconnected(_ id: PeripheralID) {
    guard id == peripheral else { return }
    resetLink()
    feed { $0.disconnected($1) }
  }

  /// Why the link ended.
  func linkEnded(of id: PeripheralID, because reason: String) {
    if id == peripheral, machine.linkEnded(because: reason) { device.handle(.session) }
  }

  /// The peripheral has changed its services so that it must not be used.
  func becameUnusable(_ id: PeripheralID, _ reason: String) {
    if id == peripheral { feed { $0.becameUnusable(reason, $1) } }
  }

  /// The peripheral has changed its services: stops using removed characteristics and starts using added ones.
  func servicesChanged(of id: PeripheralID, _ characteristics: [Characteristic]) {
    guard id == peripheral else { return }
    switch machine.state {
    case .live: servicesChanged(characteristics)
    case .subscribing: changedServices = characteristics
    case .awaitingServices: if begin(characteristics) { feed { $0.connected(.connected, $1) } }
    case .absent, .waiting, .connecting, .leaving, .idle, .listening, .stopped: break
    }
  }

  /// Ends the session and the link. What is in progress has no effect any more.
  func stop() {
    adapters.stopWaiting()
    feed { session, _ in session.stop() }
    endPairing(.failure(RequestError("the device is disabled or removed, or the gateway is stopping")))
    context.turns.forget(device)
    visits.stop(context.isStopping ? "the gateway is stopping" : "the device was disabled or removed")
    resetLink()
    if context.isStopping { return }
    guard let peripheral else { return }
    let central = adapter.central
    loop.task {
      // Its properties may be others on the next link, and a bonded peripheral remembers what is subscribed to.
      central.unsubscribe(peripheral)
      await central.disconnect(peripheral)
    }
  }

  // MARK: The machine

  func feed(_ input: Input) {
    let actions = input(
      &machine,
      PeripheralSession.Snapshot(
        now: .now, isInRange: adapters.isInRange, isReceived: adapters.isReceived, isPaired: adapters.isPaired
      ))
    timer.set(machine.deadline) { [weak self] in self?.feed { $0.timer($1) } }
    for action in actions { perform(action) }
    // Most inputs do not change the state.
    let state = machine.state
    guard state.published != reportedState else { return }
    reportedState = state.published
    if !state.occupiesLink { context.turns.leave(device) }
    device.handle(.session)
  }

  private func perform(_ action: PeripheralSession.Action) {
    switch action {
    case .connect: connect()
    case .subscribe:
      operate { [link] central in
        let result = await link.subscribe(on: central)
        return { $0.subscribed(result, $1) }
      }
    case .disconnect:
      resetLink()
      operate { [peripheral] central in
        if let peripheral { await central.disconnect(peripheral) }
        return { $0.disconnectCompleted($1) }
      }
    case .forget:
      let removal = forget()
      operate { central in
        await removal(central)
        return { $0.disconnectCompleted($1) }
      }
    case .unpair: device.task(forget())
    case .online:
      isUrgent = false
      becameLive()
    case .offline: visits.linkEnded()
    case .report(let trouble): log(trouble)
    }
  }

  /// Runs an operation on the adapter. Its result is an input.
  private func operate(_ operation: @escaping @LoopActor (Central) async -> Input) {
    device.task { [self] central in feed(await operation(central)) }
  }

  private func log(_ trouble: PeripheralSession.Trouble) {
    let profile = device.description.profile
    let remedy = trouble.remedy(device.id.description, profile, device.settings.pairing)
    let line = trouble.text(profile) + (remedy.map { " (\($0))" } ?? "")
    var level = LogLevel.warning
    if case .connectFailed = trouble { level = .info }
    context.log.write(device.isAnonymous ? .debug : level, "\(line)", device.fields)
  }

  // MARK: Links on demand

  /// - Parameter deadline: the end of its time to live; it waits for the next visit if that comes first.
  func commandWaits(until deadline: Moment?) {
    if let deadline, visits.isDue(before: deadline) { return }
    needsLinkNow()
  }

  /// Calls `body` when there is a link: at once, or when the device was connected on demand; else with the reason why
  /// there is none.
  func withLink(_ body: @escaping Visits.Body) {
    if machine.state.isLive { return body(nil) }
    guard isConnectable else { return body(device.obstacle ?? "the device is offline") }
    visits.awaitLink(body)
  }
}
