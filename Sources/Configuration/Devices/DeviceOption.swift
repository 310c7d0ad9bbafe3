import JSON

/// The declaration of an option whose type does not matter.
package protocol DeviceOptionDeclaration: Sendable {
  /// The key in JSON.
  var name: String { get }
  var shape: ConfigurationShape { get }
  /// The value where nothing sets it; nil: none.
  var defaultJSON: JSONValue? { get }
  /// Which requests set the option.
  var requests: DeviceOptionRequests { get }
  /// Whether the link is made again when the option changes.
  var restartsLink: Bool { get }
  /// Whether `check` hides the value: who knows it can pose as the device.
  var isSecret: Bool { get }
  /// Whether the option is about values of properties: they are applied by writing them, and each is stored by itself.
  var setsValues: Bool { get }
  /// Whether the members are set one by one: what a request sets of them holds with what config.json says of the
  /// others.
  var setsMembers: Bool { get }
  /// The value as it is written; nil, with an error added, when it is not valid.
  func check(_ json: JSONValue, at path: ConfigurationPath, _ errors: inout [ConfigurationError])
    -> JSONValue?
}

/// Which requests set an option. config.json sets all of them.
package enum DeviceOptionRequests: Sendable {
  case none
  /// Only `device/add`; a sender of `device/options` is told what to do otherwise.
  case add(otherwise: String)
  /// `device/add` and `device/options`.
  case all

  /// Why `device/options` does not set the option; nil if it does.
  var hint: String? {
    switch self {
    case .none: Self.onlyInTheFile
    case .add(let hint): hint
    case .all: nil
    }
  }

  static let onlyInTheFile = "it can only be changed in config.json"

  package var includesAdd: Bool { if case .none = self { false } else { true } }
}

/// The declaration of an option.
///
/// - Parameters:
///   - Value: of a value that is set.
///   - Effective: of the value that holds: `Value` if there is a default, else `Value?`.
package struct DeviceOption<Value: Sendable, Effective: Sendable>: DeviceOptionDeclaration {
  package let name: String
  package let requests: DeviceOptionRequests
  package let restartsLink: Bool
  package let isSecret: Bool
  package let setsValues: Bool
  package let setsMembers: Bool
  let rule: ConfigurationRule<Value>
  package let defaultJSON: JSONValue?
  /// The value that holds where this is set; nil: nothing is.
  package let effective: @Sendable (Value?) -> Effective

  package var shape: ConfigurationShape { rule.shape }

  package func check(
    _ json: JSONValue, at path: ConfigurationPath, _ errors: inout [ConfigurationError]
  ) -> JSONValue? {
    rule.read(json, nil, path, &errors).flatMap(rule.write)
  }

  /// Reads a value; nil for JSON that is not valid.
  func value(_ json: JSONValue) -> Value? {
    var errors: [ConfigurationError] = []
    let value = rule.read(json, nil, .root, &errors)
    return errors.isEmpty ? value : nil
  }
}

extension DeviceOption where Effective == Value? {
  init(
    _ name: String, _ rule: ConfigurationRule<Value>, requests: DeviceOptionRequests = .all,
    restartsLink: Bool = false, isSecret: Bool = false, setsValues: Bool = false
  ) {
    self.init(
      name: name, requests: requests, restartsLink: restartsLink, isSecret: isSecret, setsValues: setsValues,
      setsMembers: false, rule: rule, defaultJSON: nil, effective: { $0 })
  }
}

extension DeviceOption where Effective == Value {
  init(
    _ name: String, _ rule: ConfigurationRule<Value>, default: Value, requests: DeviceOptionRequests = .all,
    restartsLink: Bool = false, setsMembers: Bool = false
  ) {
    self.init(
      name: name, requests: requests, restartsLink: restartsLink, isSecret: false, setsValues: false,
      setsMembers: setsMembers, rule: rule, defaultJSON: rule.write(`default`), effective: { $0 ?? `default` }
    )
  }
}
