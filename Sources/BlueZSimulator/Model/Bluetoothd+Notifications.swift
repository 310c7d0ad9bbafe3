import EventLoop
import DBus
import Peripherals

/// Subscriptions and notifications.
extension Bluetoothd {
  // MARK: Calls

  mutating func startNotify(
    _ request: DBusCall, _ index: DeviceKey, _ characteristic: GATTDatabase.Characteristic
  ) throws(DBusError) {
    guard let device = devices[index] else { return }
    var subscription = device.subscriptions[characteristic.handle, default: Device.Subscription()]
    if subscription.socket != nil { throw .notifyAcquired }
    guard characteristic.notifies || characteristic.indicates else { throw .notSupported }
    if subscription.clients.contains(request.client) {
      guard device.isUsable else { throw .inProgress }
      return reply(to: request)
    }
    subscription.clients.append(request.client)
    devices[index]?.subscriptions[characteristic.handle] = subscription
    // The call succeeds without a link, and the subscription follows on the next one.
    guard device.isUsable else { return reply(to: request) }
    if subscription.isConfigured { return subscribed([request], index, characteristic.handle) }
    for (position, operation) in device.operations.enumerated() {
      if case .subscribe(characteristic.handle, let others) = operation {
        devices[index]?.operations[position] = .subscribe(characteristic.handle, others + [request])
        return
      }
    }
    perform(.subscribe(characteristic.handle, [request]), index)
  }

  mutating func stopNotify(_ request: DBusCall, _ index: DeviceKey, _ handle: UInt16) throws(DBusError) {
    switch devices[index]?.subscriptions[handle]?.socket {
    case .stuck: return emit(.crash)
    case .asked, .open:
      // The socket ends, whoever the caller is.
      releaseSocket(index, handle)
    case nil:
      guard devices[index]?.subscriptions[handle]?.clients.contains(request.client) == true else {
        throw .failed("No notify session started")
      }
      removeClient(request.client, index, handle)
    }
    reply(to: request)
  }

  mutating func acquireNotify(
    _ request: DBusCall, _ index: DeviceKey, _ characteristic: GATTDatabase.Characteristic
  ) throws(DBusError) {
    guard let device = devices[index], device.isUsable else { throw .notConnected }
    let present = device.subscriptions[characteristic.handle]
    if present?.socket != nil { throw .notifyAcquired }
    if present?.isActive == true { throw .inProgress }
    guard characteristic.notifies else { throw .notSupported }
    devices[index]?.subscriptions[characteristic.handle] = Device.Subscription(
      socket: .asked(by: request.client))
    // The property can be read from now on, but is signalled only when there is a socket.
    if let path = path(of: characteristic.handle, in: index) {
      _ = tree.set(path, BlueZName.characteristic, [("NotifyAcquired", .boolean(true))])
    }
    perform(.acquire(characteristic.handle, request), index)
  }

  // MARK: Subscriptions

  /// The client configuration has been written: replies to callers of StartNotify.
  mutating func subscribed(_ calls: [DBusCall], _ index: DeviceKey, _ handle: UInt16) {
    guard let path = path(of: handle, in: index), let subscription = devices[index]?.subscriptions[handle]
    else { return }
    devices[index]?.subscriptions[handle]?.isConfigured = true
    if tree.value(path, BlueZName.characteristic, "Notifying") != .boolean(true) {
      change(characteristic: handle, of: index, "Notifying", .boolean(true))
    }
    // A call of a client that has unsubscribed meanwhile is never answered.
    for call in calls where subscription.clients.contains(call.client) { reply(to: call) }
    startSampling(index, handle)
  }

  /// The client configuration could not be written: the subscriptions end, Notifying does not change.
  mutating func refuse(_ calls: [DBusCall], _ error: DBusError, _ index: DeviceKey, _ handle: UInt16) {
    for call in calls { refuse(call, error) }
    // All clients are in the operation; others may have acquired the notifications meanwhile.
    if devices[index]?.subscriptions[handle]?.socket == nil { devices[index]?.subscriptions[handle] = nil }
  }

  /// The client configuration has been written: replies to AcquireNotify with a socket.
  mutating func acquired(_ call: DBusCall, _ index: DeviceKey, _ handle: UInt16) {
    guard case .asked = devices[index]?.subscriptions[handle]?.socket else { return }
    let channel = ChannelID(number: makeNumber())
    devices[index]?.subscriptions[handle] = Device.Subscription(socket: .open(channel), isConfigured: true)
    change(characteristic: handle, of: index, "NotifyAcquired", .boolean(true))
    emit(.open(channel, for: call))
    startSampling(index, handle)
  }

  func isStuck(_ index: DeviceKey) -> Bool {
    devices[index]?.subscriptions.values.contains { $0.socket == .stuck } == true
  }

  /// bluetoothd subscribes again on a new link.
  mutating func endNotifications(ofLeaving name: String) {
    for (index, device) in devices {
      for (handle, subscription) in device.subscriptions {
        if subscription.clients.contains(name) { removeClient(name, index, handle) }
        if subscription.socket == .asked(by: name) {
          devices[index]?.subscriptions[handle]?.socket = .stuck
        }
      }
    }
  }

  /// Closes the socket of an AcquireNotify.
  mutating func releaseSocket(_ index: DeviceKey, _ handle: UInt16) {
    if let channel = devices[index]?.subscriptions[handle]?.channel { emit(.hangUp(channel)) }
    devices[index]?.subscriptions[handle] = nil
    change(characteristic: handle, of: index, "NotifyAcquired", .boolean(false))
  }

  private mutating func removeClient(_ name: String, _ index: DeviceKey, _ handle: UInt16) {
    devices[index]?.subscriptions[handle]?.clients.removeAll { $0 == name }
    guard devices[index]?.subscriptions[handle]?.isActive == false else { return }
    devices[index]?.subscriptions[handle] = nil
    guard let path = path(of: handle, in: index),
      tree.value(path, BlueZName.characteristic, "Notifying") == .boolean(true)
    else { return }
    change(characteristic: handle, of: index, "Notifying", .boolean(false))
  }

  // MARK: Values

  /// The client configuration has been written: a sensor's samples begin.
  private mutating func startSampling(_ index: DeviceKey, _ handle: UInt16) {
    peripherals[index].values.subscriptionChanged(handle, at: now)
    expectValues(of: index.peripheral)
  }

  /// The characteristics with subscribers on the present link, in order.
  func subscribed(to index: DeviceKey) -> [UInt16] {
    (devices[index]?.subscriptions ?? [:]).compactMap { $0.value.isConfigured ? $0.key : nil }.sorted()
  }

  /// Schedules the next sample or generated value.
  mutating func expectValues(of index: Int) {
    let next = peripherals[index].values.next(for: subscribed(to: key(ofPeripheral: index)))
    guard let next, next != peripherals[index].due else { return }
    peripherals[index].due = next
    plan(at: next) { $0.takeValues(of: index, next) }
  }

  /// A sensor takes a sample for subscribers, or a generator sets the next value.
  private mutating func takeValues(of index: Int, _ deadline: Moment) {
    // Otherwise another event has been scheduled since.
    guard peripherals[index].due == deadline else { return }
    peripherals[index].due = nil
    let key = key(ofPeripheral: index)
    for notification in peripherals[index].values.advance(to: now, for: subscribed(to: key)) {
      notify(key, notification)
    }
    expectValues(of: index)
  }

  // MARK: Notifications

  /// Notifies the subscribers.
  mutating func notify(_ index: DeviceKey, _ notification: PeripheralValues.Notification) {
    let (handle, bytes) = (notification.handle, notification.bytes)
    guard let subscription = devices[index]?.subscriptions[handle], subscription.isConfigured,
      !isDropped(index, handle), peripherals[index].radio.send()
    else { return }
    if let channel = subscription.channel {
      emit(.packet(channel, bytes))
    } else if let path = path(of: handle, in: index) {
      let signal = tree.set(path, BlueZName.characteristic, [("Value", .bytes(bytes))])
      emit(.notification(signal, bytes, peripheral: index.peripheral, handle: handle))
    }
  }

  /// The firmware's queue has one place, which a reply about the data log takes; indications have their own.
  private func isDropped(_ index: DeviceKey, _ handle: UInt16) -> Bool {
    guard peripherals[index].values.dataLog.fillsQueue else { return false }
    let characteristic = peripherals[index].database.characteristic(handle)
    return characteristic?.content != .dataLog && characteristic?.notifies == true
  }
}
