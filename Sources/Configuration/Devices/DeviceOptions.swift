import JSON

/// Options of a device that are set in one place: in an entry of config.json, or by requests. Each option of the
/// ``DeviceOptionTable`` is a property, which is nil where the option is not set.
@dynamicMemberLookup
package struct DeviceOptions: Sendable, Equatable {
  /// Valid values, by the options' names.
  var values: [String: JSONValue] = [:]

  /// The name that stands for the automatic ones in `properties`.
  package static let automatic = "auto"

  package init() {}

  /// The value that is set; nil: none.
  package subscript<Value, Effective>(
    dynamicMember path: KeyPath<DeviceOptionTable, DeviceOption<Value, Effective>>
  ) -> Value? {
    get { value(of: DeviceOptionTable.table[keyPath: path]) }
    set {
      let option = DeviceOptionTable.table[keyPath: path]
      values[option.name] = newValue.flatMap(option.rule.write)
    }
  }

  /// The value that is set; nil: none. A key path takes longer.
  package func value<Value, Effective>(of option: DeviceOption<Value, Effective>) -> Value? {
    guard let json = values[option.name] else { return nil }
    return option.value(json)
  }

  /// The JSON of an option; nil: it is not set.
  package subscript(option: any DeviceOptionDeclaration) -> JSONValue? { values[option.name] }

  package var isEmpty: Bool { values.isEmpty }

  /// The options with what `other` sets.
  package func merging(_ other: DeviceOptions) -> DeviceOptions {
    var merged = self
    merged.values.merge(other.values) { $1 }
    return merged
  }

  /// The options with what `other` says of members that are not set here, of options whose members are set one by one.
  package func completed(by other: DeviceOptions) -> DeviceOptions {
    var completed = self
    for option in DeviceOptionTable.all where option.setsMembers {
      if let own = self[option], let others = other[option] {
        completed.values[option.name] = others.patched(by: own)
      }
    }
    return completed
  }

  /// ``desired`` with ``period``.
  var desiredValues: [Named<JSONValue>] {
    (self.desired ?? []) + (periodJSON.map { [Named("period", $0)] } ?? [])
  }

  /// The period, which can be `null` in a patch.
  private var periodJSON: JSONValue? { self[DeviceOptionTable.table.period] }

  /// `period` is short for `desired.period`.
  func problems(at path: ConfigurationPath) -> [ConfigurationError] {
    if values["key"] != nil, values["key_file"] != nil {
      return [path.key("key_file").error("key and key_file must not be combined", hint: "give one of them")]
    }
    guard periodJSON != nil, self.desired?.contains(where: { $0.name == "period" }) == true else { return [] }
    return [
      path.key("period").error("period and desired.period must not be combined", hint: "give one of them")
    ]
  }
}

// MARK: As they are stored

extension DeviceOptions {
  /// An object of what is set.
  package var json: JSONValue { .object(of: DeviceOptionTable.all.map { ($0.name, self[$0]) }) }

  /// Reads an object; nil if the JSON is none, or a value is not valid. Other members are ignored.
  package init?(_ json: JSONValue) {
    guard case .object(let object) = json else { return nil }
    var errors: [ConfigurationError] = []
    for option in DeviceOptionTable.all {
      values[option.name] = object[option.name].flatMap { option.check($0, at: .root, &errors) }
    }
    guard errors.isEmpty else { return nil }
  }
}

// MARK: Changes

/// What a request changes of a device's options: a JSON merge patch (RFC 7396). `null` restores what config.json says.
package struct DeviceOptionsPatch: Sendable, Equatable {
  /// Values, also `null`.
  package var options = DeviceOptions()

  package init() {}

  /// What the patch sets.
  package var set: DeviceOptions {
    var set = options
    set.values = options.values.filter { $0.value != .null }
    for option in DeviceOptionTable.all where option.setsMembers {
      set.values[option.name] = set.values[option.name]?.withoutNulls
    }
    return set
  }

  /// The desired values that it sets; `null`: back to what config.json says.
  package var desired: [Named<JSONValue>] { options.desiredValues }
}

extension DeviceOptionsPatch: ConfigurationSection {
  /// The keys of `device/options`.
  package static let keys: [ConfigurationKey<Self>] = DeviceOptionTable.all.filter { $0.requests.hint == nil }
    .map { ConfigurationKey($0, \.options, allowsNull: true) }

  package static var elsewhere: [String: String] {
    let others = DeviceOptionTable.all.compactMap { option in option.requests.hint.map { (option.name, $0) } }
    return Dictionary(others + [("match", DeviceOptionRequests.onlyInTheFile)]) { $1 }
  }

  package func problems(at path: ConfigurationPath) -> [ConfigurationError] { options.problems(at: path) }
}

extension DeviceOptions {
  /// The most members that requests set of an option whose members are set one by one.
  private static let mostMembers = 64

  /// Of which options a patch that was applied has left too many members.
  package func excess(after patch: DeviceOptionsPatch, at path: ConfigurationPath) -> [ConfigurationError] {
    DeviceOptionTable.all.compactMap { option in
      guard option.setsMembers, patch.options[option] != nil, case .object(let object) = self[option],
        object.members.count > Self.mostMembers
      else { return nil }
      return path.key(option.name).error(
        "requests set at most \(Self.mostMembers) of them for a device",
        hint: "set those to null that are no longer used, or describe them in config.json")
    }
  }

  /// Applies a patch. The desired values are stored elsewhere.
  package mutating func merge(_ patch: DeviceOptionsPatch) {
    for option in DeviceOptionTable.all where !option.setsValues {
      guard let value = patch.options[option] else { continue }
      if option.setsMembers, value != .null {
        // Always written alike: of two valid values a valid one is made.
        var errors: [ConfigurationError] = []
        let merged = option.check((values[option.name] ?? [:]).patched(by: value), at: .root, &errors)
        values[option.name] = merged == [:] && value != [:] ? nil : merged
      } else {
        values[option.name] = value == .null ? nil : value
      }
    }
  }
}
