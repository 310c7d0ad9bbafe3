import Configuration
import GATT

/// Where a value comes from. Commands and requests rank above config.json; of the two the latest counts.
package enum ValueSource: String, Sendable {
  /// It is not set anywhere.
  case `default`
  case configuration = "config.json"
  /// A command on the device's own topics.
  case command
  /// A request to the gateway.
  case request
}

/// A value, and where it comes from.
package struct Sourced<Value: Sendable & Equatable>: Sendable, Equatable {
  package let value: Value
  package let source: ValueSource

  package init(_ value: Value, _ source: ValueSource) {
    self.value = value
    self.source = source
  }
}

/// What holds for a device: its entry in the configuration, and over it what requests and commands changed.
package struct DeviceSettings: Sendable, Equatable {
  package let address: BluetoothAddress
  /// Its id in topics. Where ``hasSharedID``, the first device that comes gets it, and the others go by their
  /// addresses.
  package let id: Sourced<DeviceID>
  /// The id is that of an entry that several devices may match.
  package let hasSharedID: Bool
  package let name: Sourced<String?>
  /// Its own, else that of the gateway.
  package let area: Sourced<String?>
  /// With the properties in use only.
  package let profile: Profile
  /// The configured values, by property.
  package let desired: [String: Value]
  package let isEnabled: Sourced<Bool>
  /// The only gateway that serves it; nil: whichever has it in range.
  package let gateway: Sourced<GatewayID?>
  /// The only adapter that connects to it; nil: the one that receives it best.
  package let adapter: String?
  package let pairing: Configuration.PairingMode
  /// The one that the device requires for pairing.
  let passkey: Int?
  package let connect: Sourced<Configuration.ConnectMode>
  /// Seconds between two visits, if it is connected on demand.
  package let every: Sourced<Int>

  /// Between two visits; nil if it is always connected.
  var visitInterval: Duration? { connect.value == .onDemand ? .seconds(every.value) : nil }
}

/// Which gateway serves a device, by the configuration and by requests.
package enum Assignment: Sendable, Equatable {
  case here(DeviceSettings)
  /// It is pinned to another gateway.
  case elsewhere(GatewayID, DeviceSettings)
  /// No entry of the configuration matches, and no request added it.
  case unmatched
  /// A request removed it.
  case removed
}

extension Configuration {
  /// Which gateway serves the device at `address`, and what holds for it.
  ///
  /// - Parameters:
  ///   - advertisement: what was received in this run; what is recorded of the device counts as well.
  ///   - gateway: this gateway.
  package func assignment(
    _ address: BluetoothAddress, _ advertisement: Advertisement, record: DeviceRecord?,
    in gateway: GatewayID
  ) -> Assignment {
    if let record, record.isRemoved { return .removed }
    let known = record.map { advertisement.adding(to: $0.advertisement) } ?? advertisement
    let entry = device(matching: address, known)
    guard entry != nil || record?.isAdded == true else { return .unmatched }
    let device = DeviceSettings(address, entry, record, in: self)
    guard let pinned = device.gateway.value, pinned != gateway else { return .here(device) }
    return .elsewhere(pinned, device)
  }
}

extension Configuration {
  /// An entry with the profile and the properties that requests named, as far as they still exist.
  fileprivate func entry(_ entry: Device, changedBy changes: DeviceOptions) -> Device {
    var entry = entry
    if let name = changes.profile, name != entry.profile ?? Profile.microbit.name, profile(named: name) != nil
    {
      entry = Device()
      entry.profile = name
    }
    guard let profile = profile(named: entry.profile ?? Profile.microbit.name) else { return entry }
    let properties = changes.properties?.filter { profile.property(named: $0) != nil } ?? []
    if !properties.isEmpty { entry.properties = properties }
    return entry
  }
}

extension DeviceSettings {
  /// - Parameter entry: that of the configuration which matches; nil: none, a request added the device.
  package init(
    _ address: BluetoothAddress, _ entry: Configuration.Device?, _ record: DeviceRecord?,
    in configuration: Configuration
  ) {
    let changes = record?.changes ?? DeviceOptions()
    self.address = address
    let id = Self.layered(changes.id, entry?.id)
    self.id = Sourced(id.value ?? DeviceID(address), id.source)
    hasSharedID = id.source == .configuration && entry?.match.isIdentifier == false
    name = Self.layered(changes.name, entry?.name)
    self.area = Self.layered(changes.area, entry?.area ?? configuration.gateway.area)
    let used = configuration.entry(entry ?? Configuration.Device(), changedBy: changes)
    profile = configuration.profile(of: used)
    desired = profile.initialValues.merging(configuration.desired(of: used)) { $1 }
    let enabled = Self.layered(changes.isEnabled, entry?.isEnabled)
    isEnabled = Sourced(enabled.value ?? true, enabled.source)
    gateway = Self.layered(changes.gateway, entry?.gateway)
    adapter = entry?.adapter
    pairing = entry?.pair ?? .ask
    passkey = entry?.passkey
    let connect = Self.layered(changes.connect, entry?.connect)
    self.connect = Sourced(connect.value ?? .always, connect.source)
    let every = Self.layered(changes.every, entry?.every)
    self.every = Sourced(every.value ?? Configuration.Device.defaultInterval, every.source)
  }

  /// The value that the property is to hold, by the configuration and what commands and requests set.
  package func desired(_ property: String, _ record: DeviceRecord?) -> Sourced<Value?> {
    if let waiting = waiting(property, record) { return Sourced(waiting.value, .command) }
    if let value = override(property, record) { return Sourced(value.value, value.source) }
    return Self.layered(nil, desired[property])
  }

  /// What a command or a request set, in this run or an earlier one; nil where it does not fit the property (any more).
  func override(_ name: String, _ record: DeviceRecord?) -> DesiredValue.Override? {
    guard let stored = record?.desired[name], let property = profile.property(named: name),
      let encoded = try? property.value(of: stored.value)
    else { return nil }
    return DesiredValue.Override(value: encoded.value, source: stored.source)
  }

  private static func layered<Value>(_ request: Value?, _ configuration: Value?) -> Sourced<Value?> {
    if let request { return Sourced(request, .request) }
    if let configuration { return Sourced(configuration, .configuration) }
    return Sourced(nil, .default)
  }
}
