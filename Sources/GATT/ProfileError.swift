/// Why a profile is refused.
public struct ProfileError: Error, Sendable, Hashable, CustomStringConvertible {
  /// A step on the way to what is wrong, in the profile's JSON.
  public enum Step: Sendable, Hashable, ExpressibleByStringLiteral {
    /// The value of a key.
    case key(String)
    /// A key itself.
    case name(String)
    /// An element of a list.
    case index(Int)

    /// The value of a key.
    public init(stringLiteral key: String) { self = .key(key) }
  }

  /// The way to what is wrong: from the profile, or from the property, field or codec that has thrown the error.
  public let path: [Step]
  /// A sentence for the author of the profile.
  public let description: String
  /// The name of a property that there is not.
  public let unknownProperty: String?

  init(_ path: [Step], _ description: String, unknownProperty: String? = nil) {
    (self.path, self.description, self.unknownProperty) = (path, description, unknownProperty)
  }

  /// The error of a part, as one of the whole, in which the part is at `place`.
  func inside(_ place: [Step]) -> ProfileError {
    ProfileError(place + path, description, unknownProperty: unknownProperty)
  }
}

// MARK: Profiles

extension ProfileError {
  /// An error in the property of this name.
  package static func property(_ name: String, _ error: ProfileError) -> Self {
    error.path == ["name"]
      ? Self(["properties", .name(name)], error.description) : error.inside(["properties", .key(name)])
  }
  package static let noProperties = Self(["properties"], "there is no property")
  package static func duplicateProperty(_ name: String) -> Self {
    Self(["properties", .name(name)], "two properties are named \(name)")
  }
  /// Both properties read or notify the same characteristic, or both write it.
  package static func sameCharacteristic(_ first: String, _ second: String) -> Self {
    Self(
      ["properties", .key(second), "characteristic"],
      "\(first) and \(second) are the same characteristic: make one property of them, with several entities")
  }
  /// One of the two properties comes in advertisements, the other one needs a link.
  package static func mixedSources(_ first: String, _ second: String) -> Self {
    Self(
      ["properties", .key(second)],
      "either all properties have a source, or none: \(first) and \(second) differ")
  }
  /// The profile has links; only a peripheral that is only heard is offline after a time.
  package static let offlineAfter = Self(
    ["offline_after"], "only with a source: a link has an end of its own")
  /// Two Home Assistant entities have this key, the second one of the property `of`: see
  /// ``Property/homeAssistantParts``.
  package static func sameEntity(_ key: String, of property: String) -> Self {
    Self(
      ["properties", .key(property), "home_assistant"],
      "two entities of Home Assistant would be named \(key)")
  }
  package static func unknownProperty(_ path: [Step], _ name: String) -> Self {
    Self(path, "there is no property \(name)", unknownProperty: name)
  }
  package static func aliveIsSilent(_ name: String) -> Self {
    Self(
      ["alive", "property"], "\(name) does not come by itself: its access needs \"notify\", or it \"poll\"")
  }
  package static func alivePeriodIsNone(_ name: String) -> Self {
    Self(["alive", "period"], "\(name) must be a state that can be read, and a number (of ms)")
  }
  package static func valuesAreNoLines(_ path: [Step], _ name: String) -> Self {
    Self(
      path, "\(name) must be an event, a text with a frame, that is notified (property) or written (set)")
  }
}

// MARK: Properties

extension ProfileError {
  package static let name = Self(
    ["name"],
    "the name is not made of a-z, 0-9 and _, \(Property.longestName) at most, beginning with a letter"
  )
  /// The name is used by other topics, or by Home Assistant entities of every device.
  package static let reservedName = Self(
    ["name"], "the name is reserved (\(Property.reservedNames.joined(separator: ", ")))")
  package static func instance(_ instance: Int) -> Self {
    Self(["instance"], "\(instance) is no instance: the first is 0")
  }
  package static let noAccess = Self(["access"], "access is empty: read, notify or write")
  package static func event(key: String) -> Self {
    Self(
      [.key(key)],
      key == "access"
        ? "an event is not read: leave \"read\" out of its access, or make it a state"
        : "an event has no \(key): it is over as soon as it has happened (a state has one)")
  }
  package static func needs(access: String, key: String) -> Self {
    Self([.key(key)], "\(key) needs \"\(access)\" in access")
  }
  package static let unconfirmable = Self(
    ["write"],
    "\"confirm\" reads the value back: it needs a state with \"read\" in access (else \"request\")")
  package static let settle = Self(
    ["settle"], "only what is read back (\"confirm\") can settle, in more than 0 s")
  package static func range(_ range: ClosedRange<Double>, codec: ClosedRange<Double>?) -> Self {
    guard let codec else { return Self(["range"], "only a number can have a range") }
    return Self(
      ["range"],
      "the range \(range.lowerBound)…\(range.upperBound) is more than the type holds, "
        + "\(codec.lowerBound)…\(codec.upperBound)")
  }
  package static func maxLength(_ length: Int) -> Self {
    Self(
      ["max_length"], length < 1 ? "\(length) is no length" : "only text, bytes and lists have a length")
  }
  package static let frame = Self(
    ["frame"], "only an event of text or bytes comes in frames, with at least one character between them")
  package static let chunk = Self(
    ["chunk"],
    "only what is not read back (\"request\", \"command\") can be written in pieces, of at least 1 byte")
  package static let poll = Self(["poll"], "poll must be longer than 0")
  package static let report = Self(["report"], "min_interval and change must not be below 0")
  package static func initial(_ error: CodecError) -> Self {
    Self(["initial"], "not a valid initial value: \(error)")
  }
  package static let beforeReading = Self(
    ["before_reading"], "what is written before reading has an initial value: give initial")
  package static func homeAssistant(needs: String) -> Self { Self(["home_assistant"], "needs \(needs)") }
}
