import EventLoop
import DBus

/// Discovery and the removal of old devices.
extension Bluetoothd {
  // MARK: Calls

  mutating func setDiscoveryFilter(_ request: DBusCall, _ number: Int) throws(DBusError) {
    guard adapters[number].power == .on else { throw .notReady }
    let reportsAll = try DiscoveryFilter.reportsAll(request.arguments[0])
    adapters[number].discoverers[request.client, default: Adapter.DiscoveryClient()].reportsAll = reportsAll
    reply(to: request)
  }

  mutating func startDiscovery(_ request: DBusCall, _ number: Int) throws(DBusError) {
    guard adapters[number].power == .on else { throw .notReady }
    guard !adapters[number].refusesScans, adapters[number].hasLE,
      adapters[number].discoverers[request.client]?.active != true
    else {
      throw .alreadyInProgress
    }
    let first = !adapters[number].isDiscovering
    adapters[number].discoverers[request.client, default: Adapter.DiscoveryClient()].active = true
    reply(to: request)
    guard first else { return }
    change(adapter: number, [("Discovering", .boolean(true))])
    beginScan(of: number)
  }

  mutating func stopDiscovery(_ request: DBusCall, _ number: Int) throws(DBusError) {
    guard adapters[number].power == .on else { throw .notReady }
    guard adapters[number].discoverers[request.client]?.active == true else {
      throw .failed("No discovery started")
    }
    adapters[number].discoverers[request.client]?.active = false
    reply(to: request)
    if !adapters[number].isDiscovering {
      endDiscovery(of: number)
      startConnects(of: number)
    }
  }

  mutating func endDiscovery(ofLeaving name: String) {
    for number in adapters.indices {
      guard adapters[number].discoverers.removeValue(forKey: name) != nil, !adapters[number].isDiscovering,
        adapters[number].power == .on
      else { continue }
      // Signalled even if this client had stopped before.
      endDiscovery(of: number)
    }
  }

  private mutating func endDiscovery(of number: Int) {
    adapters[number].scan += 1
    invalidateStrengths(of: number)
    change(adapter: number, [("Discovering", .boolean(false))])
  }

  /// Removes the signal strengths, which are unknown without discovery; that of the last found device first.
  mutating func invalidateStrengths(of number: Int) {
    for key in adapters[number].found.reversed() where devices[key] != nil {
      change(device: key, [("RSSI", nil)])
    }
    adapters[number].found.removeAll()
  }

  // MARK: Scans

  private mutating func beginScan(of number: Int) {
    adapters[number].scan += 1
    adapters[number].foundInScan.removeAll(keepingCapacity: true)
    let scan = adapters[number].scan
    plan(at: now + timing.scan) { $0.endScan(of: number, scan) }
    for peripheral in peripherals.indices {
      expectAdvertisement(of: DeviceKey(adapter: number, peripheral: peripheral))
    }
  }

  /// The peripheral as each adapter may know it.
  private func keys(ofPeripheral index: Int) -> [DeviceKey] {
    adapters.indices.map { DeviceKey(adapter: $0, peripheral: index) }
  }

  /// Schedules the next advertisement of a peripheral for all adapters.
  mutating func expectAdvertisement(of peripheral: Int) {
    for key in keys(ofPeripheral: peripheral) { expectAdvertisement(of: key) }
  }

  /// Replaces the service data of a peripheral: it is another advertisement, which the controller does not filter.
  mutating func advertise(_ index: Int, _ service: String, _ bytes: [UInt8]?) {
    peripherals[index].serviceData[service] = bytes
    for key in keys(ofPeripheral: index) { adapters[of: key].foundInScan.remove(key) }
    expectAdvertisement(of: index)
  }

  mutating func rename(_ index: Int, to name: String) {
    peripherals[index].name = name
    for key in keys(ofPeripheral: index) {
      change(device: key, [("Name", .string(name)), ("Alias", .string(peripherals[index].alias))])
    }
  }

  /// Schedules the next advertisement that an adapter receives. Once per scan: the controller filters duplicates.
  private mutating func expectAdvertisement(of key: DeviceKey) {
    guard adapters[of: key].isDiscovering, !adapters[of: key].foundInScan.contains(key), isReachable(key)
    else { return }
    let delay = timing.advertising * Double.random(in: 0..<1, using: &random)
    let scan = adapters[of: key].scan
    plan(at: now + delay) { $0.find(key, scan) }
  }

  /// Whether the adapter receives the peripheral's advertisements, and can connect to it.
  func isReachable(_ key: DeviceKey) -> Bool {
    peripherals[key].radio.strength(at: key.adapter) != nil
  }

  /// A scan ends, unless discovery has, and the next begins.
  private mutating func endScan(of number: Int, _ scan: UInt64) {
    guard scan == adapters[number].scan else { return }
    startConnects(of: number, betweenScans: true)
    beginScan(of: number)
  }

  /// A peripheral advertises.
  private mutating func find(_ key: DeviceKey, _ scan: UInt64) {
    guard scan == adapters[of: key].scan, let mean = peripherals[key].radio.strength(at: key.adapter),
      adapters[of: key].foundInScan.insert(key).inserted
    else { return }
    let rssi = Int16(clamping: mean + Int.random(in: -3...3, using: &random))
    if let device = devices[key] {
      devices[key]?.lastFound = now
      let reportsAll = adapters[of: key].discoverers.values.contains { $0.active && $0.reportsAll }
      func isNew(_ property: ObjectTree.Property) -> Bool {
        tree.value(device.path, BlueZName.device, property.name) != property.value
      }
      let signal: [ObjectTree.Property] = [("RSSI", .int16(rssi))]
      let data = Describe.data(peripherals[key]).filter { $0.value != nil && (reportsAll || isNew($0)) }
      let changes = signal.filter(isNew) + data
      if !changes.isEmpty { change(device: key, changes) }
    } else {
      addDevice(key, rssi: rssi)
      awaitExpiry(key, at: now + timing.temporary)
    }
    if !adapters[of: key].found.contains(key) { adapters[of: key].found.append(key) }
  }

  // MARK: Devices

  private mutating func addDevice(_ index: DeviceKey, rssi: Int16?) {
    let peripheral = peripherals[index]
    let known = stored.contains(index)
    let path = BlueZName.devicePath(peripheral.address, of: adapters[of: index].path)
    devices[index] = Device(path: path, lastFound: now, expiry: now, discovered: known)
    let interfaces = Describe.device(
      peripheral, of: adapters[of: index].path, rssi: rssi,
      connected: peripheral.radio.linked == index.adapter,
      bonded: bonds.contains(index), uuids: known ? peripheral.uuids : peripheral.advertised)
    add(path, .device(index), under: adapters[of: index].path, interfaces)
  }

  /// Adds the stored devices.
  mutating func addStoredDevices(of number: Int) {
    for index in stored.sorted() where index.adapter == number {
      addDevice(index, rssi: nil)
      guard peripherals[index].radio.linked == number else { continue }
      // A link that has survived a killed bluetoothd is ended by the next one after its start.
      devices[index]?.link = .disconnecting(Device.Disconnecting(resolved: false))
      beginAttempt(index)
      planForLink(of: index, after: .milliseconds(15)) { $0.finishDisconnecting(index) }
    }
  }

  private mutating func awaitExpiry(_ index: DeviceKey, at deadline: Moment) {
    devices[index]?.expiry = deadline
    plan(at: deadline) { $0.expire(index, deadline) }
  }

  /// A temporary device has expired, unless it was found or connected meanwhile.
  private mutating func expire(_ index: DeviceKey, _ deadline: Moment) {
    guard let device = devices[index], !stored.contains(index), device.expiry == deadline else { return }
    let end = device.lastFound + timing.temporary
    guard case .none = device.link, end <= now else {
      return awaitExpiry(index, at: max(end, now + timing.temporary / 30))
    }
    removeObject(of: index)
  }

  /// Removes a device object.
  mutating func removeObject(of index: DeviceKey) {
    endPairing(index, .failure(.connectionAttemptFailed))
    guard let device = devices.removeValue(forKey: index) else { return }
    for channel in device.subscriptions.values.compactMap(\.channel) { emit(.hangUp(channel)) }
    adapters[of: index].found.removeAll { $0 == index }
    emit(tree.remove(device.path))
  }

  mutating func removeDevice(_ request: DBusCall) throws(DBusError) {
    guard let path = request.arguments.first?.text, case .device(let index)? = tree.role(of: path) else {
      throw .doesNotExist
    }
    if isStuck(index) { return emit(.crash) }
    stored.remove(index)
    bonds.remove(index)
    if devices[index]?.isConnected == true {
      return beginDisconnecting(index, answering: request, removes: true)
    }
    cancelConnect(index, .canceled)
    removeObject(of: index)
    reply(to: request)
  }
}
