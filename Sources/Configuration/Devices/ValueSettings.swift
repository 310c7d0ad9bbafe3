import JSON

/// How the values that a program names itself are shown.
package struct ValueDescription: ConfigurationSection, Equatable {
  /// The name for people.
  package var name: String?
  /// Home Assistant's device class.
  package var deviceClass: String?
  package var adjustment = Adjustment()
  /// The names of the numbers behind the value's name, separated by `,` or the like; nil stands for one that is left out.
  package var columns: [ValueName?]?

  package init() {}

  /// Whether only a number can be shown so.
  package var isNumber: Bool { adjustment.unit != nil || deviceClass != nil }

  package static let keys: [ConfigurationKey<Self>] =
    [
      ConfigurationKey("name", \.name, .optional(.label)),
      ConfigurationKey("device_class", \.deviceClass, .optional(.text(longest: 64))),
    ]
    + Adjustment.keys.map { ConfigurationKey($0, in: \.adjustment) }
    + [ConfigurationKey("columns", \.columns, .optional(.columns))]
}

/// Whether what a program sends is values.
package enum ValueSettings: Sendable, Equatable {
  case off
  /// Values, with what is said about some, by name; what is called ``columns`` is about messages of numbers without
  /// names.
  case on([Named<ValueDescription>])

  package static let columns = "columns"

  /// The descriptions; nil: values are off.
  package var on: [ValueKey: ValueDescription]? {
    guard case .on(let named) = self else { return nil }
    return Dictionary(named.compactMap { named in ValueKey(named.name).map { ($0, named.value) } }) { $1 }
  }
}

extension ConfigurationRule<ValueSettings> {
  /// `false`, or an object of descriptions by name.
  static var values: Self {
    let members = ConfigurationRule<[Named<ValueDescription>]>.members(of: .section) { name in
      ValueKey(name) != nil
        ? nil
        : ConfigurationProblem(
          "not a valid name", hint: "as in topics: letters in lower case, digits and _, at most 32")
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
        return members.read(
          json.withColumns { list in if case .array = list { [ValueSettings.columns: list] } else { nil } },
          nil, path, &errors
        )
        .map(ValueSettings.on)
      },
      write: { settings in
        switch settings {
        case .off: .bool(false)
        case .on(let named): members.write(named)?.withColumns { $0[ValueSettings.columns] }
        }
      })
  }
}

extension JSONValue {
  /// `"columns": […]` of messages is the same as `"columns": {"columns": […]}`.
  fileprivate func withColumns(_ change: (JSONValue) -> JSONValue?) -> JSONValue {
    guard let columns = self[ValueSettings.columns], let changed = change(columns) else { return self }
    return setting(ValueSettings.columns, to: changed)
  }
}

extension ConfigurationRule<[ValueName?]> {
  /// A list of names, and of `null` for what has none.
  static var columns: Self {
    ConfigurationRule(
      shape: .list(.any),
      parse: { json throws(ConfigurationProblem) in
        guard case .array(let elements) = json else { return nil }
        guard (1...ValueName.longest).contains(elements.count) else {
          throw ConfigurationProblem("expected 1 to \(ValueName.longest) names")
        }
        var names: [ValueName?] = []
        for element in elements {
          let name = element.text.flatMap { ValueName($0) }
          guard name != nil || element == .null else {
            throw ConfigurationProblem(
              "\(Excerpt(element.payload)) is not a name",
              hint: "it begins with a letter; null leaves a column out")
          }
          guard name == nil || !names.contains(name) else {
            throw ConfigurationProblem("two columns have the name \(Excerpt(element.payload))")
          }
          names.append(name)
        }
        return names
      },
      write: { .array($0.map { $0.map { .string($0.written) } ?? .null }) })
  }
}
