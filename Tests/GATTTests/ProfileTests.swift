import GATT
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

  static let wrong: [(Property, ProfileError)] = [
    (property(""), .name), (property("Level"), .name), (property("1st"), .name), (property("a-b"), .name),
    (property("_a"), .name), (property("läuft"), .name), (property("a/b"), .name),
    // A topic of it would be too long, which has ended the gateway.
    (property(String(repeating: "a", count: 65)), .name),
    (property(instance: -1), .instance(-1)),
    (property(access: []), .noAccess),
    (property(access: Property.Access(rawValue: 1 << 7)), .noAccess),
    (property(kind: .event, access: [.read, .notify]), .event(key: "access")),
    (property(kind: .event, access: event, poll: .seconds(1)), .event(key: "poll")),
    (property(kind: .event, access: event, report: Property.Report(change: 1)), .event(key: "report")),
    (property(kind: .event, access: event, initial: .integer(0)), .event(key: "initial")),
    (property(kind: .event, access: .write, writeMode: .confirm), .unconfirmable),
    (property(access: .write, writeMode: .confirm), .unconfirmable),
    (property(writeMode: .request, settle: .seconds(1)), .settle), (property(settle: .zero), .settle),
    (property(access: .read, settle: .seconds(1)), .settle),
    (property(access: .read, range: 0...1), .needs(access: "write", key: "range")),
    (property(range: 0...256), .range(0...256, codec: 0...255)),
    (property(range: -1...1), .range(-1...1, codec: 0...255)),
    (property(codec: .utf8, range: 0...1), .range(0...1, codec: nil)),
    (property(access: .read, codec: .utf8, maxLength: 1), .needs(access: "write", key: "max_length")),
    (property(maxLength: 1), .maxLength(1)),
    (property(codec: .utf8, maxLength: 0), .maxLength(0)),
    (property(access: .notify, poll: .seconds(1)), .needs(access: "read", key: "poll")),
    (property(access: .read, poll: .zero), .poll),
    (property(access: .write, report: Property.Report()), .needs(access: "notify", key: "report")),
    (property(report: Property.Report(minInterval: .milliseconds(-1))), .report),
    (property(report: Property.Report(change: -1)), .report),
    (property(report: Property.Report(change: .infinity)), .report),
    (property(access: .read, initial: .integer(0)), .needs(access: "write", key: "initial")),
    (property(range: 1...9, initial: .integer(0)), .initial(.range(value: 0, allowed: 1...9))),
    (property(access: .write, frame: "\n"), .frame),
    (property(codec: .utf8, frame: "\n"), .frame),
    (property(kind: .event, access: event, frame: "\n"), .frame),
    (property(kind: .event, access: event, codec: .utf8, frame: ""), .frame),
    (property(access: .read, chunk: 4), .needs(access: "write", key: "chunk")),
    (property(chunk: 4), .chunk), (property(access: .write, chunk: 0), .chunk),
    (property(initial: .integer(256)), .initial(.range(value: 256, allowed: 0...255))),
    (property(isBeforeReading: true), .beforeReading),
    (property(initial: .text("a")), .initial(.kind(expected: "a number", found: "text"))),
  ]

  @Test(arguments: wrong)
  func refusesInvalidProperties(property: Property, expected: ProfileError) {
    let problem = error(of: ProfileError.self) { try Self.profile([property]) }
    #expect(problem == .property(property.name, expected))
    let place: [ProfileError.Step] =
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
    #expect(problem == .property(name, .reservedName))
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
    #expect(throws: ProfileError.duplicateProperty("level")) {
      try Self.profile([Self.property(), Self.property(characteristic: 2)])
    }
    #expect(throws: ProfileError.sameCharacteristic("level", "other")) {
      try Self.profile([Self.property(), Self.property("other")])
    }
    #expect(throws: ProfileError.sameCharacteristic("level", "other")) {
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
    #expect(throws: ProfileError.noProperties) { try Self.profile([]) }
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
    #expect(throws: ProfileError.aliveIsSilent("text")) { try alive("text", nil) }
    #expect(throws: ProfileError.alivePeriodIsNone("text")) { try alive("level", "text") }
    #expect(throws: ProfileError.alivePeriodIsNone("level")) { try alive("level", "level") }
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

@Suite struct HomeAssistantEntityTests {
  static let words = ProfileTests.words() ?? .bytes
  static let bool = (try? Codec(.scalar(.init(.bool)))) ?? .bytes
  static let picture = (try? Codec(.scalar(.bits(rows: 2, columns: 2)))) ?? .bytes
  static let choice = HomeAssistantEntity.Kind.select([.init("near", .integer(2))])
  static let onOff = HomeAssistantEntity.Kind.switch(on: .bool(true), off: .bool(false))

  /// A record with a field of each kind.
  static let parts =
    (try? Codec.record([
      Codec.Field("flags", .uint8, isHidden: true), Codec.Field("number", Codec.Scalar(.uint8), unit: "V"),
      Codec.Field("count", .uint8), Codec.Field("on", .bool),
      Codec.Field("mode", Codec.Scalar(.uint8, values: [0: "slow", 1: "fast"])),
      Codec.Field("list", .uint8, isRepeated: true, if: [Codec.Flag(field: "flags", bit: 0)]),
      Codec.Field("text", .utf8, unless: [Codec.Flag(field: "flags", bit: 0)]),
    ])) ?? .bytes
  static let lists = (try? Codec.record([Codec.Field("list", .uint8, isRepeated: true)])) ?? .bytes
  static let flags = (try? Codec(.flags(.uint8, [0: "a"]))) ?? .bytes

  static func of(_ field: String, _ kind: HomeAssistantEntity.Kind) -> HomeAssistantEntity {
    HomeAssistantEntity(kind, field: field, name: "Thing")
  }

  static func entity(_ kind: HomeAssistantEntity.Kind, _ category: HomeAssistantEntity.Category? = nil)
    -> HomeAssistantEntity
  {
    HomeAssistantEntity(kind, name: "Thing", category: category)
  }

  @Test(arguments: [
    ProfileTests.property(kind: .event, access: .notify, homeAssistant: [entity(.sensor(nil))]),
    ProfileTests.property(access: .write, homeAssistant: [entity(.sensor(nil))]),
    ProfileTests.property(homeAssistant: [entity(.sensor(nil), .config)]),
    ProfileTests.property(access: .read, homeAssistant: [entity(.number(.box))]),
    ProfileTests.property(codec: .utf8, homeAssistant: [entity(.number(.box))]),
    ProfileTests.property(codec: words, homeAssistant: [entity(.number(.box))]),
    ProfileTests.property(kind: .event, access: .write, homeAssistant: [entity(.number(.box))]),
    ProfileTests.property(codec: words, homeAssistant: [entity(.event)]),
    ProfileTests.property(kind: .event, access: .notify, homeAssistant: [entity(.event)]),
    ProfileTests.property(kind: .event, access: .write, codec: words, homeAssistant: [entity(.event)]),
    ProfileTests.property(homeAssistant: [entity(.text)]),
    ProfileTests.property(access: .read, codec: .utf8, homeAssistant: [entity(.text)]),
    ProfileTests.property(homeAssistant: [entity(.binarySensor)]),
    ProfileTests.property(access: .write, codec: bool, homeAssistant: [entity(.binarySensor)]),
    ProfileTests.property(homeAssistant: [entity(.select([]))]),
    ProfileTests.property(access: .read, homeAssistant: [entity(choice)]),
    ProfileTests.property(codec: .int8, homeAssistant: [entity(.select([.init("far", .integer(200))]))]),
    ProfileTests.property(homeAssistant: [entity(onOff)]),
    ProfileTests.property(access: .read, codec: bool, homeAssistant: [entity(onOff)]),
    ProfileTests.property(homeAssistant: [entity(.notify)]),
    ProfileTests.property(codec: .utf8, homeAssistant: [entity(.image)]),
    ProfileTests.property(codec: picture, homeAssistant: [entity(.image, .config)]),
    ProfileTests.property(homeAssistant: [HomeAssistantEntity(.sensor(nil), key: "B c", name: "Thing")]),
    ProfileTests.property(access: .notify, codec: parts, homeAssistant: [of("list", .sensor(nil))]),
    ProfileTests.property(access: .notify, codec: parts, homeAssistant: [of("none", .sensor(nil))]),
    ProfileTests.property(access: .notify, codec: parts, homeAssistant: [of("number", .binarySensor)]),
    ProfileTests.property(access: .notify, codec: lists, homeAssistant: [entity(.sensor(nil))]),
    ProfileTests.property(access: .notify, codec: flags, homeAssistant: [entity(.sensor(nil))]),
  ])
  func unsuitableEntityIsRefused(property: Property) {
    let problem = error(of: ProfileError.self) { try ProfileTests.profile([property]) }
    #expect(problem?.path == ["properties", "level", "home_assistant"])
  }

  @Test(arguments: [
    ProfileTests.property(access: .notify, codec: .utf8, homeAssistant: [entity(.sensor(nil))]),
    ProfileTests.property(codec: words, homeAssistant: [entity(.sensor(nil), .diagnostic)]),
    ProfileTests.property(homeAssistant: [entity(.number(.slider), .config)]),
    ProfileTests.property(kind: .event, access: .notify, codec: words, homeAssistant: [entity(.event)]),
    ProfileTests.property(kind: .event, access: .write, codec: .utf8, homeAssistant: [entity(.text)]),
    ProfileTests.property(codec: .utf8, homeAssistant: [entity(.text)]),
    ProfileTests.property(codec: bool, homeAssistant: [entity(.binarySensor)]),
    ProfileTests.property(codec: bool, homeAssistant: [entity(onOff, .config)]),
    ProfileTests.property(kind: .event, access: .write, homeAssistant: [entity(choice)]),
    ProfileTests.property(codec: words, homeAssistant: [entity(.select([]))]),
    ProfileTests.property(kind: .event, access: .write, codec: .utf8, homeAssistant: [entity(.notify)]),
    ProfileTests.property(codec: picture, homeAssistant: [entity(.image)]),
    ProfileTests.property(
      homeAssistant: [entity(.sensor(nil)), HomeAssistantEntity(choice, key: "choice", name: "Thing")]),
  ])
  func suitableEntityIsAccepted(property: Property) throws {
    #expect(try ProfileTests.profile([property]).properties.count == 1)
  }

  /// Home Assistant refuses each value of a sensor that is to be a number and is none.
  @Test func aFieldIsShownAsWhatItIs() throws {
    let entity = HomeAssistantEntity(.sensor(.measurement), name: "Thing", deviceClass: "voltage")
    let property = Property(
      name: "level", service: BluetoothUUID(short: 1), characteristic: BluetoothUUID(short: 2),
      access: .notify, codec: Self.parts, unit: "mV", homeAssistant: [entity])
    let parts = property.homeAssistantParts
    #expect(parts.map(\.field) == ["number", "count", "on", "mode", "text"])
    #expect(parts.map(\.unit) == ["V", "mV", nil, nil, nil])
    #expect(parts.map(\.deviceClass) == ["voltage", "voltage", nil, "enum", nil])
    let kinds: [HomeAssistantEntity.Kind] = [
      .sensor(.measurement), .sensor(.measurement), .binarySensor, .sensor(nil), .sensor(nil),
    ]
    #expect(parts.map(\.entity.kind) == kinds)
    #expect(property.unit(of: "text") == nil && property.unit(of: "count") == "mV")
  }

  @Test func anEntityMayShowOneField() throws {
    let property = ProfileTests.property(
      "climate", access: .notify, codec: Self.parts,
      homeAssistant: [
        HomeAssistantEntity(.sensor(.measurement), field: "number", name: "Voltage", deviceClass: "voltage"),
        HomeAssistantEntity(.sensor(nil), field: "number", key: "raw", name: "Voltage in mV", unit: "mV"),
        Self.of("on", .binarySensor),
      ])
    #expect(try ProfileTests.profile([property]).properties.count == 1)
    let parts = property.homeAssistantParts
    #expect(parts.map(\.key) == ["climate_number", "climate_raw_number", "climate_on"])
    #expect(parts.map(\.name) == ["Voltage", "Voltage in mV", "Thing"])
    #expect(parts.map(\.unit) == ["V", "mV", nil])
    // Another name of the property's unit is none of the field's.
    let adjusted = property.adjusted(offset: nil, unit: "x", report: nil).homeAssistantParts
    #expect(adjusted[0].unit == "V" && adjusted[0].deviceClass == "voltage")
  }

  @Test func recordHasOneEntityPerField() throws {
    let codec = try Codec.record([Codec.Field("x", .int8), Codec.Field("y", .int8)])
    let position = ProfileTests.property(
      "position", access: .notify, codec: codec, homeAssistant: [Self.entity(.sensor(nil))])
    #expect(position.homeAssistantParts.map(\.key) == ["position_x", "position_y"])
    #expect(position.homeAssistantParts.map(\.name) == ["Thing x", "Thing y"])
    #expect(position.homeAssistantParts.map(\.field) == ["x", "y"])
    let other = ProfileTests.property(
      "position_y", characteristic: 2, homeAssistant: [Self.entity(.sensor(nil))])
    #expect(throws: ProfileError.sameEntity("position_y", of: "position_y")) {
      try ProfileTests.profile([position, other])
    }
    // A device trigger has that key.
    let button = ProfileTests.property(
      "button", kind: .event, access: .notify, codec: Self.words, homeAssistant: [Self.entity(.event)])
    let number = Self.words.words.keys.min() ?? 0
    let light = ProfileTests.property(
      "button_type_\(number)", characteristic: 2, homeAssistant: [Self.entity(.sensor(nil))])
    #expect(throws: ProfileError.sameEntity("button_type_\(number)", of: "button_type_\(number)")) {
      try ProfileTests.profile([button, light])
    }
    let withoutEntity = ProfileTests.property("position_y", characteristic: 2)
    #expect(withoutEntity.homeAssistantParts == [])
    #expect(throws: Never.self) { try ProfileTests.profile([position, withoutEntity]) }
  }
}
