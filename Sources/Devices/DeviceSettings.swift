import Configuration
import GATT
import JSON

/// Where a value comes from. Commands and requests rank above config.json; of the two the latest counts.
package enum ValueSource: String, Sendable {
  /// The value is not set anywhere.
  case `default`
  case configuration = "config.json"
  /// The message for the whole fleet.
  case fleet
  /// A command on the device's own topics.
  case command
  /// A request to the gateway.
  case request
}

/// What holds for a device: its entry in the configuration, and over it what requests and commands changed. Each option
/// of the ``DeviceOptionTable`` is a property.
@dynamicMemberLookup
package struct DeviceSettings: Sendable, Equatable {
  package let address: BluetoothAddress
  /// What requests have changed.
  private let requested: DeviceOptions
  /// What config.json sets.
  private let configured: DeviceOptions
  /// The device's id in topics. Where ``hasSharedID``, the first device that comes gets it, and the others go by their addresses.
  package var id: DeviceID { requested.id ?? configured.id ?? DeviceID(address) }
  /// The id is that of an entry that several devices may match.
  package let hasSharedID: Bool
  /// The profile with the properties in use only.
  package let profile: Profile
  /// The ``profile``, with what is to become of the values of its properties.
  package internal(set) var adjustedProfile: Profile
  /// The configured values, by property.
  package let desired: [String: Value]
  /// The device's entry is the fleet's, and not of config.json.
  package let isOfFleet: Bool
  /// The device's area is that of the gateway.
  private let inheritsArea: Bool

  /// The value that holds for an option.
  package subscript<Value, Effective>(
    dynamicMember path: KeyPath<DeviceOptionTable, DeviceOption<Value, Effective>>
  ) -> Effective {
    let option = DeviceOptionTable.table[keyPath: path]
    return option.effective(requested.value(of: option) ?? configured.value(of: option))
  }

  /// The value that holds for an option, as JSON; nil: none.
  package subscript(option: any DeviceOptionDeclaration) -> JSONValue? {
    requested[option] ?? configured[option] ?? option.defaultJSON
  }

  /// Where the value of an option comes from.
  package func source(of option: any DeviceOptionDeclaration) -> ValueSource {
    if requested[option] != nil { return .request }
    if configured[option] == nil { return .default }
    return isOfFleet && !(inheritsArea && option.name == "area") ? .fleet : .configuration
  }

  package func source<Option: DeviceOptionDeclaration>(
    of path: KeyPath<DeviceOptionTable, Option>
  ) -> ValueSource {
    source(of: DeviceOptionTable.table[keyPath: path])
  }

  /// The adjustments of properties that are set, as JSON.
  package var adjustJSON: JSONValue { self[DeviceOptionTable.table.adjust] ?? [:] }

  /// What is added to each number of a property, or of a value that the device's program names itself; nil: nothing.
  package func offset(_ name: String) -> Offset? {
    let configured = Self.offset(name, configured.adjust, configured.values)
    return Self.offset(name, self.adjust, self.values).map {
      Offset(value: $0, isConfigured: configured == $0)
    }
  }

  private static func offset(
    _ name: String, _ adjust: [Named<Adjustment>]?, _ values: ValueSettings?
  ) -> Double? {
    if let key = NamedValue.key(of: name) { return values?.on?[key]?.adjustment.offset }
    return adjust?.last { $0.name == name }?.value.offset
  }

  /// Whether the device is connected on demand, without a permanent link.
  package var isOnDemand: Bool { self.connect == .onDemand }
  /// The time between two visits; nil if the device is not connected on demand.
  var visitInterval: Duration? { isOnDemand ? .seconds(self.every) : nil }
}

/// What is added to each number of a property.
package struct Offset: Sendable, Equatable {
  package let value: Double
  /// Whether the configuration sets it, and no request another one.
  package let isConfigured: Bool
}

/// Which gateway serves a device, by the configuration and by requests.
package enum Assignment: Sendable, Equatable {
  case here(DeviceSettings)
  /// The device is pinned to another gateway.
  case elsewhere(GatewayID, DeviceSettings)
  /// No entry of the configuration matches the device, and no request added it.
  case unmatched
  /// A request removed the device.
  case removed

  /// What holds for the device, wherever it is served.
  package var settings: DeviceSettings? {
    switch self {
    case .here(let settings), .elsewhere(_, let settings): settings
    case .unmatched, .removed: nil
    }
  }
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
    if let record, record.requested.isRemoved { return .removed }
    let entry = device(matching: address, advertisement.adding(to: record))
    guard entry != nil || record?.requested.isAdded == true else { return .unmatched }
    let device = DeviceSettings(address, entry, record, in: self)
    guard let pinned = device.gateway, pinned != gateway else { return .here(device) }
    return .elsewhere(pinned, device)
  }
}

extension DeviceSettings {
  /// - Parameter entry: that of the configuration which matches; nil: none, a request added the device.
  package init(
    _ address: BluetoothAddress, _ entry: Configuration.Device?, _ record: DeviceRecord?,
    in configuration: Configuration
  ) {
    var configured = entry?.options ?? DeviceOptions()
    isOfFleet = entry?.isOfFleet == true
    inheritsArea = configured.area == nil
    configured.area = configured.area ?? configuration.gateway.area
    var requested = record?.requested.changes ?? DeviceOptions()
    if record?.requested.isDisabledElsewhere == true { requested.isEnabled = false }
    // A sender by radio has no other profile.
    if let letters = entry?.match.radio {
      configured.id = configured.id ?? (try? DeviceID(letters.description))
    }
    if address.radioSender != nil { (configured.profile, requested.profile) = (Profile.radio.name, nil) }
    self.address = address
    (self.configured, self.requested) = (configured, requested.completed(by: configured))
    hasSharedID = requested.id == nil && configured.id != nil && entry?.match.isIdentifier == false
    let used = configuration.options(configured, changedBy: requested)
    profile = configuration.profile(of: used, sent: record?.offered ?? [])
    desired = profile.initialValues.merging(configuration.desired(of: used)) { $1 }
    adjustedProfile = profile
    adjustedProfile = profile.adjusted(by: self.adjust)
  }

  /// The value that a property is to hold: by the configuration, and by what commands and requests have set, in this run or an
  /// earlier one. What does not fit the property (any more) is left out.
  package func desired(_ property: Property, _ record: DeviceRecord?) -> DesiredValue {
    guard property.isWritable, property.kind == .state else { return DesiredValue() }
    func value(_ stored: JSONValue) -> EncodedValue? { try? property.value(of: stored) }
    return DesiredValue(
      configured: desired[property.name].flatMap { try? property.encode($0) },
      override: record?.requested.desired[property.name].flatMap { stored in
        value(stored.value).map { DesiredValue.Override(value: $0, source: stored.source) }
      },
      waiting: record?.requested.waiting[property.name].flatMap { stored in
        value(stored.value).map { DesiredValue.Waiting(value: $0, sender: stored.sender) }
      })
  }

  /// Where a desired value comes from.
  package func source(of desired: DesiredValue) -> ValueSource {
    desired.newest?.source
      ?? (desired.configured == nil ? .default : isOfFleet ? .fleet : .configuration)
  }

  /// What is desired of the property with this name; nothing if there is none.
  func desired(named name: String, _ record: DeviceRecord?) -> DesiredValue {
    profile.property(named: name).map { desired($0, record) } ?? DesiredValue()
  }
}
