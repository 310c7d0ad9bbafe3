import EventLoop
import DBus

/// Connect, Disconnect and lost links.
extension Bluetoothd {
  // MARK: Connect

  mutating func connect(_ request: DBusCall, _ index: DeviceKey) throws(DBusError) {
    guard adapters[of: index].power == .on else { throw .failed("Input/output error") }
    guard let device = devices[index] else { return }
    switch device.link {
    case .waiting, .linking, .linked: throw .failed("Operation already in progress")
    // During a Disconnect the link is up: the reply is a success, and the link ends all the same.
    case .resolving, .up, .disconnecting: return reply(to: request)
    case .none: break
    }
    beginConnecting(index, request)
    planForLink(of: index, after: timing.connectTimeout) { $0.cancelConnect(index, .abortByLocal) }
  }

  /// Waits for the radio, and then for the peripheral.
  mutating func beginConnecting(_ index: DeviceKey, _ request: DBusCall) {
    beginAttempt(index)
    devices[index]?.link = .waiting(request)
    adapters[of: index].connecting.append(index)
    startConnects(of: index.adapter)
  }

  /// Invalidates the events scheduled for the device's link.
  mutating func beginAttempt(_ index: DeviceKey) {
    let attempt = makeNumber()
    devices[index]?.attempt = attempt
  }

  /// Connects to the first waiting peripheral that advertises. The radio makes one link at a time.
  mutating func startConnects(of number: Int, betweenScans: Bool = false) {
    while adapters[number].linking == nil, !adapters[number].isDiscovering || betweenScans {
      let next = adapters[number].connecting.first { key in
        if case .waiting = devices[key]?.link { isReachable(key) } else { false }
      }
      guard let next, case .waiting(let call) = devices[next]?.link else { return }
      devices[next]?.link = .linking(call)
      adapters[number].linking = next
      // The exchange of features, after Connected is true, is the last eighth.
      planForLink(of: next, after: timing.connect * 7 / 8) { $0.linked(next) }
    }
  }

  /// The radio has established the link.
  private mutating func linked(_ index: DeviceKey) {
    guard case .linking(let call) = devices[index]?.link else { return }
    adapters[of: index].linking = nil
    guard isReachable(index) else {
      // The peripheral has gone out of range: wait again.
      devices[index]?.link = .waiting(call)
      return startConnects(of: index.adapter)
    }
    adapters[of: index].connecting.removeAll { $0 == index }
    peripherals[index].radio.linked = index.adapter
    devices[index]?.link = .linked(call)
    stored.insert(index)
    change(device: index, [("Connected", .boolean(true))])
    planForLink(of: index, after: timing.connect / 8) { $0.featured(index) }
    startConnects(of: index.adapter)
  }

  /// The features are exchanged: Connect is answered.
  private mutating func featured(_ index: DeviceKey) {
    guard let device = devices[index], case .linked(let call) = device.link else { return }
    devices[index]?.link = .resolving
    let isPairing = device.pairing == call
    // The peripheral may have lost its part of the bond.
    if bonds.contains(index), !peripherals[index].security.hasBond { lose(index) }
    if !isPairing { reply(to: call) }
    guard case .resolving = devices[index]?.link else { return startConnects(of: index.adapter) }
    beginPairing(index)
    // A caller of the real bluetoothd, too, does not find the services immediately after the reply.
    planForLink(of: index, after: timing.connect / 100) { $0.resolved(index) }
  }

  /// Service discovery is complete.
  private mutating func resolved(_ index: DeviceKey) {
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
    // bluetoothd subscribes again.
    for (handle, subscription) in devices[index]?.subscriptions ?? [:] where !subscription.clients.isEmpty {
      perform(.subscribe(handle, []), index)
    }
    if bonds.contains(index) { endPairing(index, .success([])) }
  }

  /// Ends a Connect without a link.
  mutating func cancelConnect(_ index: DeviceKey, _ error: DBusError) {
    guard let device = devices[index] else { return }
    switch device.link {
    case .waiting(let call), .linking(let call):
      devices[index]?.link = .none
      devices[index]?.lastFound = now
      adapters[of: index].connecting.removeAll { $0 == index }
      if adapters[of: index].linking == index { adapters[of: index].linking = nil }
      if device.pairing != call { refuse(call, error) }
      if adapters[of: index].power == .on { startConnects(of: index.adapter) }
    case .none, .linked, .resolving, .up, .disconnecting: break
    }
  }

  // MARK: Disconnect

  mutating func disconnect(_ request: DBusCall, _ index: DeviceKey) {
    guard let device = devices[index] else { return }
    switch device.link {
    case .none: reply(to: request)
    case .waiting, .linking:
      cancelConnect(index, .canceled)
      reply(to: request)
    case .linked, .resolving, .up, .disconnecting:
      beginDisconnecting(index, answering: request, removes: false)
    }
  }

  /// Begins to disconnect, or joins a Disconnect in progress.
  /// - Parameter removes: whether the device is removed when the link has ended.
  mutating func beginDisconnecting(_ index: DeviceKey, answering call: DBusCall, removes: Bool) {
    guard let device = devices[index], device.isConnected else { return }
    var disconnecting = Device.Disconnecting(resolved: device.isUsable)
    var isFirst = true
    switch device.link {
    case .disconnecting(let current): (disconnecting, isFirst) = (current, false)
    case .linked(let connect): refuse(connect, .canceled)
    case .none, .waiting, .linking, .resolving, .up: break
    }
    disconnecting.calls.append(call)
    if removes { disconnecting.removes = true }
    devices[index]?.link = .disconnecting(disconnecting)
    if isFirst { planForLink(of: index, after: timing.disconnect) { $0.finishDisconnecting(index) } }
  }

  /// The delay of a Disconnect is over.
  mutating func finishDisconnecting(_ index: DeviceKey) {
    guard case .disconnecting(let disconnecting) = devices[index]?.link else { return }
    unlink(index)
    if disconnecting.resolved { change(device: index, [("ServicesResolved", .boolean(false))]) }
    hangUpChannels(of: index)
    for call in disconnecting.calls { reply(to: call) }
    change(device: index, [("Connected", .boolean(false))])
    if disconnecting.removes {
      removeObject(of: index)
    } else {
      failOperations(of: index)
      endPairing(index, .failure(.authenticationCanceled))
    }
    startConnects(of: index.adapter)
  }

  // MARK: Loss

  /// The link is ended by the peripheral, the radio, or the adapter's power.
  mutating func lose(_ index: DeviceKey) {
    guard let device = devices[index], device.isConnected else { return }
    unlink(index)
    if case .linked(let call) = device.link, device.pairing != call {
      refuse(call, .abortByLocal)
    }
    let connected: (String, DBusValue?) = ("Connected", .boolean(false))
    change(device: index, device.isUsable ? [("ServicesResolved", .boolean(false)), connected] : [connected])
    hangUpChannels(of: index)
    if case .disconnecting(let disconnecting) = device.link {
      for call in disconnecting.calls { reply(to: call) }
      if disconnecting.removes { return removeObject(of: index) }
    }
    failOperations(of: index)
    endPairing(index, .failure(.authenticationCanceled))
  }

  private mutating func unlink(_ index: DeviceKey) {
    devices[index]?.link = .none
    for handle in devices[index]?.subscriptions.keys.sorted() ?? [] {
      devices[index]?.subscriptions[handle]?.isConfigured = false
    }
    beginAttempt(index)
    peripherals[index].radio.linked = nil
    peripherals[index].values.disconnected()
    expectAdvertisement(of: index.peripheral)
    // Other adapters may wait for it.
    for number in adapters.indices where number != index.adapter { startConnects(of: number) }
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
  mutating func hangUp(_ index: DeviceKey) {
    lose(index)
    startConnects(of: index.adapter)
  }

  /// Pairing was not confirmed: link and device end, signalled by the removal of the objects only.
  mutating func endPairing(_ index: DeviceKey) {
    stored.remove(index)
    bonds.remove(index)
    unlink(index)
    removeObject(of: index)
    startConnects(of: index.adapter)
  }

  /// The supervision time-out is over.
  mutating func superviseLink(_ index: DeviceKey) {
    // The peripheral may have returned and gone again.
    if let since = peripherals[index].radio.goneSince, since + timing.supervision <= now {
      hangUp(index)
    }
  }
}
