import BlueZ
import GATT
import Log
import MQTT

/// Sessions run: peripherals are heard, connected, subscribed to, and lost.
extension Gateway {
  // MARK: The central's events

  func heard(_ event: CentralEvent) {
    switch event {
    case .state(let state):
      adapterIs(state)
    case .seen(let peripheral):
      for index in surveys.indices { surveys[index].saw(peripheral) }
      guard let device = device(of: peripheral) else { return }
      if let name = peripheral.name, name != device.info.name {
        device.info.name = name
        judgeAgain(device)
      }
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
      dropUnlessNamed(device)
    }
  }

  private func adapterIs(_ state: CentralState) {
    adapter = state
    switch state {
    case .noBus(let reason): log.warning("no D-Bus: waiting for it", ["reason": reason])
    case .adapterInUse(let process):
      let other = process.map { " (process \($0))" } ?? ""
      log.warning(
        "adapter \(configuration.bluetooth.adapter) is used by another gateway\(other): waiting for it")
    case .noBluetoothd:
      log.warning("bluetoothd is not running: waiting for it (systemctl start bluetooth)")
    case .adapterAbsent:
      log.warning(
        "no such Bluetooth adapter: waiting for it", ["adapter": configuration.bluetooth.adapter])
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
  func updateScan() {
    let isWanted =
      !surveys.isEmpty || configuration.devices.contains { !$0.match.isIdentifier }
      || byID.values.contains { $0.settings.isEnabled.value && !$0.isLive }
    central.assumeIsolated { $0.scan(isWanted) }
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
    // Most events change nothing: a peripheral that is heard again, or a silence that is not long enough.
    guard device.session.state != device.performedState else { return }
    device.performedState = device.session.state
    updateScan()
    bridgeChanged()
  }

  private func connect(_ device: Device) {
    guard let peripheral = device.peripheral else {
      return perform(device.session.connected(.failed(.gone)), on: device)
    }
    log.debug("connecting", device.fields)
    let session = device.sessionNumber
    loop.task(of: self) { gateway in
      let connection: PeripheralSession.Connection
      do throws(CentralError) {
        let wasHeld = gateway.memory.records[device.address]?.id != nil
        let characteristics = try await gateway.central.connect(
          peripheral, isPreferred: wasHeld,
          while: { device.sessionNumber == session && device.session.state == .connecting })
        connection = gateway.offer(characteristics, to: device) ? .connected : .unsuitable
      } catch {
        connection = .failed(error)
      }
      // Removed or disabled meanwhile: nobody else would end the link, if there is one.
      guard device.session.state != .stopped, device.sessionNumber == session else {
        if case .failed = connection { return }
        return await gateway.central.disconnect(peripheral)
      }
      gateway.perform(device.session.connected(connection), on: device)
    }
  }

  /// Gives the device the characteristics of its link; false when it lacks what the profile is about.
  private func offer(_ characteristics: [Characteristic], to device: Device) -> Bool {
    for channel in device.channels {
      let property = channel.property
      channel.characteristic = characteristics.first {
        $0.service == property.service && $0.uuid == property.characteristic && $0.flags.allow(property)
      }
      channel.isMalformed = false
    }
    device.information = characteristics.filter {
      $0.service == DeviceInformation.service && DeviceInformation.texts.contains($0.uuid)
        && $0.flags.contains(.read)
    }
    if Logger.isEnabled(.debug) { logOffer(characteristics, of: device) }
    return device.channels.contains { $0.property.isNotifying && $0.characteristic != nil }
  }

  /// What a peripheral has, and what it was taken for.
  private func logOffer(_ characteristics: [Characteristic], of device: Device) {
    for characteristic in characteristics.prefix(Self.mostLogged) {
      let channel = device.channels.first { $0.characteristic == characteristic }
      log.debug(
        "characteristic",
        [
          "device": device.id, "service": characteristic.service, "uuid": characteristic.uuid,
          "flags": characteristic.flags, "property": channel?.property.name ?? "-",
        ])
    }
    let rest = characteristics.count - Self.mostLogged
    if rest > 0 { log.debug("more characteristics", ["device": device.id, "count": rest]) }
  }

  private static let mostLogged = 100

  /// Reads what can be read, then asks for what is notified: no reading is missed in between, and none comes
  /// twice.
  private func subscribe(_ device: Device) {
    let before = device.sequence
    let session = device.sessionNumber
    loop.task(of: self) { gateway in
      do throws(CentralError) {
        try await gateway.subscribeChannels(of: device)
        guard device.sessionNumber == session else { return }
        gateway.perform(device.session.subscribed(nil, at: .now), on: device)
      } catch {
        guard device.sessionNumber == session else { return }
        let isUnreadable = error.leavesLinkUp && device.sequence == before
        gateway.perform(
          isUnreadable ? device.session.unreadable(error) : device.session.subscribed(error, at: .now),
          on: device)
      }
    }
  }

  private func subscribeChannels(of device: Device) async throws(CentralError) {
    for channel in device.channels where channel.property.isNotifying {
      guard let characteristic = channel.characteristic else { continue }
      // The answer to a read comes as a signal too, but before the reply: when nobody listens yet.
      if channel.property.isReadable { received(try await central.read(characteristic), device, channel) }
      do throws(CentralError) {
        // Held until the link ends.
        try await central.subscribe(to: characteristic) { bytes in
          self.loop.enter(self, (bytes, device, channel)) { $0.received($1.0, $1.1, $1.2) }
        }
        channel.isPolled = false
      } catch .notifyAcquired where channel.property.isReadable {
        poll(channel, characteristic, of: device)
      }
    }
  }

  /// Reads a property that bluetoothd does not notify.
  private func poll(_ channel: Device.Channel, _ characteristic: Characteristic, of device: Device) {
    if !channel.isPolled {
      log.warning(
        """
        another program takes the notifications of \(channel.property.name): reading it instead. If there is no such \
        program, bluetoothd is stuck (a fault before its version 5.84): sudo systemctl restart bluetooth
        """, device.fields)
    }
    channel.isPolled = true
    loop.task(of: self) { gateway in
      let isNotified = await gateway.central.poll(
        characteristic, every: { gateway.assumeIsolated { _ in device.pollInterval } }
      ) { result in
        gateway.assumeIsolated { $0.polled(result, device, channel) }
      }
      guard isNotified else { return }
      channel.isPolled = false
      gateway.log.notice("\(channel.property.name) is notified again", device.fields)
    }
  }

  private func polled(_ result: Result<[UInt8], CentralError>, _ device: Device, _ channel: Device.Channel) {
    switch result {
    case .success(let bytes): received(bytes, device, channel)
    case .failure(.timedOut): perform(device.session.unresponsive(), on: device)
    case .failure(let error): log.debug("cannot read \(channel.property.name): \(error)", device.fields)
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
    if device.holder.wentLive(), let before = device.holder.last {
      log.notice("taken over", ["device": device.id, "from": before.gateway])
      device.info.moved = DeviceInfo.Move(from: before.gateway, area: before.area, time: .now)
    }
    let offered = Set(device.channels.filter { $0.characteristic != nil }.map(\.property.name))
    device.info.learn(offered: offered)
    memory.change(device.address) { record in
      record.id = device.id
      record.name = device.info.name
      record.offered = device.info.offered
    }
    publishPresence(of: device)
    writesCanBegin(on: device)
    readInformation(of: device)
  }

  private func isOffline(_ device: Device) {
    log.notice("offline", device.fields)
    device.info.connectedSince = nil
    if device.holder.party == .this { publishPresence(of: device) }
  }

  /// Whether the device is there, and what is known of it: for its holder to say.
  func publishPresence(of device: Device) {
    let availability = Payload.availability(device.isLive)
    // Whoever is told that it is there can look up what it is.
    publishInfo(of: device)
    publishState(device.topics.availability, availability)
    announce(device)
  }

  func publishInfo(of device: Device) {
    device.toldInfo = device.info.payload
    publishState(device.topics.info, device.toldInfo)
    bridgeChanged()
  }

  /// What belonged to the link goes with it.
  func linkEnded(_ device: Device) {
    for channel in device.channels {
      channel.characteristic = nil
      input(channel, of: device) { $0.linkDown() }
    }
    device.information = []
    // What came over the link is not this gateway's to repeat.
    if device.holder.isElsewhere { releaseStates(of: device) }
  }

  private func tell(_ trouble: PeripheralSession.Trouble, of device: Device) {
    switch trouble {
    case .unsuitable:
      log.warning("cannot be served: \(profile.missingHint ?? "its services are others")", device.fields)
    case .connectFailed(let reason): log.info("cannot connect yet: \(reason)", device.fields)
    case .subscribeFailed(let reason): log.warning("cannot get its readings: \(reason)", device.fields)
    case .wantsPairing:
      log.warning(
        """
        no readings: it probably requires pairing, which this gateway does not support yet. In MakeCode, choose \
        "No Pairing Required" in the project settings and download the program again
        """, device.fields)
    case .silent(let limit): log.warning("no reading for \(limit): reconnecting", device.fields)
    case .unresponsive: log.warning("does not respond: reconnecting", device.fields)
    }
  }

  // MARK: Device information

  /// Model, firmware and serial number, where the peripheral tells them. After everything else: nothing waits for it but
  /// what Home Assistant is told, so that it is told once.
  private func readInformation(of device: Device) {
    let characteristics = device.information
    guard !characteristics.isEmpty else { return }
    // What an earlier link or run has told is still good enough.
    device.isInformationAwaited = !device.info.hasMake
    loop.task(of: self) { gateway in
      defer {
        device.isInformationAwaited = false
        for stage in Announcement.Stage.allCases { gateway.release(.device(device.address, stage)) }
      }
      var texts: [BluetoothUUID: String] = [:]
      for characteristic in characteristics {
        do throws(CentralError) {
          texts[characteristic.uuid] = DeviceInformation.text(try await gateway.central.read(characteristic))
        } catch .timedOut {
          return gateway.perform(device.session.unresponsive(), on: device)
        } catch {
          gateway.log.debug("cannot read its device information: \(error)", device.fields)
        }
      }
      var info = device.info
      info.model = texts[DeviceInformation.modelNumber] ?? info.model
      info.firmware = texts[DeviceInformation.firmwareRevision] ?? info.firmware
      info.serial = texts[DeviceInformation.serialNumber] ?? info.serial
      guard info != device.info else { return }
      device.info = info
      // It may have been removed meanwhile, and its topics with it.
      guard gateway.devices[device.address] === device, device.holder.party == .this else { return }
      gateway.memory.change(device.address) { $0.learn(info) }
      gateway.publishInfo(of: device)
      gateway.announce(device)
    }
  }

  // MARK: Readings

  /// A value came: on the path of every notification.
  func received(_ bytes: [UInt8], _ device: Device, _ channel: Device.Channel) {
    // A link that is being left, of a device that another gateway has, was removed or disabled, lasts a little longer.
    guard device.session.isReceiving else { return }
    let value: Int
    do throws(CodecError) {
      value = try channel.property.codec.decodeInteger(bytes)
    } catch {
      counters.malformed += 1
      if !channel.isMalformed {
        channel.isMalformed = true
        log.warning("ignoring a bad value of \(channel.property.name): \(error)", device.fields)
      }
      return
    }
    channel.isMalformed = false
    device.session.heard(at: .now)
    device.sequence += 1
    counters.readings += 1
    channel.value = value
    log.debug(
      "reading",
      [
        "device": device.id, "property": channel.property.name, "value": value, "sequence": device.sequence,
      ])
    publishState(channel.topics.value, Payload.value(value), atOnce: true)
    if configuration.mqtt.readings {
      let reading = channel.encoder.encode(value, time: .now, sequence: device.sequence)
      publish(
        MQTTMessage(
          topic: device.topics.readings, payload: reading, qos: qos, whenHeld: ReadingEncoder.markReplayed),
        atOnce: true)
    }
  }
}

extension CentralError {
  /// Whether an operation failed on a link that goes on.
  fileprivate var leavesLinkUp: Bool {
    switch self {
    case .timedOut, .unlikely: true
    case .transient, .busy, .gone, .disconnected, .refused, .notifyAcquired, .unavailable: false
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
