import DBus

/// Discovery and the removal of old devices.
extension Bluetoothd {
  var isDiscovering: Bool { discoverers.values.contains { $0.active } }

  // MARK: Calls

  mutating func setDiscoveryFilter(_ request: Request) throws(BlueZError) {
    guard adapter == .on else { throw .notReady }
    let filter = try DiscoveryFilter(request.arguments[0])
    discoverers[request.sender, default: DiscoveryClient()].filter = filter
    emit(.reply(request.id, []))
  }

  mutating func startDiscovery(_ request: Request, at now: ContinuousClock.Instant) throws(BlueZError) {
    guard adapter == .on else { throw .notReady }
    guard discoverers[request.sender]?.active != true else { throw .alreadyInProgress }
    let first = !isDiscovering
    discoverers[request.sender, default: DiscoveryClient()].active = true
    emit(.reply(request.id, []))
    guard first else { return }
    change(adapter: [("Discovering", .boolean(true))])
    beginScan(at: now)
  }

  mutating func stopDiscovery(_ request: Request, at now: ContinuousClock.Instant) throws(BlueZError) {
    guard adapter == .on else { throw .notReady }
    guard discoverers[request.sender]?.active == true else { throw .failed("No discovery started") }
    discoverers[request.sender]?.active = false
    emit(.reply(request.id, []))
    if !isDiscovering {
      endDiscovery()
      startConnects(at: now)
    }
  }

  mutating func endDiscovery(ofLeaving name: String) {
    guard discoverers.removeValue(forKey: name) != nil, !isDiscovering, adapter == .on else { return }
    // Signalled even if this client had stopped before.
    endDiscovery()
  }

  private mutating func endDiscovery() {
    scan += 1
    invalidateStrengths()
    change(adapter: [("Discovering", .boolean(false))])
  }

  /// Removes the signal strengths, which are unknown without discovery; that of the last found device first.
  mutating func invalidateStrengths() {
    for index in found.reversed() where devices[index] != nil {
      change(device: index, [("RSSI", nil)])
    }
    found.removeAll()
  }

  // MARK: Scans

  private mutating func beginScan(at now: ContinuousClock.Instant) {
    scan += 1
    foundInScan.removeAll(keepingCapacity: true)
    schedule.add(.scanEnds(scan), at: now + timing.scan)
    for index in peripherals.indices { expectAdvertisement(of: index, at: now) }
  }

  /// Schedules the next advertisement of a peripheral. Once per scan: the controller filters duplicates.
  mutating func expectAdvertisement(of index: Int, at now: ContinuousClock.Instant) {
    guard isDiscovering, !foundInScan.contains(index), peripherals[index].isReachable else { return }
    let delay = timing.advertising * Double.random(in: 0..<1, using: &random)
    schedule.add(.found(peripheral: index, scan: scan), at: now + delay)
  }

  mutating func endScan(_ scan: UInt64, at now: ContinuousClock.Instant) {
    guard scan == self.scan else { return }
    startConnects(at: now, betweenScans: true)
    beginScan(at: now)
  }

  mutating func find(_ index: Int, _ scan: UInt64, at now: ContinuousClock.Instant) {
    guard scan == self.scan, peripherals[index].isReachable, foundInScan.insert(index).inserted else {
      return
    }
    let strength = peripherals[index].strength + Int.random(in: -3...3, using: &random)
    let isWanted = discoverers.values.contains { client in
      client.active && client.filter?.matches(peripherals[index], rssi: strength) != false
    }
    guard isWanted else { return }
    let rssi = Int16(clamping: strength)
    if let device = devices[index] {
      devices[index]?.lastFound = now
      if tree.value(device.path, BlueZName.device, "RSSI") != .int16(rssi) {
        change(device: index, [("RSSI", .int16(rssi))])
      }
    } else {
      addDevice(index, rssi: rssi, at: now)
      awaitExpiry(index, at: now + timing.temporary)
    }
    if !found.contains(index) { found.append(index) }
  }

  // MARK: Devices

  private mutating func addDevice(_ index: Int, rssi: Int16?, at now: ContinuousClock.Instant) {
    let peripheral = peripherals[index]
    let known = stored.contains(index)
    var device = Device(
      path: BlueZName.devicePath(peripheral.address), lastFound: now, expiry: now)
    device.temporary = !known
    device.discovered = known
    devices[index] = device
    let interfaces = Describe.device(
      peripheral, rssi: rssi, connected: peripheral.linked,
      bonded: bonds.contains(index), uuids: known ? peripheral.uuids : peripheral.advertised)
    emit(.signal(tree.add(device.path, .device(index), under: BlueZName.adapterPath, interfaces)))
  }

  /// Adds the stored devices.
  mutating func addStoredDevices(at now: ContinuousClock.Instant) {
    for index in stored.sorted() {
      addDevice(index, rssi: nil, at: now)
      guard peripherals[index].linked else { continue }
      // A link that has survived a killed bluetoothd is ended by the next one after its start.
      devices[index]?.link = .disconnecting(Device.Disconnecting(resolved: false))
      let attempt = beginAttempt(index)
      schedule.add(.disconnects(peripheral: index, attempt: attempt), at: now + .milliseconds(15))
    }
  }

  private mutating func awaitExpiry(_ index: Int, at deadline: ContinuousClock.Instant) {
    devices[index]?.expiry = deadline
    schedule.add(.expires(peripheral: index), at: deadline)
  }

  mutating func expire(_ index: Int, _ deadline: ContinuousClock.Instant, at now: ContinuousClock.Instant) {
    guard let device = devices[index], device.temporary, device.expiry == deadline else { return }
    let end = device.lastFound + timing.temporary
    guard case .none = device.link, end <= now else {
      return awaitExpiry(index, at: max(end, now + timing.temporary / 30))
    }
    removeObject(of: index)
  }

  /// Removes a device object.
  mutating func removeObject(of index: Int) {
    endPairing(index, .failure(.connectionAttemptFailed))
    guard let device = devices.removeValue(forKey: index) else { return }
    for operation in device.operations {
      for call in operation.calls { emit(.abandon(call)) }
    }
    for channel in device.subscriptions.values.compactMap(\.channel) { emit(.hangUp(channel)) }
    found.removeAll { $0 == index }
    emit(tree.remove(device.path))
  }

  mutating func removeDevice(_ request: Request, at now: ContinuousClock.Instant) throws(BlueZError) {
    guard let path = request.arguments.first?.text, case .device(let index)? = tree.role(of: path) else {
      throw .doesNotExist
    }
    if isStuck(index) { return emit(.crash) }
    stored.remove(index)
    bonds.remove(index)
    if devices[index]?.isConnected == true { return remove(connected: index, for: request.id, at: now) }
    cancelConnect(index, .canceled, at: now)
    removeObject(of: index)
    emit(.reply(request.id, []))
  }
}
