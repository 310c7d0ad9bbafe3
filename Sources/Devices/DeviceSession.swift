import BlueZ
import Configuration
import EventLoop
import GATT
import Log

/// Runs the ``PeripheralSession`` of one device: connects, assigns the characteristics to the channels, subscribes, and
/// ends the link.
final class DeviceSession: @unchecked Sendable {
  // @unchecked: used on the loop's thread alone.

  let adapters: DeviceAdapters
  var machine: PeripheralSession
  /// The number of ``restart()``s: results of tasks from before the last one are ignored.
  private(set) var restartCount = 0
  /// The state last reported to the observers.
  private var reportedState = PeripheralSession.State.absent
  private var timer: LoopTimer?
  /// Nil: the device is always connected.
  private var visits: Visits?
  /// The characteristics of the Device Information Service; empty without a link, or if the link lacks them.
  private var information: [Characteristic] = []
  /// The characteristics after a change of services during `subscribing`, to be handled when the session is live.
  private var changedServices: [Characteristic]?
  var requests = PairingRequests()
  unowned let device: Device

  var context: DeviceContext { device.context }
  var log: Logger { context.log }
  var profile: Profile { device.description.profile }
  private var channels: [Channel] { device.channels }

  init(of device: Device) {
    self.device = device
    adapters = DeviceAdapters(device.context, pinned: device.settings.adapter)
    machine = Self.machine(device)
    visits = device.settings.visitInterval.map { Visits(every: $0, of: self) }
  }

  private static func machine(_ device: Device) -> PeripheralSession {
    let profile = device.description.profile
    return PeripheralSession(
      now: .now,
      interval: profile.alive.map {
        profile.properties[$0.property].poll ?? $0.longestInterval ?? .seconds(1)
      },
      isOnDemand: device.settings.visitInterval != nil, pairing: device.settings.pairing)
  }

  var state: PeripheralSession.State { machine.state }

  /// The adapter of the link, or of the last one.
  var adapter: Adapter { adapters.current }
  /// The object that the adapter has.
  var peripheral: PeripheralID? { adapters.peripheral }
  /// Whether the device may be connected by the adapter now: a session with a link uses that one alone.
  func mayUse(_ adapter: Int) -> Bool {
    occupiesLink ? adapters.isCurrent(adapter) : adapters.isEligible(adapter)
  }

  /// Whether the session uses its link, or is making one.
  var usesLink: Bool {
    switch machine.state {
    case .connecting, .subscribing, .live: true
    case .absent, .waiting, .leaving, .idle, .stopped: false
    }
  }
  /// Whether values that arrive now are readings.
  var isReceiving: Bool { machine.isReceiving }

  // MARK: Inputs

  /// A reading that shows that the link is alive. Called for every notification.
  func readingReceived() { machine.received(at: .now) }

  func setPairing(_ mode: Configuration.PairingMode) { machine.setPairing(mode) }
  func setPeriod(_ milliseconds: Int) { perform(machine.setPeriod(milliseconds)) }
  func unresponsive() { perform(machine.unresponsive()) }
  func reconnect() { perform(machine.reconnect()) }

  /// - Parameter hasNewLink: whether the other gateway has made a link, or a visit, that was not known yet.
  func handedOver(hasNewLink: Bool) {
    // A device that is connected on demand stays there until a visit is overdue.
    if visits != nil, !hasNewLink { return }
    perform(machine.handedOver())
    visits?.visitedElsewhere()
  }

  /// A visit is due, or something waits for a link.
  func demanded() { perform(machine.demanded()) }

  /// The last task of the device has ended.
  func tasksEnded() { perform(machine.visitEnded()) }

  func seen(_ seen: Peripheral, by adapter: Int) {
    adapters.seen(seen, by: adapter)
    rangeChanged()
  }

  /// bluetoothd has removed the peripheral from an adapter.
  func lost(by adapter: Int) {
    adapters.lost(by: adapter)
    rangeChanged()
  }

  /// The link ended.
  func disconnected(_ id: PeripheralID) {
    guard id == peripheral else { return }
    linkEnded()
    perform(machine.disconnected(at: .now))
  }

  /// Why the link ended.
  func linkEnded(of id: PeripheralID, because reason: String) {
    guard id == peripheral, machine.linkEnded(because: reason) else { return }
    device.report(.session)
    context.sessionChanged()
  }

  /// The peripheral has changed its services so that it must not be used.
  func becameUnusable(_ id: PeripheralID, _ reason: String) {
    guard id == peripheral else { return }
    perform(machine.becameUnusable(reason))
  }

  func adapterChanged(_ adapter: Int, isOn: Bool) {
    adapters.adapterChanged(adapter, isOn: isOn)
    if !isOn, context.adapters[adapter] === self.adapter {
      linkEnded()
      perform(machine.adapterWentAway())
    }
    rangeChanged()
  }

  /// What the adapters know of the device has changed, or for how long.
  func rangeChanged() {
    machine.seen(isPaired: adapters.isPaired)
    perform(machine.seen(isReceived: adapters.isReceived) + machine.seen(inRange: adapters.isInRange))
    // The adapter that was waited for may have received it.
    if adapters.isWaiting { connect() }
  }

  /// Starts again after ``stop()``.
  func restart() {
    machine = Self.machine(device)
    visits = device.settings.visitInterval.map { Visits(every: $0, of: self) }
    adapters.pin(device.settings.adapter)
    restartCount += 1
  }

  /// Ends the session and the link.
  func stop() {
    adapters.stopWaiting()
    perform(machine.stop())
    endPairing(.failure(RequestError("the device is disabled or removed, or the gateway is stopping")))
    visits?.stop(context.isStopping ? "the gateway is stopping" : "the device was disabled or removed")
    linkEnded()
    if context.isStopping { return }
    guard let peripheral else { return }
    context.loop.task(of: adapter.central) { central in
      // Its properties may be others on the next link, and a bonded peripheral remembers what is subscribed to.
      central.unsubscribe(peripheral)
      await central.disconnect(peripheral)
    }
  }

  /// The peripheral has changed its services: stops using removed characteristics and starts using added ones.
  func servicesChanged(of id: PeripheralID, _ characteristics: [Characteristic]) {
    guard id == peripheral else { return }
    servicesChanged(characteristics)
  }

  private func servicesChanged(_ characteristics: [Characteristic]) {
    switch machine.state {
    case .live: break
    case .subscribing: return changedServices = characteristics
    case .connecting where machine.awaitsServices:
      if resolve(characteristics) { perform(machine.connected(.connected)) }
      return
    case .absent, .waiting, .connecting, .leaving, .idle, .stopped: return
    }
    log.info("services changed", device.fields)
    let resolution = Resolution(profile, characteristics)
    logCharacteristics(characteristics, resolution)
    let changed = channels.filter { $0.characteristic != resolution.characteristics[$0.index] }
    for channel in changed {
      channel.linkDown()
      channel.characteristicChanged(to: resolution.characteristics[channel.index])
    }
    guard resolution.isSuitable else {
      device.offeredChanged()
      return perform(machine.servicesLost())
    }
    let restart = restartCount
    let visit = visits?.current
    device.task { [self] central in
      for channel in changed {
        let characteristic = channel.characteristic
        do throws(CentralError) {
          try await use(channel, in: visit, on: central)
        } catch {
          if channel.characteristic == characteristic { channel.leaveOut(because: error) }
        }
        guard restartCount == restart, machine.state == .live else { return }
        // Otherwise the services have changed again, and another task uses the new characteristic.
        if channel.characteristic == characteristic || channel.characteristic == nil { channel.linkUp() }
      }
      // Reported last, when commands for the added properties can be carried out.
      device.offeredChanged()
    }
  }

  // MARK: Actions

  func perform(_ actions: [PeripheralSession.Action]) {
    for action in actions {
      switch action {
      case .connect: connect()
      case .subscribe: subscribe()
      case .disconnect: disconnect()
      case .forget: forget()
      case .online: becameLive()
      case .offline: if visits == nil { device.becameOffline() }
      case .setTimer(let delay):
        timer?.cancel()
        timer = context.loop.timer(after: delay) { [weak self] in
          guard let self else { return }
          perform(machine.timer(at: .now))
        }
      case .cancelTimer: timer?.cancel()
      case .report(let trouble): log(trouble)
      }
    }
    // Most inputs do not change the state.
    guard machine.state != reportedState else { return }
    reportedState = machine.state
    if !occupiesLink { adapters.releaseLink() }
    device.report(.session)
    context.sessionChanged()
  }

  /// Chooses the adapter, and connects.
  private func connect() {
    guard machine.state == .connecting else { return adapters.stopWaiting() }
    switch adapters.choose(orWait: { [weak self] in self?.connect() }) {
    case .use(let adapter, let isMove):
      if isMove { log.info("switching to adapter \(adapter.name)", device.fields) }
      machine.seen(isPaired: adapters.isPaired)
      connect(by: adapter)
    case .wait: break
    case .none: perform(machine.connected(.failed(.gone)))
    }
  }

  private func connect(by adapter: Adapter) {
    guard let peripheral else { return perform(machine.connected(.failed(.gone))) }
    log.debug("connecting", ["device": device.id, "adapter": adapter.name])
    let restart = restartCount
    let isPreferred = context.store.records[device.address]?.id != nil && adapters.isReceived
    device.task { [self] central in
      if let failure = await pairFirst(peripheral, restart, on: central) {
        if machine.state != .stopped, restartCount == restart {
          perform(machine.connected(.notPaired(failure)))
        }
        return
      }
      let connection: PeripheralSession.Connection
      do throws(CentralError) {
        let characteristics = try await central.connect(
          peripheral, isPreferred: isPreferred,
          while: { self.restartCount == restart && self.machine.state == .connecting })
        connection = resolve(characteristics) ? .connected : .unsuitable
      } catch {
        connection = .failed(error)
        // Whether a signal still counts depends on the time, too.
        rangeChanged()
      }
      // The device was removed or disabled meanwhile: nothing else would end a new link.
      guard machine.state != .stopped, restartCount == restart else {
        if case .failed = connection { return }
        return await central.disconnect(peripheral)
      }
      perform(machine.connected(connection))
    }
  }

  /// Assigns the characteristics of a new link to the channels.
  /// - Returns: whether the link offers what the profile requires.
  private func resolve(_ characteristics: [Characteristic]) -> Bool {
    let resolution = Resolution(profile, characteristics)
    for channel in channels { channel.characteristicChanged(to: resolution.characteristics[channel.index]) }
    information = resolution.information
    logCharacteristics(characteristics, resolution)
    return resolution.isSuitable
  }

  private func subscribe() {
    let before = device.sequence
    let restart = restartCount
    let visit = visits?.current
    device.task { [self] central in
      do throws(CentralError) {
        for channel in channels { try await subscribe(channel, in: visit, on: central) }
        for property in await visit?.missingValues(on: central) ?? [] {
          log.info("no value of \(property) was notified while it was connected", device.fields)
        }
        guard restartCount == restart else { return }
        perform(machine.subscribed(nil, at: .now))
      } catch {
        guard restartCount == restart else { return }
        let isUnreadable = error.leavesLinkUp && device.sequence == before
        perform(isUnreadable ? machine.unreadable(error) : machine.subscribed(error, at: .now))
      }
    }
  }

  /// Subscribes one channel. A failure that leaves the link usable only excludes the channel, unless the property keeps
  /// the link alive or is the only one.
  private func subscribe(
    _ channel: Channel, in visit: Visit?, on central: isolated Central
  ) async throws(CentralError) {
    do throws(CentralError) {
      try await use(channel, in: visit, on: central)
    } catch {
      let isOptional = profile.alive.map { $0.property != channel.index } ?? (channels.count > 1)
      switch error {
      case .refused where isOptional, .transient where isOptional, .notifyAcquired where isOptional:
        channel.leaveOut(because: error)
      case .refused, .transient, .notifyAcquired, .busy, .unlikely, .timedOut, .gone, .disconnected,
        .keyMissing, .unavailable:
        throw error
      }
    }
  }

  /// Reads the property, and subscribes to it if the link is to last.
  private func use(
    _ channel: Channel, in visit: Visit?, on central: isolated Central
  ) async throws(CentralError) {
    if let visit {
      try await visit.use(channel, on: central)
    } else {
      try await channel.subscribe(on: central)
    }
  }

  private func disconnect() {
    linkEnded()
    let peripheral = peripheral
    device.task { [self] central in
      if let peripheral { await central.disconnect(peripheral) }
      perform(machine.disconnectCompleted())
    }
  }

  /// As ``usesLink``, and while the link is being ended.
  var occupiesLink: Bool { usesLink || machine.state == .leaving }

  private func becameLive() {
    adapters.becameLive()
    if let visits { visits.visited() } else { becameOnline() }
    for channel in channels { channel.linkUp() }
    readInformation()
    visits?.linkUp()
    if let changedServices { servicesChanged(changedServices) }
    changedServices = nil
  }

  func becameOnline() { device.becameOnline(hasInformation: !information.isEmpty) }

  /// Reads model, firmware and serial number, last, as nothing depends on them.
  private func readInformation() {
    let characteristics = information
    guard !characteristics.isEmpty else { return }
    device.task { [self] central in
      var texts: [BluetoothUUID: String] = [:]
      var isUnanswered = false
      for characteristic in characteristics where !isUnanswered {
        do throws(CentralError) {
          texts[characteristic.uuid] = DeviceInformation.text(try await central.read(characteristic))
        } catch .timedOut {
          isUnanswered = true
        } catch {
          log.debug("cannot read its device information: \(error)", device.fields)
        }
      }
      device.learn(information: texts)
      if isUnanswered { unresponsive() }
    }
  }

  /// Resets the state that belongs to a link.
  func linkEnded() {
    for channel in channels { channel.linkDown() }
    information = []
    changedServices = nil
    visits?.linkEnded()
  }

  // MARK: Links on demand

  /// Whether a link can be made on demand: there is none, and the device was visited lately.
  var isConnectable: Bool { visits?.isOnline == true && machine.state != .live }

  /// A command waits for a link.
  /// - Parameter deadline: the end of its time to live; it waits for the next visit if that comes first.
  func demand(before deadline: Moment?) { visits?.demand(before: deadline) }

  /// Calls `body` when there is a link: at once, or when the device was connected on demand; else with the reason why
  /// there is none.
  func withLink(_ body: @escaping LinkWaiters.Body) {
    if machine.state == .live { return body(nil) }
    guard let visits, isConnectable else { return body(device.obstacle ?? "the device is offline") }
    visits.awaitLink(body)
  }
}

extension CentralError {
  /// Whether the link may still be up after this error. Then a failed read may be due to missing pairing.
  fileprivate var leavesLinkUp: Bool {
    switch self {
    case .timedOut, .unlikely: true
    case .transient, .busy, .gone, .disconnected, .refused, .notifyAcquired, .keyMissing, .unavailable:
      false
    }
  }
}
