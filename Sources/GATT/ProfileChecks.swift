import JSON

extension Property {
  /// The maximum length of a name.
  package static let longestName = 64
  /// Names that other topics, or Home Assistant entities of every device, use.
  public static let reservedNames = [
    "availability", "info", "readings", "set", "get", "result", "image", "connectivity", "rssi", "firmware",
    "model", "reconnect", "enabled", "identify", "auto", "values", "log",
  ]

  func check() throws(ProfileError) {
    try require(
      isPropertyName(name), ["name"],
      "the name is not made of a-z, 0-9 and _, \(Self.longestName) at most, beginning with a letter")
    try require(
      !Self.reservedNames.contains(name), ["name"],
      "the name is reserved (\(Self.reservedNames.joined(separator: ", ")))")
    try require(instance >= 0, ["instance"], "\(instance) is no instance: the first is 0")
    try require(
      !access.isDisjoint(with: [.read, .notify, .write]), ["access"],
      "access is empty: read, notify or write")
    if kind == .event { try checkEvent() }
    try require(
      !isWritable || writeMode != .confirm || kind == .state && isReadable, ["write"],
      "\"confirm\" reads the value back: it needs a state with \"read\" in access (else \"request\")")
    if let settle {
      try require(
        isWritable && writeMode == .confirm && settle > .zero, ["settle"],
        "only what is read back (\"confirm\") can settle, in more than 0 s")
    }
    try checkCommands()
    if let poll {
      guard isReadable else { throw .needs(access: "read", key: "poll") }
      try require(poll > .zero, ["poll"], "poll must be longer than 0")
    }
    if let report {
      guard isReadable || isNotifying else { throw .needs(access: "notify", key: "report") }
      try require(
        report.minInterval >= .zero && report.change >= 0 && report.change.isFinite, ["report"],
        "min_interval and change must not be below 0")
    }
    if let initial {
      guard isWritable else { throw .needs(access: "write", key: "initial") }
      do throws(CodecError) { _ = try encode(initial) } catch {
        throw ProfileError(["initial"], "not a valid initial value: \(error)")
      }
    }
    try require(
      !isBeforeReading || initial != nil, ["before_reading"],
      "what is written before reading has an initial value: give initial")
    try checkPieces()
    for entity in homeAssistant { try entity.check(for: self) }
  }

  private func checkPieces() throws(ProfileError) {
    if let frame {
      try require(
        kind == .event && (codec.isText || codec.isBytes) && !frame.isEmpty, ["frame"],
        "only an event of text or bytes comes in frames, with at least one character between them")
    }
    if let chunk {
      guard isWritable else { throw .needs(access: "write", key: "chunk") }
      try require(
        writeMode != .confirm && chunk > 0, ["chunk"],
        "only what is not read back (\"request\", \"command\") can be written in pieces, of at least 1 byte")
    }
  }

  /// Checks the keys that an event cannot have, as it is never read and has no lasting value.
  private func checkEvent() throws(ProfileError) {
    try require(
      !isReadable, ["access"],
      "an event is not read: leave \"read\" out of its access, or make it a state")
    for (key, isGiven) in [("poll", poll != nil), ("report", report != nil), ("initial", initial != nil)] {
      try require(
        !isGiven, [.key(key)],
        "an event has no \(key): it is over as soon as it has happened (a state has one)")
    }
  }

  private func checkCommands() throws(ProfileError) {
    if isWritable, let place = codec.ownBits {
      throw ProfileError(
        place,
        "a write would clear the other bits: leave \"write\" out of access, "
          + "or describe them all, each \"of\" a hidden field")
    }
    if let range {
      guard isWritable else { throw .needs(access: "write", key: "range") }
      guard let limits = codec.range else { throw ProfileError(["range"], "only a number can have a range") }
      try require(
        limits.contains(range.lowerBound) && limits.contains(range.upperBound), ["range"],
        "the range \(range.lowerBound)…\(range.upperBound) is more than the type holds, "
          + "\(limits.lowerBound)…\(limits.upperBound)")
    }
    if let maxLength {
      guard isWritable else { throw .needs(access: "write", key: "max_length") }
      try require(maxLength > 0, ["max_length"], "\(maxLength) is no length")
      try require(
        codec.isText || codec.isBytes || codec.isList, ["max_length"],
        "only text, bytes and lists have a length")
    }
  }
}

extension Profile {
  static func check(_ properties: [Property]) throws(ProfileError) {
    try require(!properties.isEmpty, ["properties"], "there is no property")
    if let other = properties.first(where: { ($0.source == nil) != (properties[0].source == nil) }) {
      throw ProfileError(
        ["properties", .key(other.name)],
        "either all properties have a source, or none: \(properties[0].name) and \(other.name) differ")
    }
    var entities: Set<String> = []
    for (index, property) in properties.enumerated() {
      do throws(ProfileError) { try property.check() } catch { throw .property(property.name, error) }
      for other in properties[..<index] {
        try require(
          other.name != property.name, ["properties", .name(other.name)],
          "two properties are named \(other.name)")
        try require(
          !other.isSameDirection(property), ["properties", .key(property.name), "characteristic"],
          "\(other.name) and \(property.name) are the same characteristic: make one property of them, with several "
            + "entities")
      }
      for part in property.homeAssistantParts {
        var keys = [part.key]
        if case .event = part.entity.kind { keys += property.codec.words.keys.map(part.triggerKey) }
        for key in keys {
          try require(
            !Property.reservedNames.contains(key) && entities.insert(key).inserted,
            ["properties", .key(property.name), "home_assistant"],
            "two entities of Home Assistant would be named \(key)")
        }
      }
    }
  }

  /// The index of the property that the key at `path` names.
  private func index(of name: String, at path: [JSONStep]) throws(ProfileError) -> Int {
    guard let index = index(ofPropertyNamed: name) else { throw .unknownProperty(path, name) }
    return index
  }

  func checkedValues(_ received: String?, set sent: String?) throws(ProfileError) -> Values? {
    func find(
      _ name: String, _ key: JSONStep, _ isSuitable: (Property) -> Bool
    ) throws(ProfileError) -> Int {
      let index = try self.index(of: name, at: ["values", key])
      let property = properties[index]
      let isLine = property.frame != nil || property.source?.data == .radio
      try require(
        property.kind == .event && property.codec.isText && isLine && isSuitable(property), ["values", key],
        "\(name) must be an event, a text with a frame, that is notified (property) or written (set)")
      return index
    }
    guard let received else {
      if let sent { throw .unknownProperty(["values", "set"], sent) }
      return nil
    }
    let index = try find(received, "property", \.isNotifying)
    guard let sent else { return Values(received: index, sent: nil) }
    return Values(received: index, sent: try find(sent, "set", \.isWritable))
  }

  func checkedAlive(_ name: String?, period: String?) throws(ProfileError) -> Alive? {
    guard let name else {
      if let period { throw .unknownProperty(["alive", "period"], period) }
      return nil
    }
    let index = try index(of: name, at: ["alive", "property"])
    try require(
      properties[index].isNotifying || properties[index].poll != nil, ["alive", "property"],
      "\(name) does not come by itself: its access needs \"notify\", or it \"poll\"")
    guard let period else { return Alive(property: index, period: nil) }
    let periodIndex = try self.index(of: period, at: ["alive", "period"])
    let property = properties[periodIndex]
    try require(
      property.kind == .state && property.isReadable && property.codec.range != nil, ["alive", "period"],
      "\(period) must be a state that can be read, and a number (of ms)")
    return Alive(property: index, period: periodIndex)
  }
}

extension Property {
  /// Whether both read or notify the same characteristic, or both write it. A property that reads and one that writes
  /// may share a characteristic: requests and their answers often do.
  fileprivate func isSameDirection(_ other: Property) -> Bool {
    source == nil && other.source == nil && service == other.service && characteristic == other.characteristic
      && instance == other.instance
      && (isWritable && other.isWritable || takesValues && other.takesValues)
  }

  private var takesValues: Bool { isReadable || isNotifying }
}

extension HomeAssistantEntity {
  /// Checks what Home Assistant requires of a property with this kind of entity.
  fileprivate func check(for property: Property) throws(ProfileError) {
    if let key, !isPropertyName(key) {
      throw .homeAssistant(needs: "a key made of a-z, 0-9 and _, beginning with a letter")
    }
    func need(_ condition: Bool, _ need: String) throws(ProfileError) {
      if !condition { throw .homeAssistant(needs: need) }
    }
    let isState = property.kind == .state
    let isShown = isState && (property.isReadable || property.isNotifying)
    let codec = property.codec
    let parts = parts(of: property)
    let contents = parts.map(\.content)
    switch kind {
    case .sensor:
      try need(isShown, "a state that can be read or notifies")
      try need(!parts.isEmpty && !contents.contains(.several), "a value or field that is no list")
    case .binarySensor:
      try need(
        isShown && contents == [.bool],
        "a state that can be read or notifies, of the type bool, or such a \"field\"")
    case .number:
      try need(
        isState && property.isWritable && codec.range != nil,
        "a state that can be written, and that is a number")
    case .select(let choices):
      try need(property.isWritable, "a property that can be written")
      try need(!choices.isEmpty || !codec.words.isEmpty, "\"options\", or the words of an enumeration")
      for choice in choices { try check(choice.value, of: property, "options") }
    case .switch(let on, let off):
      try need(property.isWritable, "a property that can be written")
      try check(on, of: property, "on")
      try check(off, of: property, "off")
    case .event:
      try need(
        property.kind == .event && property.isNotifying && !codec.words.isEmpty,
        "an event that notifies, with the words of its types (\"values\")")
    case .text:
      try need(
        property.isWritable && (codec.isText || codec.isPicture), "a text (utf8, bits) that can be written")
    case .notify: try need(property.isWritable && codec.isText, "a text (utf8) that can be written")
    case .image: try need(isShown && codec.isPicture, "a picture (bits) that can be read or notifies")
    }
    switch kind {
    case .number, .select, .switch, .text, .notify: break
    case .sensor, .binarySensor, .event, .image:
      try need(category != .config, "another category: config is for what is set")
    }
  }

  private func check(_ value: Value, of property: Property, _ key: String) throws(ProfileError) {
    do throws(CodecError) {
      _ = try property.encode(value)
    } catch {
      throw .homeAssistant(needs: "values that can be written in \"\(key)\" (\(error))")
    }
  }
}

extension Codec {
  /// Whether the values of the codec are texts.
  public var isText: Bool { isScalar(.utf8) }
  /// Whether the values of the codec are pictures, one bit for each dot.
  public var isPicture: Bool { isScalar(.bits) }
  /// Whether the values of the codec are numbers as text.
  public var isDecimal: Bool { isScalar(.decimal) }
  fileprivate var isBytes: Bool { isScalar(.bytes) }
  fileprivate var isList: Bool { if case .list = description { true } else { false } }

  /// Where some bits are all that is known of a value's own bytes.
  fileprivate var ownBits: [JSONStep]? {
    func key(_ scalar: Scalar) -> JSONStep { scalar.type == .bool ? "bit" : "bits" }
    switch description {
    case .scalar(let scalar), .list(of: .scalar(let scalar)): return scalar.bits == nil ? nil : [key(scalar)]
    case .record(let fields), .list(of: .record(let fields)):
      return fields.firstIndex { $0.scalar.bits != nil && $0.container == nil }
        .map { ["fields", .index($0), key(fields[$0].scalar)] }
    case .flags, .list, .advertised: return nil
    }
  }

  private func isScalar(_ type: ScalarType) -> Bool {
    if case .scalar(let scalar) = description { scalar.type == type } else { false }
  }
}

/// Whether a word can be the name of a property or field: `[a-z][a-z0-9_]{0,63}`. Topics and ids are made of it.
package func isPropertyName(_ text: String) -> Bool {
  guard let first = text.utf8.first, (0x61...0x7A).contains(first),
    text.utf8.count <= Property.longestName
  else { return false }
  return text.utf8.allSatisfy { byte in
    (0x61...0x7A).contains(byte) || (0x30...0x39).contains(byte) || byte == UInt8(ascii: "_")
  }
}
