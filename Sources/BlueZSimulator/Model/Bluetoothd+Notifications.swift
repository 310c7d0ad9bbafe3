import DBus

/// Notifications: who gets them, and when they are due.
extension Bluetoothd {
  // MARK: Calls

  mutating func startNotify(
    _ request: Request, _ index: Int, _ characteristic: GATTDatabase.Characteristic,
    at now: ContinuousClock.Instant
  ) throws(BlueZError) {
    guard let device = devices[index] else { return }
    var subscription = device.subscriptions[characteristic.handle, default: Device.Subscription()]
    if subscription.channel != nil { throw .notifyAcquired }
    guard characteristic.notifies || characteristic.indicates else { throw .notSupported }
    if !subscription.clients.contains(request.sender) { subscription.clients.append(request.sender) }
    devices[index]?.subscriptions[characteristic.handle] = subscription
    // Without a link the answer is ok all the same, and the subscription follows with the next one.
    if device.isUsable { subscribe(index, characteristic.handle, at: now) }
    emit(.reply(request.id, []))
  }

  mutating func stopNotify(_ request: Request, _ index: Int, _ handle: UInt16) throws(BlueZError) {
    guard devices[index]?.subscriptions[handle]?.clients.contains(request.sender) == true else {
      throw .failed("No notify session started")
    }
    removeClient(request.sender, index, handle)
    emit(.reply(request.id, []))
  }

  mutating func acquireNotify(
    _ request: Request, _ index: Int, _ characteristic: GATTDatabase.Characteristic,
    at now: ContinuousClock.Instant
  ) throws(BlueZError) {
    guard let device = devices[index], device.isUsable else { throw .notConnected }
    let present = device.subscriptions[characteristic.handle]
    if present?.channel != nil { throw .notifyAcquired }
    if present?.isActive == true { throw .inProgress }
    guard characteristic.notifies else { throw .notSupported }
    let channel = makeChannel()
    devices[index]?.subscriptions[characteristic.handle] = Device.Subscription(channel: channel)
    change(characteristic: characteristic.handle, of: index, "NotifyAcquired", .boolean(true))
    emit(.open(channel, for: request.id))
    startSampling(index, at: now)
  }

  // MARK: Subscriptions

  /// Tells of a subscription at the peripheral that was not there before.
  private mutating func subscribe(_ index: Int, _ handle: UInt16, at now: ContinuousClock.Instant) {
    guard let path = path(of: handle, in: index) else { return }
    if tree.value(path, BlueZName.characteristic, "Notifying") != .boolean(true) {
      change(characteristic: handle, of: index, "Notifying", .boolean(true))
    }
    startSampling(index, at: now)
  }

  /// bluetoothd subscribes again by itself when a link is back.
  mutating func resubscribe(_ index: Int, at now: ContinuousClock.Instant) {
    for (handle, subscription) in devices[index]?.subscriptions ?? [:] where subscription.isActive {
      subscribe(index, handle, at: now)
    }
  }

  mutating func endNotifications(ofLeaving name: String) {
    for (index, device) in devices {
      for (handle, subscription) in device.subscriptions where subscription.clients.contains(name) {
        removeClient(name, index, handle)
      }
    }
  }

  private mutating func removeClient(_ name: String, _ index: Int, _ handle: UInt16) {
    devices[index]?.subscriptions[handle]?.clients.removeAll { $0 == name }
    guard devices[index]?.subscriptions[handle]?.isActive == false else { return }
    devices[index]?.subscriptions[handle] = nil
    guard let path = path(of: handle, in: index),
      tree.value(path, BlueZName.characteristic, "Notifying") == .boolean(true)
    else { return }
    change(characteristic: handle, of: index, "Notifying", .boolean(false))
  }

  // MARK: Samples

  private static let temperature: UInt16 = 0x16

  /// Begins a chain of sample events, unless one is under way.
  private mutating func startSampling(_ index: Int, at now: ContinuousClock.Instant) {
    guard peripherals[index].microBit != nil else { return }
    peripherals[index].microBit?.settle(at: now)
    replan(index)
  }

  /// Plans the next sample anew; what was planned before no longer counts.
  mutating func replan(_ index: Int) {
    guard let next = peripherals[index].microBit?.nextSample else { return }
    chains[index] += 1
    schedule.add(.sample(peripheral: index, chain: chains[index]), at: next)
  }

  mutating func sample(_ index: Int, _ chain: UInt64, at now: ContinuousClock.Instant) {
    guard chains[index] == chain, let device = devices[index], device.isUsable,
      let subscription = device.subscriptions[Self.temperature], subscription.isActive,
      let bytes = peripherals[index].microBit?.sample(at: now)
    else { return }
    if let next = peripherals[index].microBit?.nextSample {
      schedule.add(.sample(peripheral: index, chain: chain), at: next)
    }
    guard !peripherals[index].silent, peripherals[index].inRange else { return }
    peripherals[index].sent += 1
    if let channel = subscription.channel {
      emit(.packet(channel, bytes, from: index))
    } else {
      change(characteristic: Self.temperature, of: index, "Value", .bytes(bytes))
    }
  }
}
