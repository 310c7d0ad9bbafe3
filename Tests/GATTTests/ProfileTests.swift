import GATT
import JSON
import Testing

@Suite struct ProfileTests {
  /// A valid state with read, notify and write access, except for the arguments that are given.
  static func property(
    _ name: String = "level", characteristic: UInt32 = 1, instance: Int = 0, kind: Property.Kind = .state,
    access: Property.Access = [.read, .notify, .write], writeMode: Property.WriteMode? = nil,
    settle: Duration? = nil, codec: Codec = .uint8, range: ClosedRange<Double>? = nil, maxLength: Int? = nil,
    frame: String? = nil, chunk: Int? = nil, poll: Duration? = nil,
    report: Property.Report? = nil,
    initial: Value? = nil, isBeforeReading: Bool = false, homeAssistant: [HomeAssistantEntity] = []
  ) -> Property {
    Property(
      name: name, service: BluetoothUUID(short: 0x1111), characteristic: BluetoothUUID(short: characteristic),
      instance: instance, kind: kind, access: access, writeMode: writeMode, settle: settle, codec: codec,
      range: range, maxLength: maxLength, frame: frame, chunk: chunk, poll: poll,
      report: report,
      initial: initial, isBeforeReading: isBeforeReading,
      homeAssistant: homeAssistant)
  }

  static func profile(_ properties: [Property]) throws -> Profile {
    try Profile(name: "thing", properties: properties)
  }

  static func words() -> Codec? { try? Codec(.scalar(Codec.Scalar(.uint8, values: [0: "off", 1: "on"]))) }

  static let event = Property.Access.notify

  static let wrongName = ProfileError(
    ["name"], "the name is not made of a-z, 0-9 and _, 64 at most, beginning with a letter")
  static let noAccess = ProfileError(["access"], "access is empty: read, notify or write")
  static let unconfirmable = ProfileError(
    ["write"],
    "\"confirm\" reads the value back: it needs a state with \"read\" in access (else \"request\")")
  static let settle = ProfileError(
    ["settle"], "only what is read back (\"confirm\") can settle, in more than 0 s")
  static let report = ProfileError(["report"], "min_interval and change must not be below 0")
  static let frame = ProfileError(
    ["frame"], "only an event of text or bytes comes in frames, with at least one character between them")
  static let chunk = ProfileError(
    ["chunk"],
    "only what is not read back (\"request\", \"command\") can be written in pieces, of at least 1 byte")

  static func event(has key: JSONStep, _ name: String) -> ProfileError {
    ProfileError([key], "an event has no \(name): it is over as soon as it has happened (a state has one)")
  }
  static func range(_ range: String) -> ProfileError {
    ProfileError(["range"], "the range \(range) is more than the type holds, 0.0…255.0")
  }
  static func initial(_ error: CodecError) -> ProfileError {
    ProfileError(["initial"], "not a valid initial value: \(error)")
  }

  static let wrong: [(Property, ProfileError)] = [
    (property(""), wrongName), (property("Level"), wrongName), (property("1st"), wrongName),
    (property("a-b"), wrongName),
    (property("_a"), wrongName), (property("läuft"), wrongName), (property("a/b"), wrongName),
    // A topic of it would be too long, which has ended the gateway.
    (property(String(repeating: "a", count: 65)), wrongName),
    (property(instance: -1), ProfileError(["instance"], "-1 is no instance: the first is 0")),
    (property(access: []), noAccess),
    (property(access: Property.Access(rawValue: 1 << 7)), noAccess),
    (
      property(kind: .event, access: [.read, .notify]),
      ProfileError(["access"], "an event is not read: leave \"read\" out of its access, or make it a state")
    ),
    (property(kind: .event, access: event, poll: .seconds(1)), event(has: "poll", "poll")),
    (
      property(kind: .event, access: event, report: Property.Report(change: 1)),
      event(has: "report", "report")
    ),
    (property(kind: .event, access: event, initial: .integer(0)), event(has: "initial", "initial")),
    (property(kind: .event, access: .write, writeMode: .confirm), unconfirmable),
    (property(access: .write, writeMode: .confirm), unconfirmable),
    (property(writeMode: .request, settle: .seconds(1)), settle), (property(settle: .zero), settle),
    (property(access: .read, settle: .seconds(1)), settle),
    (property(access: .read, range: 0...1), .needs(access: "write", key: "range")),
    (property(range: 0...256), range("0.0…256.0")),
    (property(range: -1...1), range("-1.0…1.0")),
    (property(codec: .utf8, range: 0...1), ProfileError(["range"], "only a number can have a range")),
    (property(access: .read, codec: .utf8, maxLength: 1), .needs(access: "write", key: "max_length")),
    (property(maxLength: 1), ProfileError(["max_length"], "only text, bytes and lists have a length")),
    (property(codec: .utf8, maxLength: 0), ProfileError(["max_length"], "0 is no length")),
    (property(access: .notify, poll: .seconds(1)), .needs(access: "read", key: "poll")),
    (property(access: .read, poll: .zero), ProfileError(["poll"], "poll must be longer than 0")),
    (property(access: .write, report: Property.Report()), .needs(access: "notify", key: "report")),
    (property(report: Property.Report(minInterval: .milliseconds(-1))), report),
    (property(report: Property.Report(change: -1)), report),
    (property(report: Property.Report(change: .infinity)), report),
    (property(access: .read, initial: .integer(0)), .needs(access: "write", key: "initial")),
    (property(range: 1...9, initial: .integer(0)), initial(.range(value: 0, allowed: 1...9))),
    (property(access: .write, frame: "\n"), frame),
    (property(codec: .utf8, frame: "\n"), frame),
    (property(kind: .event, access: event, frame: "\n"), frame),
    (property(kind: .event, access: event, codec: .utf8, frame: ""), frame),
    (property(access: .read, chunk: 4), .needs(access: "write", key: "chunk")),
    (property(chunk: 4), chunk), (property(access: .write, chunk: 0), chunk),
    (property(initial: .integer(256)), initial(.range(value: 256, allowed: 0...255))),
    (
      property(isBeforeReading: true),
      ProfileError(["before_reading"], "what is written before reading has an initial value: give initial")
    ),
    (property(initial: .text("a")), initial(.kind(expected: "a number", found: "text"))),
  ]

  @Test(arguments: wrong)
  func refusesInvalidProperties(property: Property, expected: ProfileError) {
    let problem = error(of: ProfileError.self) { try Self.profile([property]) }
    #expect(problem == .property(property.name, expected))
    let place: [JSONStep] =
      expected.path == ["name"] ? [.name(property.name)] : [.key(property.name)] + expected.path
    #expect(problem?.path == ["properties"] + place && expected.path.count == 1)
    #expect(problem?.description == expected.description)
  }

  @Test(arguments: [
    "availability", "info", "readings", "set", "get", "result", "connectivity", "rssi", "firmware", "model",
    "reconnect",
  ])
  func refusesReservedNames(name: String) {
    let problem = error(of: ProfileError.self) { try Self.profile([Self.property(name)]) }
    #expect(
      problem
        == .property(
          name,
          ProfileError(["name"], "the name is reserved (\(Property.reservedNames.joined(separator: ", ")))")))
  }

  @Test(arguments: [
    property("a"), property("button_a"), property("pm2_5"), property(String(repeating: "a", count: 64)),
    property(access: .write), property(access: .write, writeMode: .command),
    property(kind: .event, access: .write), property(kind: .event, access: [.notify, .write]),
    property(access: [.read, .notify], poll: .seconds(3600)), property(access: .read, poll: .seconds(1)),
    property(range: 0...255), property(range: 0.5...1), property(codec: .bytes, maxLength: 20),
    property(initial: .integer(0)), property(initial: .integer(0), isBeforeReading: true),
    property(report: Property.Report()),
  ])
  func acceptsValidProperties(property: Property) throws {
    #expect(try Self.profile([property]).properties == [property])
  }

  @Test func writeModeDefaultsByKindAndAccess() {
    #expect(Self.property().writeMode == .confirm)
    #expect(Self.property(access: .write).writeMode == .request)
    #expect(Self.property(kind: .event, access: [.notify, .write]).writeMode == .request)
    #expect(Self.property(writeMode: .command).writeMode == .command)
  }

  @Test func propertiesNeedOwnNamesAndCharacteristics() throws {
    #expect(throws: ProfileError(["properties", .name("level")], "two properties are named level")) {
      try Self.profile([Self.property(), Self.property(characteristic: 2)])
    }
    let same = ProfileError(
      ["properties", "other", "characteristic"],
      "level and other are the same characteristic: make one property of them, with several entities")
    #expect(throws: same) {
      try Self.profile([Self.property(), Self.property("other")])
    }
    #expect(throws: same) {
      try Self.profile([Self.property(access: .read), Self.property("other", access: .notify)])
    }
    // Another instance of that UUID, or another UUID; then requests on the characteristic of their answers.
    for other in [Self.property("other", instance: 1), Self.property("other", characteristic: 2)] {
      #expect(throws: Never.self) { try Self.profile([Self.property(), other]) }
    }
    #expect(throws: Never.self) {
      try Self.profile([
        Self.property("answer", access: .notify), Self.property("request", kind: .event, access: .write),
      ])
    }
    #expect(throws: ProfileError(["properties"], "there is no property")) { try Self.profile([]) }
  }

  @Test func automaticPropertiesAreAllUnlessSomeAreMarked() throws {
    let properties = [Self.property("a"), Self.property("b", characteristic: 2)]
    #expect(try Self.profile(properties).automaticProperties == ["a", "b"])
    let marked = Property(
      name: "c", service: properties[0].service, characteristic: BluetoothUUID(short: 3), access: .read,
      codec: .uint8, isAutomatic: true)
    #expect(try Self.profile(properties + [marked]).automaticProperties == ["c"])
  }

  @Test func thePeripheralDecidesWhichMarkedPropertiesThereAre() throws {
    let services = (1...3).map { BluetoothUUID(short: UInt32($0)) }
    func property(_ name: String, _ service: Int, isAutomatic: Bool) -> Property {
      Property(
        name: name, service: services[service], characteristic: BluetoothUUID(short: 9), access: .notify,
        codec: .uint8, isAutomatic: isAutomatic)
    }
    let profile = try Profile(
      name: "thing", requires: services, alive: "a",
      properties: [property("a", 0, isAutomatic: true), property("b", 1, isAutomatic: false)])
    let automatic = profile.limited(to: ["a", "b"], isAutomatic: true)
    #expect(automatic.isAutomatic && automatic.requires == [services[1], services[2]])
    #expect(automatic.alive == profile.alive)
    let listed = profile.limited(to: ["a", "b"])
    #expect(!listed.isAutomatic && listed.requires == services)
    let unmarked = try Self.profile([Self.property("a")]).limited(to: ["a"], isAutomatic: true)
    #expect(!unmarked.isAutomatic)
  }

  @Test func aliveRefersToSuitableProperties() throws {
    let properties = [
      Self.property("period", access: [.read, .write], codec: .uint16),
      Self.property("level", characteristic: 2, access: .notify),
      Self.property("text", characteristic: 3, access: .read, codec: .utf8),
      Self.property("polled", characteristic: 4, access: .read, poll: .seconds(1)),
    ]
    func alive(_ property: String?, _ period: String?) throws -> Profile.Alive? {
      try Profile(name: "thing", alive: property, alivePeriod: period, properties: properties).alive
    }
    #expect(try alive(nil, nil) == nil)
    #expect(try alive("level", nil)?.property == 1)
    #expect(try alive("polled", "period")?.property == 3)
    #expect(try alive("level", "period")?.period == 0)
    #expect(throws: ProfileError.unknownProperty(["alive", "property"], "x")) { try alive("x", nil) }
    #expect(throws: ProfileError.unknownProperty(["alive", "period"], "x")) { try alive("level", "x") }
    #expect(throws: ProfileError.unknownProperty(["alive", "period"], "period")) { try alive(nil, "period") }
    let silent = ProfileError(
      ["alive", "property"],
      "text does not come by itself: its access needs \"notify\", or it \"poll\"")
    #expect(throws: silent) { try alive("text", nil) }
    func period(_ name: String) -> ProfileError {
      ProfileError(["alive", "period"], "\(name) must be a state that can be read, and a number (of ms)")
    }
    #expect(throws: period("text")) { try alive("level", "text") }
    #expect(throws: period("level")) { try alive("level", "level") }
  }

  @Test func limitedKeepsWhatTheRemainingPropertiesNeed() throws {
    let other = BluetoothUUID(short: 0x2222)
    let identity = BluetoothUUID(short: 0xFFE0)
    let first = Self.property("period", access: [.read, .write])
    let second = Self.property("level", characteristic: 2, access: .notify)
    let third = Property(
      name: "key", service: other, characteristic: BluetoothUUID(short: 3), access: .notify, codec: .uint8)
    let hint = Profile.MissingHint(problem: "in pairing mode", remedy: "press reset")
    let profile = try Profile(
      name: "thing", requires: [first.service, other, identity], missingHint: hint, alive: "level",
      alivePeriod: "period", properties: [first, second, third])
    let limited = profile.limited(to: ["key", "level", "nothing"])
    #expect(limited.properties == [second, third])
    #expect(limited.alive?.property == 0 && limited.alive?.period == nil)
    // Of a uint8, in ms.
    #expect(limited.alive?.longestInterval == .milliseconds(255) && profile.alive?.longestInterval == nil)
    let huge = try Self.property(
      "period", access: [.read, .write], codec: Codec(.scalar(Codec.Scalar(.float64))))
    let daily = try Profile(name: "thing", alive: "level", alivePeriod: "period", properties: [huge, second])
    #expect(daily.limited(to: ["level"]).alive?.longestInterval == .seconds(86400))
    #expect(limited.requires == profile.requires)
    #expect(limited.missingHint == hint)
    let key = profile.limited(to: ["key"])
    #expect(key.requires == [other, identity])
    #expect(key.alive == nil)
    #expect(profile.limited(to: ["period"]).alive == nil)
    #expect(profile.limited(to: ["key", "level", "period"]).alive?.period == 0)
    #expect(limited.limited(to: ["level", "key"]) == limited)
    #expect(profile.limited(to: []).properties.isEmpty)
  }

  @Test func findsPropertiesByName() throws {
    let profile = try Self.profile([Self.property("a"), Self.property("b", characteristic: 2)])
    #expect(profile.index(ofPropertyNamed: "b") == 1)
    #expect(profile.property(named: "a/b".dropFirst(2))?.name == "b")
    #expect(profile.index(ofPropertyNamed: "c") == nil && profile.property(named: "") == nil)
  }

  @Test func commandValueIsCheckedAgainstPropertyLimits() throws {
    let number = Self.property(range: 20...200)
    #expect(try number.encode(.integer(20)).bytes == [20])
    #expect(throws: CodecError.range(value: 19, allowed: 20...200)) { try number.encode(.integer(19)) }
    #expect(throws: CodecError.range(value: 200.5, allowed: 20...200)) { try number.encode(.number(200.5)) }
    let text = Self.property(codec: .utf8, maxLength: 3)
    #expect(try text.encode(.text("°C")).bytes == [0xC2, 0xB0, 0x43])
    #expect(throws: CodecError.tooLong(count: 4, most: 3)) { try text.encode(.text("abcd")) }
    #expect(try Self.property().encode(.integer(255)).bytes == [255])
    // The line feed is not the sender's, unless it has sent one.
    let line = try #require(Profile.microbit.property(named: "uart_tx"))
    let longest = String(repeating: "x", count: 511)
    #expect(try line.encode(.text(longest)).bytes.count == 512)
    #expect(throws: CodecError.tooLong(count: 512, most: 511)) { try line.encode(.text(longest + "x")) }
    #expect(throws: CodecError.tooLong(count: 513, most: 511)) { try line.encode(.text(longest + "xx")) }
    #expect(throws: CodecError.tooLong(count: 513, most: 512)) { try line.encode(.text(longest + "x\n")) }
  }
}
