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

/// Why a property is refused.
public enum PropertyError: Error, Sendable, Hashable {
  /// The name is not `[a-z][a-z0-9_]*`.
  case name
  /// The name is used by other topics, or by Home Assistant entities of every device.
  case reservedName
  case instance(Int)
  case noAccess
  /// An event cannot have this key.
  case event(key: String)
  /// The key needs this access.
  case needs(access: String, key: String)
  /// `confirm` needs a state that can be read.
  case unconfirmable
  /// `settle` needs a value that is read back.
  case settle
  /// The range is not one of numbers that the codec can encode.
  case range(ClosedRange<Double>, codec: ClosedRange<Double>?)
  case maxLength(Int)
  case frame
  case chunk
  case poll
  case report
  case initial(CodecError)
  /// What is written before reading has to be known.
  case beforeReading
  /// Home Assistant cannot show the property as this.
  case homeAssistant(needs: String)
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

extension PropertyError: CustomStringConvertible {
  /// The wrong key in the property's JSON.
  public var key: String {
    switch self {
    case .name, .reservedName: "name"
    case .instance: "instance"
    case .noAccess: "access"
    case .event(let key), .needs(_, let key): key
    case .unconfirmable: "write"
    case .settle: "settle"
    case .range: "range"
    case .maxLength: "max_length"
    case .frame: "frame"
    case .chunk: "chunk"
    case .poll: "poll"
    case .report: "report"
    case .initial: "initial"
    case .beforeReading: "before_reading"
    case .homeAssistant: "home_assistant"
    }
  }

  /// A sentence for the author of a profile.
  public var description: String {
    switch self {
    case .name: "the name is not made of a-z, 0-9 and _, beginning with a letter"
    case .reservedName: "the name is reserved (\(Property.reservedNames.joined(separator: ", ")))"
    case .instance(let instance): "\(instance) is no instance: the first is 0"
    case .noAccess: "access is empty: read, notify or write"
    case .event(key: "access"): "an event is not read: leave \"read\" out of its access, or make it a state"
    case .event(let key): "an event has no \(key): it is over as soon as it has happened (a state has one)"
    case .needs(let access, let key): "\(key) needs \"\(access)\" in access"
    case .unconfirmable:
      "\"confirm\" reads the value back: it needs a state with \"read\" in access (else \"request\")"
    case .settle: "only what is read back (\"confirm\") can settle, in more than 0 s"
    case .range(let range, let codec?):
      "the range \(range.lowerBound)…\(range.upperBound) is more than the type holds, "
        + "\(codec.lowerBound)…\(codec.upperBound)"
    case .range: "only a number can have a range"
    case .maxLength(let length):
      length < 1 ? "\(length) is no length" : "only text, bytes and lists have a length"
    case .frame: "only an event of text or bytes comes in frames, with at least one character between them"
    case .chunk:
      "only what is not read back (\"request\", \"command\") can be written in pieces, of at least 1 byte"
    case .poll: "poll must be longer than 0"
    case .report: "min_interval and change must not be below 0"
    case .initial(let error): "not a valid initial value: \(error)"
    case .beforeReading: "what is written before reading has an initial value: give initial"
    case .homeAssistant(let needs): "needs \(needs)"
    }
  }
}
