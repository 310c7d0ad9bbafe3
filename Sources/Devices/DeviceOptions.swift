import Configuration
import GATT
import JSON

/// What requests have changed of a device, over its entry in the configuration; nil where nothing is changed.
package struct DeviceOptions: Sendable, Equatable {
  package init() {}

  package var id: DeviceID?
  package var name: String?
  package var area: String?
  package var isEnabled: Bool?
  package var gateway: GatewayID?

  /// What `other` names is changed as well.
  mutating func add(_ other: DeviceOptions) {
    id = other.id ?? id
    name = other.name ?? name
    area = other.area ?? area
    isEnabled = other.isEnabled ?? isEnabled
    gateway = other.gateway ?? gateway
  }

  mutating func apply(_ update: DeviceOptionsUpdate) {
    update.name.apply(to: &name)
    update.area.apply(to: &area)
    update.isEnabled.apply(to: &isEnabled)
    update.gateway.apply(to: &gateway)
  }
}

/// What a request changes of a device's options. The id is not among them: it is changed by a request of its own,
/// since it moves the device's topics.
package struct DeviceOptionsUpdate: Sendable, Equatable {
  package init() {}

  package var name = OptionUpdate<String>.keep
  package var area = OptionUpdate<String>.keep
  package var period = OptionUpdate<Int>.keep
  package var isEnabled = OptionUpdate<Bool>.keep
  package var gateway = OptionUpdate<GatewayID>.keep
}

/// What becomes of one option.
package enum OptionUpdate<Value: Sendable & Equatable>: Sendable, Equatable {
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
  package static var keys: [ConfigurationKey<Self>] {
    [
      ConfigurationKey("name", \.name, .update(.label)),
      ConfigurationKey("area", \.area, .update(.label)),
      ConfigurationKey("period", \.period, .update(.period)),
      ConfigurationKey("enabled", \.isEnabled, .update(.bool)),
      ConfigurationKey("gateway", \.gateway, .update(.gatewayID)),
    ]
  }

  package static var elsewhere: [String: String] {
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
