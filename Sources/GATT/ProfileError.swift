/// Why a profile is refused.
public enum ProfileError: Error, Sendable, Hashable {
  /// An error in the property of this name.
  case property(String, PropertyError)
  /// The profile has no properties.
  case noProperties
  /// Two properties have this name.
  case duplicateProperty(String)
  /// Both properties read or notify the same characteristic, or both write it.
  case sameCharacteristic(String, String)
  /// One of the two properties comes in advertisements, the other one needs a link.
  case mixedSources(String, String)
  /// The profile has links; only a peripheral that is only heard is offline after a time.
  case offlineAfter
  /// Two Home Assistant entities have this key, the second one of the property `of`: see
  /// ``Property/homeAssistantParts``.
  case sameEntity(String, of: String)
  /// There is no such property.
  case unknownProperty(key: String, name: String)
  /// The property that keeps a link alive must notify or be polled.
  case aliveIsSilent(String)
  /// The property that holds the period must be a readable state, and a number.
  case alivePeriodIsNone(String)
  /// The properties for lines `name:value` must receive and send texts with a frame.
  case valuesAreNoLines(String)
}

extension ProfileError: CustomStringConvertible {
  /// The wrong key in the profile's JSON; for an error in a property, the property's key.
  public var key: String {
    switch self {
    case .property(_, let error): error.key
    case .noProperties, .duplicateProperty: "properties"
    case .sameCharacteristic: "characteristic"
    case .mixedSources: "source"
    case .offlineAfter: "offline_after"
    case .sameEntity: "home_assistant"
    case .unknownProperty(let key, _): key
    case .aliveIsSilent, .alivePeriodIsNone: "alive"
    case .valuesAreNoLines: "values"
    }
  }

  /// A sentence for the author of a profile.
  public var description: String {
    switch self {
    case .property(let name, let error): "property \(name): \(error)"
    case .noProperties: "there is no property"
    case .duplicateProperty(let name): "two properties are named \(name)"
    case .sameCharacteristic(let first, let second): "\(first) and \(second) are the same characteristic"
    case .mixedSources(let first, let second):
      "either all properties have a source, or none: \(first) and \(second) differ"
    case .offlineAfter: "only with a source: a link has an end of its own"
    case .sameEntity(let key, _): "two entities of Home Assistant would be named \(key)"
    case .unknownProperty(_, let name): "there is no property \(name)"
    case .aliveIsSilent(let name):
      "\(name) does not come by itself: its access needs \"notify\", or it \"poll\""
    case .valuesAreNoLines(let name):
      "\(name) must be an event, a text with a frame, that is notified (property) or written (set)"
    case .alivePeriodIsNone(let name): "\(name) must be a state that can be read, and a number (of ms)"
    }
  }
}

/// Why a property is refused.
public struct PropertyError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The wrong key in the property's JSON.
  public let key: String
  /// A sentence for the author of a profile.
  public let description: String

  init(_ key: String, _ description: String) { (self.key, self.description) = (key, description) }
}

extension PropertyError {
  package static let name = Self(
    "name", "the name is not made of a-z, 0-9 and _, \(Property.longestName) at most, beginning with a letter"
  )
  /// The name is used by other topics, or by Home Assistant entities of every device.
  package static let reservedName = Self(
    "name", "the name is reserved (\(Property.reservedNames.joined(separator: ", ")))")
  package static func instance(_ instance: Int) -> Self {
    Self("instance", "\(instance) is no instance: the first is 0")
  }
  package static let noAccess = Self("access", "access is empty: read, notify or write")
  /// An event cannot have this key.
  package static func event(key: String) -> Self {
    Self(
      key,
      key == "access"
        ? "an event is not read: leave \"read\" out of its access, or make it a state"
        : "an event has no \(key): it is over as soon as it has happened (a state has one)")
  }
  /// The key needs this access.
  package static func needs(access: String, key: String) -> Self {
    Self(key, "\(key) needs \"\(access)\" in access")
  }
  package static let unconfirmable = Self(
    "write",
    "\"confirm\" reads the value back: it needs a state with \"read\" in access (else \"request\")")
  package static let settle = Self(
    "settle", "only what is read back (\"confirm\") can settle, in more than 0 s")
  /// The range is not one of numbers that the codec can encode.
  package static func range(_ range: ClosedRange<Double>, codec: ClosedRange<Double>?) -> Self {
    guard let codec else { return Self("range", "only a number can have a range") }
    return Self(
      "range",
      "the range \(range.lowerBound)…\(range.upperBound) is more than the type holds, "
        + "\(codec.lowerBound)…\(codec.upperBound)")
  }
  package static func maxLength(_ length: Int) -> Self {
    Self(
      "max_length", length < 1 ? "\(length) is no length" : "only text, bytes and lists have a length")
  }
  package static let frame = Self(
    "frame", "only an event of text or bytes comes in frames, with at least one character between them")
  package static let chunk = Self(
    "chunk",
    "only what is not read back (\"request\", \"command\") can be written in pieces, of at least 1 byte")
  package static let poll = Self("poll", "poll must be longer than 0")
  package static let report = Self("report", "min_interval and change must not be below 0")
  package static func initial(_ error: CodecError) -> Self {
    Self("initial", "not a valid initial value: \(error)")
  }
  package static let beforeReading = Self(
    "before_reading", "what is written before reading has an initial value: give initial")
  /// Home Assistant cannot show the property as this.
  package static func homeAssistant(needs: String) -> Self { Self("home_assistant", "needs \(needs)") }
}
