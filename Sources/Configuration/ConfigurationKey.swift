import JSON

/// An object in the configuration, or in a request: its keys, and what they must be together.
package protocol ConfigurationSection: Sendable {
  /// All keys left out. One that must be given has any value: without it there is an error, and the section is not used.
  init()
  /// The keys in the order in which they are written.
  static var keys: [ConfigurationKey<Self>] { get }
  /// Unknown keys that users may expect, and what to do instead.
  static var elsewhere: [String: String] { get }
  /// The errors of valid keys together.
  func problems(at path: ConfigurationPath) -> [ConfigurationError]
  /// What `read` asks, by default for ``problems(at:)``. A section has this instead if its value does not tell what is given: a
  /// key that is left out has a default there.
  func problems(at path: ConfigurationPath, given: Set<String>) -> [ConfigurationError]
}

extension ConfigurationSection {
  package static var elsewhere: [String: String] { [:] }
  package func problems(at path: ConfigurationPath) -> [ConfigurationError] { [] }
  package func problems(at path: ConfigurationPath, given: Set<String>) -> [ConfigurationError] {
    problems(at: path)
  }
}

/// A key of a section: its name, its place in the section's value, and its rule. Reading, writing and the check of the
/// JSON schema use it.
package struct ConfigurationKey<Section>: Sendable {
  package let name: String
  /// What the value of the key may be.
  package let shape: ConfigurationShape
  /// Whether the key must be given; if it is missing, the hint says what is to be given.
  private(set) var isRequired = false
  private(set) var hint: String?
  /// For `host`: `hosts`. Both must not be given.
  private(set) var list: String?
  /// The value that the key has when it is left out, if that is not in the section's value.
  private(set) var defaultJSON: JSONValue?
  package let read:
    @Sendable (JSONValue, inout Section, ConfigurationPath, inout [ConfigurationError]) -> Void
  /// The key's value in a section as JSON; nil where the key is left out.
  package let write: @Sendable (Section) -> JSONValue?
}

extension ConfigurationKey {
  /// A key whose value is at `place`.
  package init<Value>(
    _ name: String, _ place: WritableKeyPath<Section, Value> & Sendable, _ rule: ConfigurationRule<Value>
  ) {
    self.init(
      name: name, shape: rule.shape,
      read: { json, section, path, errors in
        if let value = rule.read(json, section[keyPath: place], path, &errors) {
          section[keyPath: place] = value
        }
      },
      write: { rule.write($0[keyPath: place]) })
  }

  /// A key that must be given, whose value is then at `place`.
  package init<Value>(
    required name: String, _ place: WritableKeyPath<Section, Value> & Sendable,
    _ rule: ConfigurationRule<Value>, hint: String? = nil
  ) {
    self.init(name, place, rule)
    isRequired = true
    self.hint = hint
  }

  /// The key for one of what the other key lists.
  func one(of list: String) -> Self {
    var key = self
    key.list = list
    return key
  }

  /// A key of the section at `place`, whose other keys stand here as well.
  package init<Inner>(_ key: ConfigurationKey<Inner>, in place: WritableKeyPath<Section, Inner> & Sendable) {
    self.init(
      name: key.name, shape: key.shape,
      read: { json, section, path, errors in key.read(json, &section[keyPath: place], path, &errors) },
      write: { key.write($0[keyPath: place]) })
  }

  /// A key that is checked by the rule and ignored.
  package init<Value>(ignored name: String, _ rule: ConfigurationRule<Value>) {
    self.init(
      name: name, shape: rule.shape,
      read: { json, _, path, errors in _ = rule.read(json, nil, path, &errors) }, write: { _ in nil })
  }

  /// The key of an option of a device, whose value is then set in `place`.
  ///
  /// - Parameter allowsNull: `null` is a value as well. An object of names can have it in its members instead; one whose
  ///   members are set one by one, anywhere.
  package init(
    _ option: any DeviceOptionDeclaration, _ place: WritableKeyPath<Section, DeviceOptions> & Sendable,
    allowsNull: Bool = false
  ) {
    let isObject = if case .members = option.shape { !option.setsMembers } else { false }
    let isPatch = allowsNull && option.setsMembers
    self.init(
      name: option.name, shape: option.shape,
      read: { json, section, path, errors in
        let isReset = allowsNull && !isObject && json == .null
        if let value = isReset
          ? JSONValue.null : option.check(isPatch ? json.withoutNulls : json, at: path, &errors)
        {
          section[keyPath: place].values[option.name] = isPatch ? json : value
        }
      },
      write: { $0[keyPath: place][option] })
    defaultJSON = option.defaultJSON
  }
}

extension ConfigurationRule where Value: ConfigurationSection {
  /// An object with the section's keys and no others.
  package static var section: Self {
    // What a key that must be given has before is no default.
    let members = Value.keys.map { key in
      ConfigurationShape.Member(
        name: key.name, shape: key.shape, isRequired: key.isRequired,
        default: key.isRequired ? nil : key.defaultJSON ?? key.write(Value()))
    }
    return ConfigurationRule(shape: .object(members), read: Value.read, write: \.json)
  }
}

extension ConfigurationSection {
  /// Reads an object with the section's keys and no others; see ``ConfigurationRule/Read``.
  package static func read(
    _ json: JSONValue, _ current: Self?, _ path: ConfigurationPath, _ errors: inout [ConfigurationError]
  ) -> Self? {
    guard case .object(let object) = json else {
      errors.append(path.error("expected an object, found \(json.kind)"))
      return nil
    }
    let before = errors.count
    var section = current ?? Self()
    let keys = keys
    for member in object.members {
      if let key = keys.first(where: { $0.name == member.name }) {
        key.read(member.value, &section, path.key(member.name), &errors)
      } else {
        // A hint is expensive, and there may be thousands of unknown keys.
        let hint =
          errors.count < 20
          ? elsewhere[member.name]
            ?? suggestion(for: member.name, among: keys.map(\.name), listed: "known keys:") : nil
        errors.append(path.name(member.name).error("unknown key", hint: hint))
      }
    }
    for key in keys where key.isRequired && object[key.name] == nil {
      errors.append(path.key(key.name).error("this is missing", hint: key.hint))
    }
    guard errors.count == before else { return section }
    for key in keys {
      guard let list = key.list, object[key.name] != nil, object[list] != nil else { continue }
      errors.append(
        path.key(key.name).error("\(list) is given as well", hint: "list it there, and leave this out"))
    }
    errors += section.problems(at: path, given: Set(object.names))
    return section
  }

  /// The section as JSON: every key that has a value, defaults as well.
  package var json: JSONValue { .object(of: Self.keys.map { ($0.name, $0.write(self)) }) }
}

/// A hint for an unknown word: the most similar one, else all.
/// - Parameter introduction: the beginning of the list of all.
package func suggestion(
  for word: String, among words: [String], listed introduction: String = "there are"
) -> String {
  nearest(to: word, among: words).map { "did you mean \($0)?" }
    ?? "\(introduction) \(words.joined(separator: ", "))"
}

/// The one of `words` that is most similar to `text`; nil when none is.
package func nearest(to text: String, among words: [String]) -> String? {
  // The effort grows with the length.
  guard text.utf8.count <= 40 else { return nil }
  let distances = words.map { (word: $0, distance: editDistance(Array(text.utf8), Array($0.utf8))) }
  let near = distances.filter { $0.distance <= max(2, $0.word.utf8.count / 2) }
  return near.min { $0.distance < $1.distance }?.word
}

/// How many bytes must be inserted, deleted, replaced or swapped with their neighbour to make one of the other
/// (Damerau and Levenshtein, each byte touched once).
private func editDistance(_ a: [UInt8], _ b: [UInt8]) -> Int {
  var beforeLast: [Int] = []
  var last = Array(0...b.count)
  for i in a.indices {
    var row = [i + 1]
    for j in b.indices {
      var best = min(last[j] + (a[i] == b[j] ? 0 : 1), row[j] + 1, last[j + 1] + 1)
      if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] { best = min(best, beforeLast[j - 1] + 1) }
      row.append(best)
    }
    (beforeLast, last) = (last, row)
  }
  return last[b.count]
}
