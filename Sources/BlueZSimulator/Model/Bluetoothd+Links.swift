import EventLoop
import DBus

/// Connect, Disconnect and lost links.
extension Bluetoothd {
  // MARK: Connect

  mutating func connect(_ request: Request, _ index: DeviceKey, at now: Moment) throws(BluetoothdError) {
    guard adapters[of: index].power == .on else { throw .failed("Input/output error") }
    guard let device = devices[index] else { return }
    switch device.link {
    case .waiting, .linking, .linked: throw .failed("Operation already in progress")
    // During a Disconnect the link is up: the reply is a success, and the link ends all the same.
    case .resolving, .up, .disconnecting: return emit(.reply(request.id, []))
    case .none: break
    }
    beginAttempt(index)
    devices[index]?.link = .waiting(request.id)
    adapters[of: index].connecting.append(index)
    expect(.connectTimesOut, of: index, at: now + timing.connectTimeout)
    startConnects(of: index.adapter, at: now)
  }

  /// Invalidates the events scheduled for the device's link.
  mutating func beginAttempt(_ index: DeviceKey) {
    let attempt = makeNumber()
    devices[index]?.attempt = attempt
  }

  /// Connects to the first waiting peripheral that advertises. The radio makes one link at a time.
  mutating func startConnects(of number: Int, at now: Moment, betweenScans: Bool = false) {
    while adapters[number].linking == nil, !adapters[number].isDiscovering || betweenScans {
      let next = adapters[number].connecting.first { key in
        if case .waiting = devices[key]?.link { isReachable(key) } else { false }
      }
      guard let next, case .waiting(let call) = devices[next]?.link else { return }
      devices[next]?.link = .linking(call)
      adapters[number].linking = next
      // The exchange of features, after Connected is true, is the last eighth.
      let delay = timing.connect * 7 / 8
      if delay > .zero { expect(.linked, of: next, at: now + delay) } else { linked(next, at: now) }
    }
  }

  mutating func linked(_ index: DeviceKey, at now: Moment) {
    guard case .linking(let call) = devices[index]?.link else { return }
    adapters[of: index].linking = nil
    guard isReachable(index) else {
      // The peripheral has gone out of range: wait again.
      devices[index]?.link = .waiting(call)
      return startConnects(of: index.adapter, at: now)
    }
    adapters[of: index].connecting.removeAll { $0 == index }
    peripherals[index].radio.connect(to: index.adapter)
    devices[index]?.link = .linked(call)
    devices[index]?.temporary = false
    storage.add(index)
    change(device: index, [("Connected", .boolean(true))])
    if timing.connect > .zero {
      expect(.featured, of: index, at: now + timing.connect / 8)
      startConnects(of: index.adapter, at: now)
    } else {
      featured(index, at: now)
    }
  }

  mutating func featured(_ index: DeviceKey, at now: Moment) {
    guard let device = devices[index], case .linked(let call) = device.link else { return }
    devices[index]?.link = .resolving
    let isPairing = device.pairing?.call == call
    if lacksKey(index) { lose(index, at: now) }
    if !isPairing { emit(.reply(call, [])) }
    guard case .resolving = devices[index]?.link else { return startConnects(of: index.adapter, at: now) }
    beginPairing(index, at: now)
    // A caller of the real bluetoothd, too, does not find the services immediately after the reply.
    if timing.connect > .zero {
      expect(.resolved, of: index, at: now + timing.connect / 100)
    } else {
      resolved(index, at: now)
    }
  }

  mutating func resolved(_ index: DeviceKey, at now: Moment) {
    guard let device = devices[index], case .resolving = device.link else { return }
    devices[index]?.link = .up
    withdrawServices(of: index)
    exportServices(of: index)
    let resolved: (String, DBusValue?) = ("ServicesResolved", .boolean(true))
    if device.discovered {
      change(device: index, [resolved])
    } else {
      devices[index]?.discovered = true
      change(device: index, [("UUIDs", .strings(peripherals[index].uuids)), resolved])
    }
    resubscribe(index, at: now)
    if storage.hasBond(index) { endPairing(index, .success(())) }
  }

  /// Ends a Connect without a link.
  mutating func cancelConnect(_ index: DeviceKey, _ error: BluetoothdError, at now: Moment) {
    guard let device = devices[index] else { return }
    switch device.link {
    case .waiting(let call), .linking(let call):
      devices[index]?.link = .none
      devices[index]?.lastFound = now
      adapters[of: index].connecting.removeAll { $0 == index }
      if adapters[of: index].linking == index { adapters[of: index].linking = nil }
      if device.pairing?.call != call { emit(.refuse(call, error)) }
      if adapters[of: index].power == .on { startConnects(of: index.adapter, at: now) }
    case .none, .linked, .resolving, .up, .disconnecting: break
    }
  }

  // MARK: Disconnect

  mutating func disconnect(_ request: Request, _ index: DeviceKey, at now: Moment) {
    guard let device = devices[index] else { return }
    switch device.link {
    case .none: emit(.reply(request.id, []))
    case .waiting, .linking:
      cancelConnect(index, .canceled, at: now)
      emit(.reply(request.id, []))
    case .linked, .resolving, .up, .disconnecting:
      beginDisconnecting(index, at: now) { $0.calls.append(request.id) }
    }
  }

  /// RemoveDevice of a connected device: first the link, then the device.
  mutating func remove(connected index: DeviceKey, for call: CallID, at now: Moment) {
    beginDisconnecting(index, at: now) { $0.removal = call }
  }

  /// Begins to disconnect, or joins a Disconnect in progress.
  private mutating func beginDisconnecting(
    _ index: DeviceKey, at now: Moment, _ update: (inout Device.Disconnecting) -> Void
  ) {
    guard let device = devices[index] else { return }
    var disconnecting: Device.Disconnecting
    switch device.link {
    case .none, .waiting, .linking: return
    case .disconnecting(let current):
      disconnecting = current
      update(&disconnecting)
      devices[index]?.link = .disconnecting(disconnecting)
      return
    case .linked(let call):
      emit(.refuse(call, .canceled))
      disconnecting = Device.Disconnecting(resolved: false)
    case .resolving:
      disconnecting = Device.Disconnecting(resolved: false)
    case .up:
      disconnecting = Device.Disconnecting(resolved: true)
    }
    update(&disconnecting)
    devices[index]?.link = .disconnecting(disconnecting)
    expect(.disconnects, of: index, at: now + timing.disconnect)
    if timing.disconnect == .zero { finishDisconnecting(index, at: now) }
  }

  /// The delay of a Disconnect is over.
  mutating func finishDisconnecting(_ index: DeviceKey, at now: Moment) {
    guard case .disconnecting(let disconnecting) = devices[index]?.link else { return }
    unlink(index, at: now)
    if disconnecting.resolved { change(device: index, [("ServicesResolved", .boolean(false))]) }
    hangUpChannels(of: index)
    for call in disconnecting.calls { emit(.reply(call, [])) }
    if let removal = disconnecting.removal { emit(.reply(removal, [])) }
    change(device: index, [("Connected", .boolean(false))])
    if disconnecting.removal != nil {
      removeObject(of: index)
    } else {
      failOperations(of: index)
      endPairing(index, .failure(.authenticationCanceled))
    }
    startConnects(of: index.adapter, at: now)
  }

  // MARK: Loss

  /// The link is ended by the peripheral, the radio, or the adapter's power.
  mutating func lose(_ index: DeviceKey, at now: Moment) {
    guard let device = devices[index], device.isConnected else { return }
    unlink(index, at: now)
    switch device.link {
    case .none, .waiting, .linking: break
    case .linked(let call):
      if device.pairing?.call != call { emit(.refuse(call, .abortByLocal)) }
      change(device: index, [("Connected", .boolean(false))])
    case .resolving: change(device: index, [("Connected", .boolean(false))])
    case .up: loseServices(of: index, resolved: true)
    case .disconnecting(let disconnecting):
      loseServices(of: index, resolved: disconnecting.resolved)
      for call in disconnecting.calls + [disconnecting.removal].compactMap({ $0 }) { emit(.reply(call, [])) }
      if disconnecting.removal != nil { return removeObject(of: index) }
    }
    failOperations(of: index)
    endPairing(index, .failure(.authenticationCanceled))
  }

  private mutating func loseServices(of index: DeviceKey, resolved: Bool) {
    let connected: (String, DBusValue?) = ("Connected", .boolean(false))
    change(device: index, resolved ? [("ServicesResolved", .boolean(false)), connected] : [connected])
    hangUpChannels(of: index)
  }

  private mutating func unlink(_ index: DeviceKey, at now: Moment) {
    devices[index]?.link = .none
    for handle in devices[index]?.subscriptions.keys.sorted() ?? [] {
      devices[index]?.subscriptions[handle]?.isConfigured = false
    }
    beginAttempt(index)
    peripherals[index].radio.disconnect()
    peripherals[index].values.disconnected()
    expectAdvertisement(of: index.peripheral, at: now)
    // Other adapters may wait for it.
    for number in adapters.indices where number != index.adapter { startConnects(of: number, at: now) }
  }

  /// The sockets of AcquireNotify end with the link; subscriptions by StartNotify do not.
  private mutating func hangUpChannels(of index: DeviceKey) {
    for (handle, subscription) in devices[index]?.subscriptions ?? [:] where subscription.channel != nil {
      releaseSocket(index, handle)
    }
  }

  private mutating func failOperations(of index: DeviceKey) {
    let operations = devices[index]?.operations ?? []
    devices[index]?.operations = []
    for operation in operations { fail(operation, .unlikely, index) }
  }

  /// A peripheral that does not answer ends the link.
  mutating func hangUp(_ index: DeviceKey, at now: Moment) {
    lose(index, at: now)
    startConnects(of: index.adapter, at: now)
  }

  /// Pairing was not confirmed: link and device end, signalled by the removal of the objects only.
  mutating func endPairing(_ index: DeviceKey, at now: Moment) {
    storage.remove(index)
    unlink(index, at: now)
    removeObject(of: index)
    startConnects(of: index.adapter, at: now)
  }

  mutating func superviseLink(_ index: DeviceKey, at now: Moment) {
    // The peripheral may have returned and gone again.
    if let since = peripherals[index].radio.goneSince, since + timing.supervision <= now {
      hangUp(index, at: now)
    }
  }
}
