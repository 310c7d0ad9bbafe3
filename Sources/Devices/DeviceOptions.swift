import Configuration
import GATT
import JSON

/// What requests have changed of a device, over its entry in the configuration; nil where nothing is changed.
package struct DeviceOptions: Sendable, Equatable {
  package init() {}

  package var id: DeviceID?
  package var name: String?
  package var area: String?
  /// The name of its profile, of a device that a request added.
  package var profile: String?
  /// The properties that are used.
  package var properties: [String]?
  package var isEnabled: Bool?
  package var gateway: GatewayID?
  package var connect: Configuration.ConnectMode?
  package var every: Int?

  /// What `other` names is changed as well.
  mutating func add(_ other: DeviceOptions) {
    id = other.id ?? id
    name = other.name ?? name
    area = other.area ?? area
    profile = other.profile ?? profile
    properties = other.properties ?? properties
    isEnabled = other.isEnabled ?? isEnabled
    gateway = other.gateway ?? gateway
    connect = other.connect ?? connect
    every = other.every ?? every
  }

  mutating func apply(_ update: DeviceOptionsUpdate) {
    update.name.apply(to: &name)
    update.area.apply(to: &area)
    update.properties.apply(to: &properties)
    update.isEnabled.apply(to: &isEnabled)
    update.gateway.apply(to: &gateway)
    update.connect.apply(to: &connect)
    update.every.apply(to: &every)
  }
}

/// What a request changes of a device's options. The id is not among them: it is changed by a request of its own,
/// since it moves the device's topics.
package struct DeviceOptionsUpdate: Sendable, Equatable {
  package init() {}

  package var name = OptionUpdate<String>.keep
  package var area = OptionUpdate<String>.keep
  package var properties = OptionUpdate<[String]>.keep
  /// The desired values that are set; null: back to what the configuration says.
  package var desired: [Named<JSONValue>] = []
  /// Short for `desired.period`.
  package var period = OptionUpdate<Int>.keep
  package var isEnabled = OptionUpdate<Bool>.keep
  package var gateway = OptionUpdate<GatewayID>.keep
  package var connect = OptionUpdate<Configuration.ConnectMode>.keep
  package var every = OptionUpdate<Int>.keep

  /// ``desired`` with ``period``.
  var desiredValues: [Named<JSONValue>] {
    switch period {
    case .keep: desired
    case .reset: desired + [Named("period", .null)]
    case .set(let milliseconds): desired + [Named("period", .integer(milliseconds))]
    }
  }
}

/// What becomes of one option.
package enum OptionUpdate<Value: Sendable & Equatable>: Sendable, Equatable {
  /// It was not named.
  case keep
  /// Back to what the configuration says: it was `null`.
  case reset
  case set(Value)

  /// What it is set to.
  var value: Value? { if case .set(let value) = self { value } else { nil } }

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
      ConfigurationKey("properties", \.properties, .update(.list(of: .propertyName))),
      ConfigurationKey("desired", \.desired, .members(of: .any, names: Property.namePattern)),
      ConfigurationKey("period", \.period, .update(.period)),
      ConfigurationKey("enabled", \.isEnabled, .update(.bool)),
      ConfigurationKey("gateway", \.gateway, .update(.gatewayID)),
      ConfigurationKey("connect", \.connect, .update(.choice)),
      ConfigurationKey("every", \.every, .update(.visitInterval)),
    ]
  }

  package static var elsewhere: [String: String] {
    [
      "id": "use the request device/rename", "match": "it can only be changed in config.json",
      "adapter": "it can only be changed in config.json",
      "profile": "change it in config.json, or with device/remove and device/add",
    ]
  }

  package func problems(at path: ConfigurationPath) -> [ConfigurationError] {
    period != .keep && desired.contains { $0.name == "period" } ? [.periodTwice(at: path)] : []
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
