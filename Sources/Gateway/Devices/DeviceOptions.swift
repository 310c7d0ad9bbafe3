import Configuration
import GATT

/// What requests have changed of a device, over its entry in the configuration; nil where nothing is changed.
struct DeviceOptions: Sendable, Equatable {
  var id: DeviceID?
  var name: String?
  var area: String?
  /// In ms.
  var period: Int?
  var isEnabled: Bool?
  var gateway: GatewayID?

  /// What `other` names is changed as well.
  mutating func add(_ other: DeviceOptions) {
    id = other.id ?? id
    name = other.name ?? name
    area = other.area ?? area
    period = other.period ?? period
    isEnabled = other.isEnabled ?? isEnabled
    gateway = other.gateway ?? gateway
  }

  mutating func apply(_ update: DeviceOptionsUpdate) {
    update.name.apply(to: &name)
    update.area.apply(to: &area)
    update.period.apply(to: &period)
    update.isEnabled.apply(to: &isEnabled)
    update.gateway.apply(to: &gateway)
  }
}

/// What a request changes of a device's options. The id is not among them: it is changed by a request of its own,
/// since it moves the device's topics.
struct DeviceOptionsUpdate: Sendable, Equatable {
  var name = OptionUpdate<String>.keep
  var area = OptionUpdate<String>.keep
  var period = OptionUpdate<Int>.keep
  var isEnabled = OptionUpdate<Bool>.keep
  var gateway = OptionUpdate<GatewayID>.keep
}

/// What becomes of one option.
enum OptionUpdate<Value: Sendable & Equatable>: Sendable, Equatable {
  /// It was not named.
  case keep
  /// Back to what the configuration says: it was `null`.
  case reset
  case set(Value)

  func apply(to option: inout Value?) {
    switch self {
    case .keep: break
    case .reset: option = nil
    case .set(let value): option = value
    }
  }
}

extension DeviceOptionsUpdate: ConfigurationSection {
  static var keys: [ConfigurationKey<Self>] {
    [
      ConfigurationKey("name", \.name, .update(.label)),
      ConfigurationKey("area", \.area, .update(.label)),
      ConfigurationKey("period", \.period, .update(.period)),
      ConfigurationKey("enabled", \.isEnabled, .update(.bool)),
      ConfigurationKey("gateway", \.gateway, .update(.gatewayID)),
    ]
  }

  static var elsewhere: [String: String] {
    ["id": "use the request device/rename", "match": "it can be changed in config.json alone"]
  }
}

extension ConfigurationRule {
  /// A key that may be `null`: back to the configuration.
  fileprivate static func update<Option>(_ rule: ConfigurationRule<Option>) -> Self
  where Value == OptionUpdate<Option> {
    ConfigurationRule(
      shape: rule.shape,
      read: { json, _, path, errors in
        json == .null ? .reset : rule.read(json, nil, path, &errors).map(OptionUpdate.set)
      },
      write: { update in
        switch update {
        case .keep: nil
        case .reset: .null
        case .set(let value): rule.write(value)
        }
      })
  }
}
