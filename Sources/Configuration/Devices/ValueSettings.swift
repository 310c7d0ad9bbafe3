import JSON

/// How the values that a program names itself are shown.
package struct ValueDescription: ConfigurationSection, Equatable {
  /// For people.
  package var name: String?
  /// Home Assistant's.
  package var deviceClass: String?
  package var adjustment = Adjustment()

  package init() {}

  package static let keys: [ConfigurationKey<Self>] =
    [
      ConfigurationKey("name", \.name, .optional(.label)),
      ConfigurationKey("device_class", \.deviceClass, .optional(.text(longest: 64))),
    ]
    + Adjustment.keys.map { ConfigurationKey($0, in: \.adjustment) }
}

/// Whether the lines `name:value` of a program are values.
package enum ValueSettings: Sendable, Equatable {
  case off
  /// With what is said about some, by name.
  case on([Named<ValueDescription>])

  /// Nil: they are off.
  package var on: [String: ValueDescription]? {
    guard case .on(let named) = self else { return nil }
    return Dictionary(named.map { ($0.name, $0.value) }) { $1 }
  }
}

extension ConfigurationRule<ValueSettings> {
  /// `false`, or an object of descriptions by name.
  static var values: Self {
    let members = ConfigurationRule<[Named<ValueDescription>]>.members(
      of: .section, names: "^[a-z0-9_]{1,32}$"
    ) { name in
      let isValid =
        (1...32).contains(name.utf8.count)
        && name.utf8.allSatisfy("abcdefghijklmnopqrstuvwxyz0123456789_".utf8.contains)
      return isValid ? nil : ConfigurationProblem("not a valid name", hint: "allowed are a-z, 0-9 and _")
    }
    return ConfigurationRule(
      shape: .falseOr(members.shape),
      read: { json, _, path, errors in
        if json == .bool(false) { return .off }
        if case .bool = json {
          errors.append(
            path.error("expected false or an object, found true", hint: "leave the key out instead"))
          return nil
        }
        return members.read(json, nil, path, &errors).map(ValueSettings.on)
      },
      write: { settings in
        switch settings {
        case .off: .bool(false)
        case .on(let named): members.write(named)
        }
      })
  }
}
