import EventLoop
import DBus

/// Discovery and the removal of old devices.
extension Bluetoothd {
  // MARK: Calls

  mutating func setDiscoveryFilter(_ request: DBusCall, _ number: Int) throws(DBusError) {
    guard adapters[number].power == .on else { throw .notReady }
    let filter = try DiscoveryFilter(request.arguments[0])
    adapters[number].discoverers[request.client, default: Adapter.DiscoveryClient()].filter = filter
    reply(to: request)
  }

  mutating func startDiscovery(_ request: DBusCall, _ number: Int, at now: Moment) throws(DBusError) {
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
    beginScan(of: number, at: now)
  }

  mutating func stopDiscovery(_ request: DBusCall, _ number: Int, at now: Moment) throws(DBusError) {
    guard adapters[number].power == .on else { throw .notReady }
    guard adapters[number].discoverers[request.client]?.active == true else {
      throw .failed("No discovery started")
    }
    adapters[number].discoverers[request.client]?.active = false
    reply(to: request)
    if !adapters[number].isDiscovering {
      endDiscovery(of: number)
      startConnects(of: number, at: now)
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

  private mutating func beginScan(of number: Int, at now: Moment) {
    adapters[number].scan += 1
    adapters[number].foundInScan.removeAll(keepingCapacity: true)
    schedule.add(.scanEnds(adapter: number, adapters[number].scan), at: now + timing.scan)
    for peripheral in peripherals.indices {
      expectAdvertisement(of: DeviceKey(adapter: number, peripheral: peripheral), at: now)
    }
  }

  /// Schedules the next advertisement of a peripheral for all adapters.
  mutating func expectAdvertisement(of peripheral: Int, at now: Moment) {
    for number in adapters.indices {
      expectAdvertisement(of: DeviceKey(adapter: number, peripheral: peripheral), at: now)
    }
  }

  /// Replaces the service data of a peripheral: it is another advertisement, which the controller does not filter.
  mutating func advertise(_ index: Int, _ service: String, _ bytes: [UInt8]?, at now: Moment) {
    peripherals[index].serviceData[service] = bytes
    for number in adapters.indices {
      adapters[number].foundInScan.remove(DeviceKey(adapter: number, peripheral: index))
    }
    expectAdvertisement(of: index, at: now)
  }

  mutating func rename(_ index: Int, to name: String) {
    peripherals[index].name = name
    for number in adapters.indices {
      let names: [(String, DBusValue?)] = [
        ("Name", .string(name)), ("Alias", .string(peripherals[index].alias)),
      ]
      change(device: DeviceKey(adapter: number, peripheral: index), names)
    }
  }

  /// Schedules the next advertisement that an adapter receives. Once per scan: the controller filters duplicates.
  private mutating func expectAdvertisement(of key: DeviceKey, at now: Moment) {
    guard adapters[of: key].isDiscovering, !adapters[of: key].foundInScan.contains(key), isReachable(key)
    else { return }
    let delay = timing.advertising * Double.random(in: 0..<1, using: &random)
    schedule.add(.found(peripheral: key, scan: adapters[of: key].scan), at: now + delay)
  }

  /// Whether the adapter receives the peripheral's advertisements, and can connect to it.
  func isReachable(_ key: DeviceKey) -> Bool {
    peripherals[key].radio.strength(at: key.adapter) != nil
  }

  mutating func endScan(of number: Int, _ scan: UInt64, at now: Moment) {
    guard scan == adapters[number].scan else { return }
    startConnects(of: number, at: now, betweenScans: true)
    beginScan(of: number, at: now)
  }

  mutating func find(_ key: DeviceKey, _ scan: UInt64, at now: Moment) {
    guard scan == adapters[of: key].scan, let mean = peripherals[key].radio.strength(at: key.adapter),
      adapters[of: key].foundInScan.insert(key).inserted
    else { return }
    let strength = mean + Int.random(in: -3...3, using: &random)
    let rssi = Int16(clamping: strength)
    if let device = devices[key] {
      devices[key]?.lastFound = now
      let filters = adapters[of: key].discoverers.values.compactMap { $0.active ? $0.filter : nil }
      let reportsAll = filters.contains(where: \.hasDuplicates)
      let known = tree.value(device.path, BlueZName.device, "RSSI")?.integer
      func isNew(_ name: String, _ value: DBusValue) -> Bool {
        tree.value(device.path, BlueZName.device, name) != value
      }
      let hasMoved = known != Int(rssi)
      var changes: [(String, DBusValue?)] = hasMoved ? [("RSSI", .int16(rssi))] : []
      for data in Describe.data(peripherals[key]) {
        if let value = data.value, reportsAll || isNew(data.name, value) {
          changes.append((data.name, value))
        }
      }
      if !changes.isEmpty { change(device: key, changes) }
    } else {
      addDevice(key, rssi: rssi, at: now)
      awaitExpiry(key, at: now + timing.temporary)
    }
    if !adapters[of: key].found.contains(key) { adapters[of: key].found.append(key) }
  }

  // MARK: Devices

  private mutating func addDevice(_ index: DeviceKey, rssi: Int16?, at now: Moment) {
    let peripheral = peripherals[index]
    let known = stored.contains(index)
    var device = Device(
      path: BlueZName.devicePath(peripheral.address, of: adapters[of: index].path), lastFound: now,
      expiry: now)
    device.discovered = known
    devices[index] = device
    let interfaces = Describe.device(
      peripheral, of: adapters[of: index].path, rssi: rssi,
      connected: peripheral.radio.linked == index.adapter,
      bonded: bonds.contains(index), uuids: known ? peripheral.uuids : peripheral.advertised)
    emit(tree.add(device.path, .device(index), under: adapters[of: index].path, interfaces))
  }

  /// Adds the stored devices.
  mutating func addStoredDevices(of number: Int, at now: Moment) {
    for index in stored.sorted() where index.adapter == number {
      addDevice(index, rssi: nil, at: now)
      guard peripherals[index].radio.linked == number else { continue }
      // A link that has survived a killed bluetoothd is ended by the next one after its start.
      devices[index]?.link = .disconnecting(Device.Disconnecting(resolved: false))
      beginAttempt(index)
      expect(.disconnects, of: index, after: .milliseconds(15), at: now)
    }
  }

  private mutating func awaitExpiry(_ index: DeviceKey, at deadline: Moment) {
    devices[index]?.expiry = deadline
    schedule.add(.expires(peripheral: index), at: deadline)
  }

  mutating func expire(_ index: DeviceKey, _ deadline: Moment, at now: Moment) {
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

  mutating func removeDevice(_ request: DBusCall, at now: Moment) throws(DBusError) {
    guard let path = request.arguments.first?.text, case .device(let index)? = tree.role(of: path) else {
      throw .doesNotExist
    }
    if isStuck(index) { return emit(.crash) }
    stored.remove(index)
    bonds.remove(index)
    if devices[index]?.isConnected == true {
      return beginDisconnecting(index, answering: request, removes: true, at: now)
    }
    cancelConnect(index, .canceled, at: now)
    removeObject(of: index)
    reply(to: request)
  }
}
