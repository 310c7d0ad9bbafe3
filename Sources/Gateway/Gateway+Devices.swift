import BlueZ
import Configuration
import GATT
import Log
import MQTT

/// Which devices there are: by the configuration, by what requests changed of it, and by what comes into reach.
extension Gateway {
  /// So many devices at most: names are cheap, and anybody can advertise one with the right prefix.
  static let mostDevices = 1000
  /// A socket for each property of theirs that tells its values by itself, and some for all else.
  static let mostOpenFiles = mostDevices * Profile.microbitDefault.properties.count(where: \.isNotifying) + 64
  /// Devices that become known together are heard of together.
  private static let gathering = Duration.milliseconds(250)

  // MARK: Who is who

  /// What holds for the device at `address`; nil when it is none of this gateway's.
  func settings(of address: BluetoothAddress, name: String?) -> EffectiveDevice? {
    configuration.effective(address, name: name, record: memory.records[address], in: gatewayID)
  }

  func devices(of target: Target) -> [Device] {
    switch target {
    case .device(let id): byID[id].map { [$0] } ?? []
    case .all: Array(byID.values)
    case .area(let area): byID.values.filter { $0.info.area.flatMap(AreaName.init) == area }
    }
  }

  /// The device that `peripheral` is, if it is one of this gateway's.
  func device(of peripheral: Peripheral) -> Device? {
    if let device = byPeripheral[peripheral.id] { return device }
    if let judged = strangers[peripheral.id], judged == peripheral.name { return nil }
    guard
      let device = devices[peripheral.address] ?? makeDevice(peripheral.address, name: peripheral.name)
    else {
      strangers[peripheral.id] = .some(peripheral.name)
      return nil
    }
    strangers[peripheral.id] = nil
    byPeripheral[peripheral.id] = device
    device.peripheral = peripheral.id
    return device
  }

  /// The devices that are known before they are seen: those that the configuration names, and those of earlier runs.
  func recall() {
    let records = memory.records.values.sorted { $0.identifier.description < $1.identifier.description }
    // Who had the id of a prefix has it again, whoever else matches the prefix.
    let owners = records.filter {
      $0.id != nil && settings(of: $0.identifier, name: $0.name)?.id.value == $0.id
    }
    for record in owners + records { _ = makeDevice(record.identifier, name: record.name) }
    // What stands behind a prefix may be the prefix's own, which only its name tells.
    for entry in configuration.devices.prefix(while: \.match.isIdentifier) {
      if case .identifier(let address) = entry.match { _ = makeDevice(address, name: nil) }
    }
    for record in records {
      if let id = record.id, devices[record.identifier]?.id != id { lookAfter(record, as: id) }
    }
  }

  /// What is wanted of the devices has changed: those that it concerns are changed, and no others.
  func reconsider() {
    for device in Array(byID.values) {
      guard let settings = settings(of: device.address, name: device.info.name) else {
        remove(device)
        continue
      }
      apply(settings, to: device)
    }
    recall()
    strangers = [:]
    central.assumeIsolated { $0.retell() }
    updateScan()
    bridgeChanged()
  }

  // MARK: Coming and going

  /// Makes the device at `address`; nil when it is none of this gateway's, is there already, or there are too many.
  func makeDevice(_ address: BluetoothAddress, name: String?) -> Device? {
    guard devices[address] == nil, let settings = settings(of: address, name: name) else { return nil }
    guard devices.count < Self.mostDevices else {
      counters.turnedAway += 1
      if counters.turnedAway == 1 {
        log.warning("too many devices: further ones are ignored", ["limit": Self.mostDevices])
      }
      return nil
    }
    // An id that several devices may have is the first one's; the others go by their addresses.
    var id = settings.id.value
    if byID[id] != nil { id = DeviceID(address) }
    guard byID[id] == nil else { return nil }
    var info = DeviceInfo(id: id, identifier: address, gateway: gatewayID, profile: profile.name)
    info.name = name
    info.label = settings.name.value
    info.area = settings.area.value
    if let record = memory.records[address] { info.recall(record) }
    info.wanted[Property.microbitPeriod.name] = settings.period.value
    let device = Device(
      info: info, settings: settings, profile: profile, topics: topics.topics(of: id), encoders: encoders)
    // Only what stops it can end that: an attempt to connect must not begin.
    if !settings.isEnabled.value { perform(device.session.stop(), on: device) }
    devices[address] = device
    byID[id] = device
    listen(to: device)
    hearGroupsAgain()
    bridgeChanged()
    return device
  }

  /// From now on, and with it a retained command that has waited for the device to be known. Before anything is told
  /// of the device, so that whoever hears of it can send it a command.
  private func listen(to device: Device) {
    mqtt.assumeIsolated { mqtt in
      for filter in device.topics.inbound { mqtt.subscribe(filter) }
    }
    subscribeDiscovery(of: device)
    device.awaitedEcho = nextEcho()
  }

  /// A retained command for a group that came before the device was known comes once more, soon; those that know it
  /// pass it over.
  private func hearGroupsAgain() {
    guard broker.connectedSince != nil, !isHearingGroupsAgain else { return }
    isHearingGroupsAgain = true
    loop.timer(after: Self.gathering) { [weak self] in
      self?.assumeIsolated { gateway in
        gateway.isHearingGroupsAgain = false
        gateway.subscribeGroups()
      }
    }
  }

  private func stopListening(to device: Device) {
    mqtt.assumeIsolated { mqtt in for filter in device.topics.inbound { mqtt.unsubscribe(filter) } }
    if let discovery { unsubscribeDiscovery(of: device, discovery) }
  }

  /// A device has told another name than before, by which another entry may be its own.
  func judgeAgain(_ device: Device) {
    if let settings = settings(of: device.address, name: device.info.name) { apply(settings, to: device) }
    bridgeChanged()
  }

  /// What the configuration, and what requests changed of it, now say of the device.
  private func apply(_ settings: EffectiveDevice, to device: Device) {
    guard settings != device.settings else { return }
    let before = device.settings
    device.settings = settings
    if settings.id.value != before.id.value {
      let id = settings.id.value
      if byID[id] == nil {
        rename(device, to: id)
      } else if id != device.id {
        // Two have changed places: it is made anew when all ids are free.
        return remove(device)
      }
    }
    device.info.label = settings.name.value
    device.info.area = settings.area.value
    if settings.period.source != .command, settings.period != before.period {
      changeWanted(settings.period.value, by: .configuration, of: device)
    }
    if settings.isEnabled.value != before.isEnabled.value {
      settings.isEnabled.value ? enable(device) : disable(device)
    }
    if device.holder.party == .this { publishPresence(of: device) }
    log.info("settings changed", device.fields)
  }

  private func rename(_ device: Device, to id: DeviceID) {
    if device.holder.party == .this { clearStates(device.topics) }
    move(device, to: id)
  }

  /// Another gateway has given the id of a prefix to another device: this one goes by its address, and leaves the
  /// topics to that one.
  func yieldID(of device: Device, to gateway: GatewayID) {
    let id = DeviceID(device.address)
    guard device.settings.hasSharedID, device.id != id, byID[id] == nil else {
      if !device.hasNamesake {
        log.error(
          "another gateway uses its id for another micro:bit: give each micro:bit its own id", device.fields)
      }
      device.hasNamesake = true
      return
    }
    log.notice("another gateway uses its id: renamed", ["device": device.id, "gateway": gateway, "now": id])
    releaseStates(of: device)
    move(device, to: id)
  }

  private func move(_ device: Device, to id: DeviceID) {
    let isOurs = device.holder.party == .this
    if let leftover = leftovers[id] { drop(leftover, id) }
    stopListening(to: device)
    byID[device.id] = nil
    device.rename(to: id, topics.topics(of: id))
    byID[id] = device
    bridgeChanged()
    listen(to: device)
    if isOurs {
      memory.change(device.address) { $0.id = id }
      publishPresence(of: device)
      for channel in device.channels {
        if let value = channel.value { publishState(channel.topics.value, Payload.value(value)) }
      }
    }
  }

  private func enable(_ device: Device) {
    // Whether it is in reach is told again.
    device.beginSession()
  }

  private func disable(_ device: Device) {
    abandonWrites(of: device, reason: "the device is disabled")
    end(device)
  }

  /// Ends the session and the link.
  private func end(_ device: Device) {
    perform(device.session.stop(), on: device)
    linkEnded(device)
    guard let peripheral = device.peripheral else { return }
    loop.task(of: self) { await $0.central.disconnect(peripheral) }
  }

  /// The device is no longer this gateway's. It leaves nothing behind, unless another gateway holds it.
  ///
  /// - Parameter wasHeld: it may have topics of this gateway's.
  private func remove(
    _ device: Device, wasHeld: Bool = true, because reason: String = "the device was removed"
  ) {
    log.info("removed", device.fields)
    abandonWrites(of: device, reason: reason)
    end(device)
    devices[device.address] = nil
    byID[device.id] = nil
    bridgeChanged()
    stopListening(to: device)
    if let id = device.peripheral { byPeripheral[id] = nil }
    // What is pinned to another gateway now keeps its topics: they are looked after until that one has it.
    let isHandedOver = isPinnedElsewhere(device.address, name: device.info.name)
    if device.holder.isElsewhere || isHandedOver || !wasHeld {
      releaseStates(of: device)
    } else {
      clearStates(device.topics)
      clearDiscovery(of: device.address)
    }
    memory.change(device.address) { record in
      if !isHandedOver || device.holder.isElsewhere { record.id = nil }
      record.announced = nil
    }
  }

  private func isPinnedElsewhere(_ address: BluetoothAddress, name: String?) -> Bool {
    let record = memory.records[address]
    if case .elsewhere = configuration.ownership(address, name: name, record: record, in: gatewayID) {
      return true
    }
    return false
  }

  /// Whether the device is more than a name from the air: an entry names its address, or its record says so.
  func isNamed(_ device: Device) -> Bool {
    memory.records[device.address]?.isNamed == true
      || configuration.devices.contains { $0.match == .identifier(device.address) }
  }

  /// What was seen under a prefix, and never held, leaves with its signal, and what is remembered of it: names are
  /// cheap.
  func dropUnlessNamed(_ device: Device) {
    guard !isNamed(device), device.holder.party == .nobody else { return }
    remove(device, wasHeld: false, because: "the device is out of reach, and was never connected")
    memory.forget(device.address)
  }

  // MARK: What earlier runs left

  /// A device of before is no longer configured, or goes by another id now. Its topics are cleared, unless another
  /// gateway holds it by now, which its info will tell, or is to have it.
  private func lookAfter(_ record: DeviceRecord, as id: DeviceID) {
    guard leftovers[id] == nil, byID[id] == nil else { return }
    let info = topics.topics(of: id).info
    mqtt.assumeIsolated { $0.subscribe(TopicFilter(info)) }
    leftovers[id] = Leftover(address: record.identifier, awaitedEcho: nextEcho())
  }

  func heardInfo(_ payload: [UInt8], ofLeftover id: DeviceID) {
    guard let notice = Holder.Notice(payload), notice.gateway != gatewayID else { return }
    guard let leftover = leftovers[id] else { return }
    drop(leftover, id)
    memory.change(leftover.address) { $0.announced = nil }
  }

  /// Nobody else has it.
  func clear(_ leftover: Leftover, _ id: DeviceID) {
    let topics = topics.topics(of: id)
    if isPinnedElsewhere(leftover.address, name: nil) {
      // The other one has yet to find it.
      publish(
        MQTTMessage(topic: topics.availability, payload: Payload.availability(false), retain: true))
    } else {
      clearStates(topics)
      if devices[leftover.address] == nil { clearDiscovery(of: leftover.address) }
    }
    drop(leftover, id)
  }

  private func drop(_ leftover: Leftover, _ id: DeviceID) {
    leftovers[id] = nil
    mqtt.assumeIsolated { [topics] in $0.unsubscribe(TopicFilter(topics.topics(of: id).info)) }
    memory.change(leftover.address) { record in
      if record.id == id { record.id = devices[leftover.address]?.id }
    }
  }

  private func clearStates(_ topics: DeviceTopics) {
    for topic in topics.states { clearState(topic) }
  }
}

/// A device of an earlier run that is none any more, or goes by another id.
struct Leftover {
  let address: BluetoothAddress
  var awaitedEcho: UInt64
}
