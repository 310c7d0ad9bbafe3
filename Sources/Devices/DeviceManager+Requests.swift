import Configuration
import GATT

/// Requests that change devices. What they change is kept in the state database, and the rest follows from
/// ``DeviceManager/reconcile()``.
extension DeviceManager {
  private func known(_ id: DeviceID) throws(RequestError) -> Device {
    if let device = registry.byID[id] { return device }
    let near = nearest(to: id.description, among: registry.byID.keys.map(\.description))
    throw RequestError("no device is called \(id)" + (near.map { ": did you mean \($0)?" } ?? ""))
  }

  private func checkFree(_ id: DeviceID, for address: BluetoothAddress) throws(RequestError) {
    if let other = registry.byID[id], other.address != address {
      throw RequestError("the id \(id) is in use by \(other.address)")
    }
    if let other = BluetoothAddress(compact: id.description[...]), other != address {
      throw RequestError("the id \(id) is that of another micro:bit, \(other)")
    }
  }

  /// Adds a device that no entry matches, or that was removed.
  /// - Parameter period: the desired period; nil: the configured one, or that of earlier requests.
  package func add(
    _ address: BluetoothAddress, _ options: DeviceOptions, period: Int?
  ) throws(RequestError) -> DeviceDescription {
    if let id = options.id { try checkFree(id, for: address) }
    if registry.byAddress[address] == nil, deviceCount >= Self.capacity {
      throw RequestError("the limit of \(Self.capacity) devices is reached")
    }
    let before = store.records[address] ?? DeviceRecord(identifier: address)
    store.change(address) { record in
      record.isAdded = true
      record.isRemoved = false
      record.changes.add(options)
    }
    reconcile()
    guard let device = registry.byAddress[address] else {
      store.change(address) { $0 = before }
      throw RequestError("\(address) is pinned to another gateway: see devices[].gateway of config.json")
    }
    if let period { setPeriod(.integer(period), of: device) }
    device.report(.added)
    return device.description
  }

  package func remove(_ id: DeviceID) throws(RequestError) -> BluetoothAddress {
    let device = try known(id)
    let isConfigured = configuration.device(matching: device.address, device.advertisement) != nil
    store.change(device.address) { record in
      let before = record
      record = DeviceRecord(identifier: device.address)
      (record.id, record.advertisement) = (before.id, before.advertisement)
      record.isRemoved = isConfigured
    }
    reconcile()
    return device.address
  }

  package func rename(_ id: DeviceID, to new: DeviceID) throws(RequestError) {
    let device = try known(id)
    try checkFree(new, for: device.address)
    if case .other(let gateway) = device.owner {
      throw RequestError(
        "\(id) is held by the gateway \(gateway), which knows it by this id: rename it there first")
    }
    store.change(device.address) { $0.changes.id = new }
    reconcile()
  }

  /// - Returns: nil when the device is not this gateway's any more.
  package func change(
    _ id: DeviceID, _ update: DeviceOptionsUpdate
  ) throws(RequestError) -> DeviceDescription? {
    let device = try known(id)
    if update.period != .keep, case .other(let gateway) = device.owner {
      throw RequestError("\(id) is held by the gateway \(gateway): its period is set there")
    }
    store.change(device.address) { $0.changes.apply(update) }
    reconcile()
    guard let changed = registry.byAddress[device.address] else { return nil }
    switch update.period {
    case .keep: break
    case .reset: setPeriod(nil, of: changed)
    case .set(let period): setPeriod(.integer(period), of: changed)
    }
    return changed.description
  }

  private func setPeriod(_ value: Value?, of device: Device) {
    let index = device.description.profile.alive?.period
    if let index { device.channels[index].writer?.override(value) }
  }

  /// - Returns: the state of its session after it.
  package func reconnect(_ id: DeviceID) throws(RequestError) -> PeripheralSession.State {
    let device = try known(id)
    guard device.settings.isEnabled.value else {
      throw RequestError("\(id) is disabled: enable it by device/options")
    }
    device.session.reconnect()
    return device.state
  }
}
