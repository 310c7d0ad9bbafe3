import BlueZ
import GATT
import Log
import MQTT

/// Peripherals become devices, and their sessions run.
extension Gateway {
  /// So many devices at most: names are cheap, and anybody can advertise one with the right prefix.
  private static let mostDevices = 1000

  // MARK: Who is who

  /// A device that the configuration names is known before it is seen.
  func expect(_ entry: Configuration.Device) {
    guard case .identifier(let address) = entry.match, devices[address] == nil else { return }
    _ = makeDevice(address, name: nil, entry: entry)
  }

  /// Makes the device at `address`, offline at first; nil when there are too many.
  func makeDevice(_ address: BluetoothAddress, name: String?, entry: Configuration.Device) -> Device? {
    guard devices.count < Self.mostDevices else {
      counters.turnedAway += 1
      if counters.turnedAway == 1 {
        log.warning("too many devices: no more are taken", ["limit": Self.mostDevices])
      }
      return nil
    }
    // An id given to a prefix belongs to the first that matches; the others go by their addresses.
    var id = entry.id ?? DeviceID(address)
    if byID[id] != nil { id = DeviceID(address) }
    guard byID[id] == nil else { return nil }
    var info = DeviceInfo(id: id, identifier: address, gateway: gatewayID, profile: profile.name)
    info.name = name
    info.label = entry.name
    info.area = entry.area ?? configuration.gateway.area
    let device = Device(
      info: info, period: entry.period, profile: profile, topics: topics.topics(of: id), run: run)
    devices[address] = device
    byID[id] = device
    // From now on, and with it a retained command that has waited for the device to be known. Before anything is
    // told of the device, so that whoever hears of it can send it a command.
    subscribe(to: device.topics.commands)
    publishState(device.topics.availability, Payload.availability(false))
    bridgeChanged()
    return device
  }

  private func device(of peripheral: Peripheral) -> Device? {
    if let device = byPeripheral[peripheral.id] { return device }
    if let judged = strangers[peripheral.id], judged == peripheral.name { return nil }
    let entry = configuration.device(matching: peripheral.address, name: peripheral.name)
    // Whose the id of a prefix was in an earlier run is not known yet; it will be heard again.
    if let entry, entry.id != nil, !entry.match.isIdentifier, !report.mayGiveIDs { return nil }
    guard let entry,
      let device = devices[peripheral.address]
        ?? makeDevice(peripheral.address, name: peripheral.name, entry: entry)
    else {
      strangers[peripheral.id] = .some(peripheral.name)
      return nil
    }
    strangers[peripheral.id] = nil
    byPeripheral[peripheral.id] = device
    device.peripheral = peripheral.id
    return device
  }

  // MARK: The central's events

  func heard(_ event: CentralEvent) {
    switch event {
    case .state(let state):
      adapterIs(state)
    case .seen(let peripheral):
      guard let device = device(of: peripheral) else { return }
      if let name = peripheral.name { device.info.name = name }
      if let rssi = peripheral.rssi { device.info.rssi = rssi }
      perform(device.session.seen(inReach: peripheral.isInReach), on: device)
    case .disconnected(let id):
      guard let device = byPeripheral[id] else { return }
      linkEnded(device)
      perform(device.session.disconnected(at: .now), on: device)
    case .lost(let id):
      strangers[id] = nil
      guard let device = byPeripheral.removeValue(forKey: id) else { return }
      device.peripheral = nil
      perform(device.session.lost(), on: device)
    }
  }

  private func adapterIs(_ state: CentralState) {
    adapter = state
    switch state {
    case .noBus(let reason): log.warning("no D-Bus: waiting for it", ["reason": reason])
    case .noBluetoothd:
      log.warning("bluetoothd is not running: waiting for it (systemctl start bluetooth)")
    case .adapterAbsent:
      log.warning(
        "there is no such Bluetooth adapter: waiting for it", ["adapter": configuration.bluetooth.adapter])
    case .adapterOff: log.warning("the adapter is off: waiting for it (bluetoothctl power on)")
    case .adapterBlocked: log.warning("the adapter is blocked: waiting for it (rfkill unblock bluetooth)")
    case .on(let adapter, let address): log.notice("scanning", ["adapter": adapter, "address": address])
    }
    if !state.isOn {
      for device in byID.values {
        linkEnded(device)
        perform(device.session.adapterWentAway(), on: device)
      }
    }
    updateScan()
    bridgeChanged()
  }

  /// Scans as long as somebody may still be found.
  private func updateScan() {
    let isSomebodyMissing = configuration.devices.contains { entry in
      switch entry.match {
      case .namePrefix: true
      case .identifier(let address): devices[address]?.session.state != .live
      }
    }
    central.assumeIsolated { $0.scan(isSomebodyMissing) }
  }

  // MARK: A session's actions

  func perform(_ actions: [PeripheralSession.Action], on device: Device) {
    for action in actions {
      switch action {
      case .connect: connect(device)
      case .subscribe: subscribe(device)
      case .disconnect: disconnect(device)
      case .online: isOnline(device)
      case .offline: isOffline(device)
      case .setTimer(let delay):
        device.timer?.cancel()
        device.timer = loop.timer(after: delay) { [weak self] in
          self?.assumeIsolated { $0.perform(device.session.timer(at: .now), on: device) }
        }
      case .cancelTimer: device.timer?.cancel()
      case .report(let trouble): tell(trouble, of: device)
      }
    }
    // Most events change nothing: a peripheral that is heard again, for one.
    if !actions.isEmpty {
      updateScan()
      bridgeChanged()
    }
  }

  private func connect(_ device: Device) {
    guard let peripheral = device.peripheral else {
      return perform(device.session.connected(.failed(.gone)), on: device)
    }
    log.debug("connecting", device.fields)
    loop.task(of: self) { gateway in
      let connection: PeripheralSession.Connection
      do throws(CentralError) {
        let characteristics = try await gateway.central.connect(peripheral)
        connection = gateway.offer(characteristics, to: device) ? .connected : .unsuitable
      } catch {
        connection = .failed(error)
      }
      gateway.perform(device.session.connected(connection), on: device)
    }
  }

  /// Gives the device the characteristics of its link; false when it lacks what the profile is about.
  private func offer(_ characteristics: [Characteristic], to device: Device) -> Bool {
    for index in device.channels.indices {
      let property = device.channels[index].property
      device.channels[index].characteristic = characteristics.first {
        $0.service == property.service && $0.uuid == property.characteristic && $0.flags.allow(property)
      }
      device.channels[index].isMalformed = false
    }
    return device.channels.contains { $0.property.isNotifying && $0.characteristic != nil }
  }

  /// Reads what can be read, then asks for what is notified: no reading is missed in between, and none comes
  /// twice.
  private func subscribe(_ device: Device) {
    loop.task(of: self) { gateway in
      var failure: CentralError?
      do throws(CentralError) {
        try await gateway.subscribeChannels(of: device)
      } catch {
        failure = error
      }
      gateway.perform(device.session.subscribed(failure, at: .now), on: device)
    }
  }

  private func subscribeChannels(of device: Device) async throws(CentralError) {
    for (index, channel) in device.channels.enumerated() where channel.property.isNotifying {
      guard let characteristic = channel.characteristic else { continue }
      if channel.property.isReadable { received(try await central.read(characteristic), device, index) }
      try await central.subscribe(to: characteristic) { [weak self] bytes in
        guard let self else { return }
        loop.enter(self, (bytes, device, index)) { $0.received($1.0, $1.1, $1.2) }
      }
    }
  }

  private func disconnect(_ device: Device) {
    linkEnded(device)
    let peripheral = device.peripheral
    loop.task(of: self) { gateway in
      if let peripheral { await gateway.central.disconnect(peripheral) }
      gateway.perform(device.session.left(), on: device)
    }
  }

  private func isOnline(_ device: Device) {
    log.notice("online", device.fields)
    device.info.connectedSince = .now
    publishState(device.topics.info, device.info.payload)
    publishState(device.topics.availability, Payload.availability(true))
    writesCanBegin(on: device)
  }

  private func isOffline(_ device: Device) {
    log.notice("offline", device.fields)
    device.info.connectedSince = nil
    publishState(device.topics.availability, Payload.availability(false))
    publishState(device.topics.info, device.info.payload)
  }

  /// What belonged to the link goes with it.
  private func linkEnded(_ device: Device) {
    for index in device.channels.indices {
      device.channels[index].characteristic = nil
      writeEnded(device, index)
    }
  }

  private func tell(_ trouble: PeripheralSession.Trouble, of device: Device) {
    switch trouble {
    case .unsuitable: log.warning("cannot be served: \(profile.missingHint)", device.fields)
    case .connectFailed(let reason): log.info("cannot connect yet: \(reason)", device.fields)
    case .subscribeFailed(let reason): log.warning("does not give its readings: \(reason)", device.fields)
    case .silent(let limit): log.warning("silent for \(limit): connecting again", device.fields)
    case .unresponsive: log.warning("does not answer: connecting again", device.fields)
    }
  }

  // MARK: Readings

  /// A value came: on the path of every notification.
  func received(_ bytes: [UInt8], _ device: Device, _ index: Int) {
    let value: Int
    do throws(CodecError) {
      value = try device.channels[index].property.codec.decode(bytes)
    } catch {
      counters.malformed += 1
      if !device.channels[index].isMalformed {
        device.channels[index].isMalformed = true
        log.warning("no \(device.channels[index].property.name): \(error)", device.fields)
      }
      return
    }
    device.channels[index].isMalformed = false
    device.session.heard(at: .now)
    device.sequence += 1
    counters.readings += 1
    publishState(device.channels[index].topics.value, Payload.value(value))
    if configuration.mqtt.readings {
      let reading = device.channels[index].encoder.encode(value, time: .now, sequence: device.sequence)
      publish(
        MQTTMessage(
          topic: device.topics.readings, payload: reading, qos: qos, whenHeld: ReadingEncoder.markReplayed))
    }
  }
}

extension Characteristic.Flags {
  /// Whether the characteristic can do what the property needs of it.
  fileprivate func allow(_ property: Property) -> Bool {
    (!property.isReadable || contains(.read))
      && (!property.isWritable || contains(.write))
      && (!property.isNotifying || contains(.notify) || contains(.indicate))
  }
}

extension Device {
  /// What a line of the log says of it.
  var fields: LogFields {
    ["device": id, "address": info.identifier, "name": info.name ?? "unknown"]
  }
}
