import Configuration
import GATT
import JSON

/// Requests that change devices. What they change is kept in the state database, and the rest follows from
/// ``DeviceManager/reconcile(_:)``.
extension DeviceManager {
  private func checkFree(_ id: DeviceID, for address: BluetoothAddress) throws(RequestError) {
    if let other = registry.byID[id], other.address != address {
      let name = other.settings.name.map { "\(Excerpt($0)), " } ?? ""
      throw RequestError(.invalid, "the id \(id) is in use by \(name)\(other.address)")
    }
    if let other = BluetoothAddress(compact: id.description[...]), other != address {
      throw RequestError(.invalid, "the id \(id) is that of another device, \(other)")
    }
  }

  /// Adds a device that no entry matches, that was removed, or that a request has pinned to another gateway.
  /// - Parameter options: those of earlier requests stay, apart from what this changes.
  package func add(
    _ address: BluetoothAddress, _ options: DeviceOptionsPatch
  ) throws(RequestError) -> DeviceDescription {
    let address = knownAddress(address)
    if let id = options.set.id { try checkFree(id, for: address) }
    if options.set.profile == Profile.radio.name, address.radioSender == nil {
      throw RequestError(.invalid, "only what is heard by radio has the profile radio")
    }
    if let device = registry.byAddress[address] { try checkOwner(of: device, for: options.desired) }
    let before = store.record(address)
    var record = before
    (record.requested.isAdded, record.requested.isRemoved) = (true, false)
    if record.requested.changes.gateway != gateway { record.requested.changes.gateway = nil }
    try mergeAndCheck(options, in: &record, at: .root)
    record.requested.changes.id = record.requested.changes.id ?? lettersOfStranger(address)
    store.change(address) { $0 = record }
    reconcile(address)
    guard let device = registry.byAddress[address] else {
      store.change(address) { $0 = before }
      if deviceCount >= capacity { throw RequestError("the limit of \(capacity) devices is reached") }
      throw RequestError(
        isPinnedElsewhere(address)
          ? "\(address) is pinned to another gateway: see devices[].gateway of config.json"
          : "\(address) cannot be added: other devices have its ids, or all places of devices that are only heard"
      )
    }
    set(options.desired, of: device)
    device.setDeleted(false)
    return device.description
  }

  /// The id of a device that is not known, and that no entry matches; nil: made of its address.
  private func lettersOfStranger(_ address: BluetoothAddress) -> DeviceID? {
    if let sender = address.radioSender { return lettersID(sender.name?.description, address) }
    let seen = context.centrals.lazy.compactMap { $0.peripheral(at: address) }.first
    guard registry.byAddress[address] == nil, let advertisement = seen.map(Advertisement.init),
      configuration.device(matching: address, advertisement) == nil
    else { return nil }
    return lettersID(advertisement.name.flatMap(Profile.microbitLetters), address)
  }

  package func remove(_ id: DeviceID) throws(RequestError) -> BluetoothAddress {
    let device = try requireDevice(id)
    let isConfigured = configuration.device(matching: device.address, device.advertisement) != nil
    // The writes are abandoned first, as that stores what becomes of their values.
    device.abandonWrites(reason: "the device was removed")
    store.change(device.address) { record in
      let before = record
      record.forget()
      record.advertisement = before.advertisement
      record.advertisement.matchedName = nil
      record.told = before.told
      record.requested.isRemoved = isConfigured
    }
    permitJoin?.removed.insert(device.address)
    numbering?.given.removeAll { $0.address == device.address }
    reconcile(device.address)
    return device.address
  }

  /// - Parameter elsewhere: the id under which another gateway publishes the device, if that is another one.
  package func rename(_ id: DeviceID, to new: DeviceID, elsewhere: DeviceID? = nil) throws(RequestError) {
    let device = try requireDevice(id)
    try checkFree(new, for: device.address)
    if elsewhere == nil { try checkOwner(of: device) }
    store.change(device.address) { $0.requested.changes.id = new }
    reconcile(device.address)
  }

  /// A device is renamed by the gateway that owns it.
  func checkOwner(of device: Device) throws(RequestError) {
    guard case .other(let owner) = device.owner else { return }
    throw RequestError(
      "\(device.id) is owned by the gateway \(owner), "
        + (device.settings.gateway == gateway
          ? "until this one, to which it is pinned, has found it: rename it then"
          : "which knows it by this id: rename it there first"))
  }

  /// Changes a device's name, and its id.
  ///
  /// - Parameters:
  ///   - new: the id; nil: the one that follows from the name, which one without letters and digits has none of.
  ///   - elsewhere: see ``rename(_:to:elsewhere:)``.
  @discardableResult
  package func rename(
    _ id: DeviceID, name: String, to new: DeviceID? = nil, elsewhere: DeviceID? = nil
  ) throws(RequestError) -> DeviceID {
    let new = new ?? TopicWord.similar(to: name).flatMap { try? DeviceID($0) } ?? id
    if new != id { try rename(id, to: new, elsewhere: elsewhere) }
    var patch = DeviceOptionsPatch()
    patch.options.name = name
    _ = try change(new, patch)
    return new
  }

  /// - Returns: nil if the device no longer belongs to this gateway.
  package func change(
    _ id: DeviceID, _ options: DeviceOptionsPatch
  ) throws(RequestError) -> DeviceDescription? {
    let device = try requireDevice(id)
    try checkOwner(of: device, for: options.desired)
    var record = device.record
    try mergeAndCheck(options, in: &record, at: .root.key("options"))
    if let new = record.requested.changes.gateway, new != gateway, !options.desired.isEmpty {
      throw RequestError(.invalid, "desired values are set before \(id) is given to \(new), or there")
    }
    let profile = device.description.profile
    // Before `reconcile`, which may replace the device by one without these properties.
    set(options.desired.filter { $0.value == .null }, of: device)
    let wasDisabled = device.record.isDisabled
    let setsEnabled = options.options[DeviceOptionTable.table.isEnabled] != nil
    store.change(device.address) {
      $0.requested.changes = record.requested.changes
      if setsEnabled { $0.requested.isDisabledElsewhere = false }
      for member in options.desired
      where member.value == .null && profile.property(named: member.name) == nil {
        $0.requested.desired[member.name] = nil
      }
    }
    if device.record.isDisabled != wasDisabled { device.revise() }
    reconcile(device.address)
    guard let changed = registry.byAddress[device.address] else { return nil }
    set(options.desired.filter { $0.value != .null }, of: changed)
    return changed.description
  }

  /// Desired values are those of the owner. What is set at a gateway that the device is pinned to holds, also before that has
  /// found it.
  private func checkOwner(of device: Device, for desired: [Named<JSONValue>]) throws(RequestError) {
    guard !desired.isEmpty, case .other(let owner) = device.owner, device.settings.gateway != gateway
    else { return }
    throw RequestError("\(device.id) is owned by the gateway \(owner): its desired values are set there")
  }

  /// Changes options in a record, and checks them by the rules for an entry of config.json. A property with a desired
  /// value is used.
  private func mergeAndCheck(
    _ patch: DeviceOptionsPatch, in record: inout DeviceRecord, at path: ConfigurationPath
  ) throws(RequestError) {
    record.requested.changes.merge(patch)
    let address = record.address
    let advertisement = registry.byAddress[address]?.advertisement ?? record.advertisement
    let settings = DeviceSettings(
      address, configuration.device(matching: address, advertisement), record, in: configuration)
    var options = patch.set
    options.profile = options.profile ?? settings.profile.name
    let whole = configuration.profile(named: settings.profile.name)
    // A null only has to name a property.
    options.desired = options.desired?.filter { $0.value != .null || whole?.property(named: $0.name) == nil }
    var problems =
      configuration.problems(of: options, at: path) + record.requested.changes.excess(after: patch, at: path)
    // Not if config.json alone has changed since: `every` has no effect then, and other options can be set.
    let table = DeviceOptionTable.table
    if patch.options[table.every] != nil || patch.options[table.connect] != nil,
      record.requested.changes.every != nil, settings.connect != .onDemand
    {
      problems.append(.everyWithoutVisits(at: path))
    }
    guard problems.isEmpty else {
      throw RequestError(.invalid, problems.map(\.description).joined(separator: "; "))
    }
    record.requested.changes.noteDesired(patch.desired, missingFrom: settings.profile)
  }

  /// Sets desired values; null: back to the configured one.
  private func set(_ desired: [Named<JSONValue>], of device: Device) {
    let profile = device.description.profile
    for member in desired {
      guard let index = profile.index(ofPropertyNamed: member.name) else { continue }
      device.channels[index].writer?.override(profile.properties[index].codec.value(member.value))
    }
  }

  /// - Returns: the state of the device's session afterwards.
  package func reconnect(_ id: DeviceID) throws(RequestError) -> SessionState {
    let device = try requireDevice(id)
    try device.description.checkEnabled()
    try device.session.requireLinkSession().reconnect()
    return device.state
  }

  /// Pairs with a device on a new link, or enters the passkey that the device displays.
  /// - Parameter reply: called once.
  /// - Throws: if the device is not to be paired with, for example.
  package func pair(_ device: DeviceReference, passkey: Int?, reply: @escaping PairingReply)
    throws(RequestError)
  {
    let device = try requireDevice(device)
    try device.description.checkEnabled()
    let session = try device.session.requireLinkSession()
    if device.settings.pairing == .never {
      throw RequestError(.failed, "the entry of \(device.id) in config.json has \"pair\": false")
    }
    session.pair(passkey: passkey, reply: reply)
  }

  /// Deletes the bond with a device.
  /// - Parameter reply: called once.
  package func unpair(
    _ device: DeviceReference, reply: @escaping UnpairingReply
  ) throws(RequestError) {
    try requireDevice(device).session.unpair(reply: reply)
  }
}

/// How a request names a device, or another peripheral.
package enum DeviceReference: Sendable, Equatable {
  case id(DeviceID)
  /// The address of a device, or for ``DeviceManager/inspect(_:)`` of any peripheral in range.
  case address(BluetoothAddress)
}
