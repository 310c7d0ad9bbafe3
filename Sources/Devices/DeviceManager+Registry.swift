import BlueZ
import Configuration
import EventLoop
import GATT
import JSON
import Log

/// Which devices there are: by the configuration, by requests, and by what comes into range.
extension DeviceManager {
  // MARK: Settings

  /// What holds for the device at `address`; nil when this gateway does not serve it.
  private func settings(of address: BluetoothAddress, _ advertisement: Advertisement) -> DeviceSettings? {
    if case .here(let settings) = assignment(of: address, advertisement) { settings } else { nil }
  }

  func assignment(of address: BluetoothAddress, _ advertisement: Advertisement) -> Assignment {
    configuration.assignment(address, advertisement, record: store.records[address], in: gateway)
  }

  package func isPinnedElsewhere(_ address: BluetoothAddress) -> Bool { pin(of: address) != nil }

  /// The other gateway that the device is pinned to, and the id that it has by what holds here; nil: of an id that several
  /// devices share, the first one gets it.
  package func pin(of address: BluetoothAddress) -> (gateway: GatewayID, id: DeviceID?)? {
    let advertisement = registry.byAddress[address]?.advertisement ?? Advertisement()
    guard case .elsewhere(let other, let settings) = assignment(of: address, advertisement) else {
      return nil
    }
    return (other, settings.hasSharedID ? nil : settings.id)
  }

  /// What is pinned to other gateways, by the configuration or by requests: ids, and entries that have none.
  package var pinnedElsewhere: [GatewayID: Set<String>] {
    var pinned: [GatewayID: Set<String>] = [:]
    func note(_ name: String, _ record: DeviceRecord?, _ entry: Configuration.Device? = nil) {
      let changes = record?.requested.changes
      guard let other = changes?.gateway ?? entry?.options.gateway, other != gateway,
        record?.requested.isRemoved != true, (changes?.isEnabled ?? entry?.options.isEnabled) != false
      else { return }
      pinned[other, default: []].insert(changes?.id?.description ?? name)
    }
    for (index, entry) in configuration.devices.enumerated() {
      let record = entry.match.identifier.flatMap { store.records[$0] }
      note(entry.topicName ?? "devices[\(index)]", record, entry)
    }
    for (address, record) in store.records where !configuration.names(address) {
      note(record.id?.description ?? address.description, record)
    }
    return pinned
  }

  /// Another configuration holds from now on; only what has changed is touched.
  package func configure(_ configuration: Configuration) {
    self.configuration = configuration
    reconcile()
    updateReceivers()
  }

  /// The configuration has changed: brings all devices in line.
  private func reconcile() {
    let before = registry.byID.mapValues(\.address)
    // Removed first: the others may get their ids.
    for device in Array(registry.all) { removeUnlessServed(device) }
    for device in Array(registry.all) { update(device) }
    loadKnownDevices()
    for (id, address) in before { passOn(id, from: address) }
    registry.ignored = [:]
    replayPeripherals()
    devicesChanged()
  }

  /// A request has changed what holds for the device at `address`: brings it in line, and no other, as there may be a
  /// thousand, and as many requests at once.
  func reconcile(_ address: BluetoothAddress) {
    let id = registry.byAddress[address]?.id
    if let device = registry.byAddress[address] {
      removeUnlessServed(device)
      update(device)
    } else {
      _ = makeDevice(address, store.records[address]?.advertisement ?? Advertisement())
    }
    if let id { passOn(id, from: address) }
    reportOrphan(address)
    replayPeripheral(at: address)
    devicesChanged()
  }

  private func removeUnlessServed(_ device: Device) {
    guard settings(of: device.address, device.advertisement) == nil else { return }
    remove(device, because: isPinnedElsewhere(device.address) ? .pinnedElsewhere : .removed)
  }

  /// Updates the device, as another entry may match it now.
  func advertisementChanged(of device: Device) {
    update(device)
    reportOrphan(device.address)
    engineChanged()
  }

  /// The name by which the device's entry has matched it.
  private func matchedName(of address: BluetoothAddress, _ advertisement: Advertisement) -> String? {
    configuration.matchedName(of: advertisement.adding(to: store.records[address]), at: address)
  }

  /// Applies the settings that hold for the device now.
  private func update(_ device: Device) {
    device.matched(by: matchedName(of: device.address, device.advertisement))
    guard let settings = settings(of: device.address, device.advertisement), settings != device.settings
    else { return }
    if settings.profile != device.settings.profile { return replace(device) }
    // The id may become this device's own although its text is the same.
    let isIDChanged =
      settings.id != device.settings.id || settings.hasSharedID != device.settings.hasSharedID
      || settings.source(of: \.id) != device.settings.source(of: \.id)
    if isIDChanged, settings.id != device.id, let id = takeID(settings.id, for: device.address) {
      rename(device, to: id, .requested)
    }
    device.apply(settings)
  }

  /// The id that a device gets: the desired one, or, if another device keeps that, one made of its address. Renames the
  /// device that has it, if need be.
  /// - Returns: nil: another device has both.
  private func takeID(_ desired: DeviceID, for address: BluetoothAddress) -> DeviceID? {
    let id = renameOwner(of: desired) ? desired : DeviceID(address)
    return registry.byID[id] == nil ? id : nil
  }

  /// The device at `address` has had the id: if none has it now, the first of those that are to have it gets it; not if the
  /// device goes on with it at another gateway.
  func passOn(_ id: DeviceID, from address: BluetoothAddress) {
    guard registry.byID[id] == nil, !isPinnedElsewhere(address) else { return }
    let first = registry.all.filter { $0.settings.id == id }.min { $0.address.value < $1.address.value }
    if let first { rename(first, to: id, .requested) }
  }

  /// Renames the device that has `id` if it is to get another one, as when two devices exchange their ids: until then it
  /// has an id made of its address.
  /// - Returns: whether no device has the id now.
  private func renameOwner(of id: DeviceID) -> Bool {
    guard let device = registry.byID[id] else { return true }
    let temporary = DeviceID(device.address)
    guard registry.byID[temporary] == nil, settings(of: device.address, device.advertisement)?.id != id
    else { return false }
    rename(device, to: temporary, .requested)
    return true
  }

  // MARK: Coming and going

  /// The device that `peripheral` is, if it is one of this gateway's.
  func device(of peripheral: Peripheral) -> Device? {
    if let device = registry.byPeripheral[peripheral.id] { return device }
    // Another adapter may have made a device of it.
    guard let device = registry.byAddress[peripheral.address] ?? newDevice(peripheral) else { return nil }
    registry.ignored[peripheral.id] = nil
    registry.byPeripheral[peripheral.id] = device
    return device
  }

  /// Makes a device of a peripheral that is none yet; nil: it is ignored.
  private func newDevice(_ peripheral: Peripheral) -> Device? {
    let (address, advertisement) = (peripheral.address, Advertisement(peripheral))
    if registry.ignored[peripheral.id]?.holds(for: peripheral, advertisement, hasRoom: hasRoomForNew) == true
    {
      return nil
    }
    join(address, advertisement)
    let cause: IgnoredPeripheral.Cause
    if let profile = deafProfile(peripheral, advertisement) {
      cause = .deaf(profile)
    } else if let limit = requiredSignal(of: peripheral, advertisement), (peripheral.rssi ?? .min) < limit {
      cause = .weak(below: limit)
    } else if let device = makeDevice(address, advertisement) {
      return device
    } else if let session = settings(of: address, advertisement)?.profile.session, !hasRoomForNew(session) {
      cause = .full(session)
    } else {
      cause = .unmatched
    }
    registry.ignored[peripheral.id] = IgnoredPeripheral(advertisement: advertisement, cause: cause)
    return nil
  }

  /// The signal strength in dBm with which a peripheral that is not known becomes a device; nil: any.
  private func requiredSignal(of peripheral: Peripheral, _ advertisement: Advertisement) -> Int? {
    isKnownByAddress(peripheral.address)
      ? nil : configuration.device(matching: peripheral.address, advertisement)?.match.minRSSI
  }

  /// The profile that a peripheral would have which is not known, and has sent nothing for it yet: strangers may match, too, and
  /// change their addresses every few minutes.
  private func deafProfile(_ peripheral: Peripheral, _ advertisement: Advertisement) -> Profile? {
    guard !isKnownByAddress(peripheral.address),
      let profile = settings(of: peripheral.address, advertisement)?.profile,
      !profile.takes(peripheral.advertised)
    else { return nil }
    return profile
  }

  /// The devices that are known before they are seen: those that the configuration names, and those of earlier runs.
  func loadKnownDevices() {
    let records = store.records.values.sorted { $0.address.description < $1.address.description }
    // Records with an id come first, so that of several devices that match one entry the same one gets its id again.
    let owners = records.filter { $0.id != nil && settings(of: $0.address, $0.advertisement)?.id == $0.id }
    for record in owners + records { _ = makeDevice(record.address, record.advertisement) }
    // Bluetooth addresses after a pattern are left out: whether that matches the device first is known only from its
    // advertisements. The identifier of a sender by radio tells its letters.
    var hasPattern = false
    for match in configuration.devices.lazy.map(\.match) {
      hasPattern = hasPattern || !match.isIdentifier && !match.isRadio
      guard let address = match.identifier, match.isRadio || !hasPattern, registry.byAddress[address] == nil,
        makeDevice(address, Advertisement()) == nil
      else { continue }
      // There may be ten thousand entries: when all places are taken for good, those of the others need no search.
      if !hasRoom, registry.all.allSatisfy({ isConfigured($0.address) }) { break }
    }
    for record in records { reportOrphan(record.address) }
  }

  /// The device may have another id than the one under which its topics were published, or none.
  private func reportOrphan(_ address: BluetoothAddress) {
    guard let record = store.records[address], let id = record.id, registry.byAddress[address]?.id != id
    else { return }
    for frontEnd in frontEnds { frontEnd.foundOrphan(id, of: address, offered: record.published) }
  }

  /// Makes the device at `address`; nil when this gateway does not serve it, it is there already, or there are too
  /// many.
  func makeDevice(_ address: BluetoothAddress, _ advertisement: Advertisement) -> Device? {
    guard registry.byAddress[address] == nil, let settings = settings(of: address, advertisement) else {
      return nil
    }
    let session = settings.profile.session
    let isRoomForNew = isKnownByAddress(address) || session.hasRoomForNew(in: self)
    guard
      isRoomForNew, hasRoom && (session.hasRoom(in: self) || isConfigured(address)) || makeRoom(for: address)
    else {
      context.counters.overLimit += 1
      if context.counters.overLimit == 1 {
        log.warning(
          "too many devices: further ones are ignored",
          [
            "limit": !isRoomForNew
              ? LinkSession.mostNeverConnected : hasRoom ? registry.count(of: session) : capacity
          ])
      }
      return nil
    }
    guard let id = takeID(settings.id, for: address) else { return nil }
    checkRecord(against: settings)
    let description = DeviceDescription(
      id: id, settings: settings, record: store.record(address), bluetoothName: advertisement.name)
    let device = Device(description, advertisement, context: context)
    device.matched(by: matchedName(of: address, advertisement))
    registry.insert(device)
    if isNeverConnected(device) { neverConnected += 1 }
    for frontEnd in frontEnds { device.attach(frontEnd) }
    failLostCommands(of: device)
    if settings.isEnabled { device.session.begin() } else { device.session.stop() }
    engineChanged()
    return device
  }

  /// A profile may have changed or gone.
  private func checkRecord(against settings: DeviceSettings) {
    guard let record = store.records[settings.address] else { return }
    if let name = record.requested.changes.profile, configuration.profile(named: name) == nil {
      log.warning(
        "the profile that a request named is gone: using \(settings.profile.name)",
        ["device": settings.id, "address": settings.address, "profile": Excerpt(name)])
    }
    for (name, desired) in record.requested.desired
    where settings.profile.property(named: name) != nil
      && settings.desired(named: name, record).override == nil
    {
      log.warning(
        "dropping a stored value that is no longer valid for its property",
        [
          "device": settings.id, "address": settings.address, "property": name,
          "value": String(decoding: desired.value.bytes, as: UTF8.self),
        ])
      store.change(settings.address) { $0.requested.desired[name] = nil }
    }
  }

  // MARK: Room

  var hasRoom: Bool { deviceCount < capacity }
  private func hasRoomForNew(_ session: DeviceSession.Type) -> Bool {
    hasRoom && session.hasRoom(in: self) && session.hasRoomForNew(in: self)
  }

  /// Counts the devices that were never connected; with room for many more, those that were ignored get their turn.
  func updateNeverConnected() {
    let many = LinkSession.mostNeverConnected / 2
    let wereMany = neverConnected >= many
    neverConnected = registry.all.count(where: isNeverConnected)
    if wereMany, neverConnected < many { replayPeripherals() }
  }

  private func isNeverConnected(_ device: Device) -> Bool {
    device.session.linkSession != nil && device.description.lastConnected == nil
      && !isKnownByAddress(device.address)
  }

  /// Whether an entry has the address, or a request was about it: such a device stays until it is removed, and comes
  /// before others if there is no room for all.
  func isConfigured(_ address: BluetoothAddress) -> Bool {
    store.records[address]?.isRequested == true
      || configuration.names(address)
  }

  private func rename(_ device: Device, to id: DeviceID, _ reason: RenameReason) {
    registry.rename(device, to: id)
    device.rename(to: id, reason)
    engineChanged()
  }

  /// Another gateway uses the id of a prefix, or of the five letters of a new device, for another one: this one goes by its
  /// address from now on.
  /// - Returns: false when that cannot be; then both use the id.
  package func yieldID(_ id: DeviceID) -> Bool {
    guard let device = registry.byID[id] else { return false }
    let own = DeviceID(device.address), hasNewLetters = device.description.hasNewLetters
    guard own != id, registry.byID[own] == nil, device.settings.hasSharedID || hasNewLetters else {
      return false
    }
    if hasNewLetters { store.change(device.address) { $0.requested.changes.id = nil } }
    rename(device, to: own, .conflict)
    return true
  }

  /// How long after the last attempt a device that could not be connected is kept.
  private static let failureMemory = Duration.seconds(10)

  /// Removes a device that is out of range, that an entry matches only by a pattern, and that was never connected: not while its
  /// next attempt to connect waits. bluetoothd forgets it at each attempt that fails, and as a new device it would be tried at
  /// once, again and again.
  func removeIfGone(_ device: Device) {
    guard device.session.adapters.peripherals.isEmpty, registry.byAddress[device.address] === device,
      !isKnownByAddress(device.address), device.owner == .unknown
    else { return }
    if device.state == .waiting || device.state == .connecting {
      loop.timer(after: Self.failureMemory) { [weak self, weak device] in
        if let self, let device { removeIfGone(device) }
      }
    } else {
      remove(device, because: .neverConnected)
      store.remove(device.address)
      passOn(device.id, from: device.address)
    }
  }

  func remove(_ device: Device, because reason: DetachReason) {
    // Anybody can advertise thousands.
    log.write(reason == .neverConnected ? .debug : .info, "removed", device.fields)
    device.abandonWrites(
      reason: reason == .neverConnected
        ? "the device is out of range, and was never connected" : "the device was removed")
    device.session.stop()
    registry.remove(device)
    if reason == .removed { store.change(device.address) { $0.requested.isDeleted = false } }
    engineChanged()
    device.detach(reason)
  }

  /// Creates the device again, as its profile has changed.
  private func replace(_ device: Device) {
    device.session.claimsAreLost()
    device.abandonWrites(reason: "the device's properties were changed")
    device.session.stop()
    registry.remove(device)
    device.detach(.replaced)
    makeDevice(device.address, device.advertisement)?.adopt(device)
  }

  /// The id whose topics the device had last.
  package func storedID(of address: BluetoothAddress) -> DeviceID? { store.records[address]?.id }

  /// Records the id that the device has now. Topics under an earlier id have been cleared, or are another gateway's.
  package func storeID(of address: BluetoothAddress) {
    let id = registry.byAddress[address]?.id
    store.change(address) { record in
      record.id = id
      // Kept so far to clear the topics of its properties.
      if id == nil { (record.offered, record.valueTable) = (nil, [:]) }
    }
  }
}
