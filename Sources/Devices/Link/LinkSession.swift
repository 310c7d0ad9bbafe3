import BlueZ
import Configuration
import EventLoop
import GATT

/// The session of a device that is connected to: runs its ``LinkMachine``, chooses the adapter, connects, and ends the link.
@LoopActor final class LinkSession: DeviceSession {
  private(set) var machine: LinkMachine
  private var timer = DeadlineTimer()
  let services: LinkServices
  let requests = LinkRequests()
  /// Whether a new link was requested, and there was none since.
  private var isRequested = false
  /// Whether the first values of this run or round, which end its turn for devices that have none, are still to come.
  private var awaitsFirstValues = true
  /// The characteristics after a change of services during `subscribing`, to be handled when the session is live.
  var changedServices: [Characteristic]?

  /// The request to pair that awaits its answer, and the timer of its time limit.
  var pairingRequest = PairingRequest.none
  var pairingTimer = DeadlineTimer()

  /// The timer that runs until a peripheral that gave its link to another device is received again.
  private var returns: LoopTimer?
  private static let returnLimit = Duration.seconds(30)

  required init(of device: Device, _ adapters: DeviceAdapters) {
    services = LinkServices(of: device)
    let profile = device.description.profile
    machine = LinkMachine(
      now: .now,
      interval: profile.alive.map {
        profile.properties[$0.property].poll ?? $0.longestInterval ?? .seconds(1)
      },
      isOnDemand: device.settings.isOnDemand, pairing: device.settings.pairing,
      servicesLimit: device.context.servicesLimit)
    super.init(of: device, adapters)
  }

  // MARK: Queries

  /// Maximum number of devices that are known by an advertised name alone, and were not connected yet.
  static let mostNeverConnected = 128
  override class func hasRoomForNew(in manager: DeviceManager) -> Bool {
    manager.neverConnected < mostNeverConnected
  }
  override var linkSession: LinkSession? { self }
  override var visitInterval: Duration? { device.settings.visitInterval }
  override var sendsRegularly: Bool { device.description.profile.alive != nil }
  override var state: SessionState {
    // When a link ends, bluetoothd no longer knows that the peripheral is in range. One that gave its link to another device is
    // received again within seconds.
    machine.state == .absent && returns != nil ? .waiting : machine.state.published
  }
  override var lastError: Trouble? { machine.lastError }
  /// Whether something waits for the next link: it comes before those of other devices.
  var isUrgent: Bool {
    isRequested || !requests.isEmpty || pairingRequest.isRequested
      || device.channels.contains { $0.writer?.hasWaiting == true }
  }
  var peripheral: PeripheralID? { adapters.peripheral }
  /// Whether a link can be made on demand: there is none, and the device had one lately, or waits for one.
  var isConnectable: Bool {
    !machine.state.isLive && (presence.isOnline || context.scheduler.isWaiting(device))
  }

  override var obstacle: String? { nil }

  // MARK: Inputs

  override func readingReceived(of property: Int) {
    let isPeriodic = services.alive == nil || services.alive == property
    // What is only read comes also when notifications have stopped.
    if isPeriodic || !device.channels[property].isPolled {
      machine.liveness.readingReceived(at: .now, isPeriodic: isPeriodic)
    }
    if awaitsFirstValues { noteFirstValues() }
  }

  func noteFirstValues() {
    guard awaitsFirstValues, machine.state.isLive, device.channels.allSatisfy(\.hasFirstValue) else { return }
    awaitsFirstValues = false
    context.scheduler.receivedFirstValues(device)
  }

  func beginRound() {
    awaitsFirstValues = true
    for channel in device.channels { channel.beginRound() }
  }

  override func becameOnline() {
    device.owner = .this
    device.description.adapter = central.adapterName
    device.values.linkUp()
    device.learn(offered: services.offered, isNewLink: true)
  }

  /// Stores that the link offers a log, so that it is known after a restart.
  func noteLog() {
    let isOffered = services.resolution?.log != nil
    let (before, empty) = (device.description.mayHaveLog, LogPosition())
    if device.record.log == (isOffered ? nil : empty) {
      context.store.change(device.address) { $0.log = isOffered ? empty : nil }
    }
    if device.description.mayHaveLog != before { device.report(.description) }
  }

  /// Another mode is configured.
  func setPairing(_ mode: Configuration.PairingMode) { machine.pairing.mode = mode }
  /// There is a bond now, or one that could not be deleted.
  func pairingEnded() { machine.pairing.isDue = false }
  func reconnect() {
    feed(.reconnect)
    isRequested = true
    needsLinkNow()
  }
  /// The settings have changed so that a device that could not be used may be usable.
  func becomesUsable() { if lastError != nil { reconnect() } }
  override func visitIsDue() { feed(.demanded) }
  /// Something waits for a link.
  func needsLinkNow() {
    visitIsDue()
    chooseAgain()
  }
  /// The last task of the device has ended.
  func tasksEnded() {
    if machine.isOnDemand {
      feed(.visitEnded)
    } else {
      context.scheduler.tasksEnded()
    }
  }
  /// Another device gets the link when the LEDs are restored, unless something else was requested meanwhile.
  func endTurn() {
    device.releaseLEDs { [weak self] isBusy in
      guard let self, machine.state.isLive else { return }
      guard isBusy else { return giveUpLink() }
      context.scheduler.keepsLink(device)
      device.updateLEDs()
    }
  }

  private func giveUpLink() {
    guard machine.state.isLive, let adapter = adapters.chosen else { return }
    context.log.debug("gives up its link: others wait for one", device.fields)
    let wait = context.scheduler.expectedWait(on: adapter)
    feedPresence { $0.turnEnds(nextAfter: wait, at: .now) }
    returns?.cancel()
    returns = loop.timer(after: Self.returnLimit) { [weak self] in
      self?.returns = nil
      self?.reportState()
    }
    feed(.turnEnded)
    device.report(.description)
  }

  func handedOver(hasNewLink: Bool) {
    // A device that is connected on demand stays there until a visit is overdue.
    if machine.isOnDemand, !hasNewLink { return }
    feed(.handedOver)
    feedPresence { $0.visitedElsewhere(at: .now) }
    if machine.isOnDemand {
      isRequested = false
      requests.resume(Outcome.takenOverReason)
      giveUpPairing(RequestError(Outcome.takenOverReason))
    }
    chooseAgain()
  }

  override func seen(_ seen: Peripheral, by adapter: Int) {
    // Before the session reports, and afterwards, as it may have another adapter then.
    noteBond(of: seen, on: context.centrals[adapter])
    noteSignal(of: seen, by: adapter)
    super.seen(seen, by: adapter)
    noteSignal(of: seen, by: adapter)
  }

  private func noteSignal(of seen: Peripheral, by adapter: Int) {
    if let rssi = seen.rssi, adapters.isCurrent(adapter) { device.description.rssi = rssi }
  }

  override func adapterChanged(_ adapter: Int, isOn: Bool) {
    adapters.adapterChanged(adapter, isOn: isOn)
    if !isOn, context.centrals[adapter] === central {
      resetLink()
      feed(.adapterWentAway)
    }
    rangeChanged()
  }

  override func rangeChanged() {
    feed(.rangeChanged)
    chooseAgain()
  }

  /// What the choice of the adapter waits for may have come, an advertisement or a link, or the link may no longer be urgent.
  func chooseAgain() { if adapters.isWaiting || context.scheduler.isWaiting(device) { connect() } }

  /// Something has happened to the link of an object of the device.
  func handle(_ event: CentralEvent, of id: PeripheralID) {
    guard id == peripheral else { return }
    switch event {
    case .disconnected(_, let reason):
      resetLink()
      feed(.disconnected(reason: reason))
    case .unusable(_, let reason): feed(.unusable(reason))
    case .servicesChanged(_, let characteristics): servicesChanged(to: characteristics)
    case .state, .recovery, .seen, .lost: break
    }
  }

  /// Stops using removed characteristics, and starts using added ones.
  private func servicesChanged(to characteristics: [Characteristic]) {
    switch machine.state {
    case .live: liveServicesChanged(to: characteristics)
    case .subscribing: changedServices = characteristics
    case .awaitingServices: feed(.connected(begin(characteristics)))
    case .absent, .waiting, .connecting, .leaving, .idle, .stopped: break
    }
  }

  override func stop() {
    adapters.stopWaiting()
    // First: an incomplete frame becomes a reading, which is reported while the device is online.
    resetLink()
    isRequested = false
    let hasNoLink = [.idle, .stopped].contains(state)
    feed(.stop)
    let reason =
      context.isStopping ? "the gateway is stopping" : "the device was removed, or its settings were changed"
    endPairing(.failure(RequestError(reason)))
    context.scheduler.forget(device)
    feedPresence { $0.stop() }
    requests.resume(reason)
    // In these states the gateway has no link: one that bluetoothd has is another program's.
    guard !context.isStopping, !hasNoLink, let peripheral else { return }
    loop.task { [central] in await central.disconnect(peripheral) }
  }

  // MARK: The machine

  /// Gives the machine an input, and performs the actions that it returns.
  func feed(_ input: LinkMachine.Input) {
    let actions = machine.handle(
      input,
      LinkMachine.Snapshot(
        now: .now, isInRange: adapters.isInRange, isReceived: adapters.isReceived, isPaired: adapters.isPaired
      ))
    timer.set(machine.deadline) { [weak self] in self?.feed(.deadline) }
    for action in actions { perform(action) }
    // Most inputs do not change the state.
    guard state != reportedState else { return }
    if !machine.state.occupiesLink { context.scheduler.leave(device) }
    reportState()
  }

  private func perform(_ action: LinkMachine.Action) {
    switch action {
    case .connect: connect()
    case .subscribe:
      run { [services] central in .subscribed(await services.subscribe(on: central)) }
    case .disconnect:
      resetLink()
      run { [peripheral] central in
        if let peripheral { await central.disconnect(peripheral) }
        return .disconnectCompleted
      }
    case .forget:
      let removal = removalFromBluetoothd()
      run { central in
        await removal(central)
        return .disconnectCompleted
      }
    case .unpair: device.task(removalFromBluetoothd())
    case .online:
      isRequested = false
      becameLive()
    case .offline: feedPresence { $0.linkEnded(at: .now) }
    case .log(let trouble): log(trouble)
    }
  }

  /// Runs an operation on the adapter. Its result is an input.
  private func run(_ operation: @escaping @LoopActor (Central) async -> LinkMachine.Input) {
    device.task { [self] central in feed(await operation(central)) }
  }

  // MARK: Links on demand

  /// A command waits for a link.
  /// - Parameter deadline: the end of its time to live; it waits for the next visit if that comes a minute or more before.
  func commandWaits(until deadline: Moment?) {
    if let deadline, presence.isDue(before: deadline) { return }
    needsLinkNow()
  }

  override func withLink(within seconds: Int, _ body: @escaping LinkRequests.Body) {
    if machine.state.isLive { return body(nil) }
    guard isConnectable else { return body(device.obstacle ?? device.offlineReason) }
    // When it waits no longer, the link may not be urgent any more.
    let body: LinkRequests.Body = { [weak self] obstacle in
      body(obstacle)
      self?.chooseAgain()
    }
    if requests.add(for: seconds, body, trouble: { [weak device] in device?.description.lastError }) {
      needsLinkNow()
    }
  }
}
