import GATT
import Testing

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

  @Test func anotherUnitDoesNotEnableWhatChangesAllTheTime() {
    let adjusted = Property.microbitBearing.adjusted(offset: nil, unit: "deg", report: nil)
    #expect(adjusted.homeAssistantParts.map(\.unit) == ["deg"])
    #expect(adjusted.homeAssistant.map(\.isEnabled) == [false])
  }

  static func same(_ key: String) -> ProfileError {
    ProfileError(
      ["properties", .key(key), "home_assistant"], "two entities of Home Assistant would be named \(key)")
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
    #expect(throws: Self.same("position_y")) {
      try ProfileTests.profile([position, other])
    }
    // A device trigger has that key.
    let button = ProfileTests.property(
      "button", kind: .event, access: .notify, codec: Self.words, homeAssistant: [Self.entity(.event)])
    let number = Self.words.words.keys.min() ?? 0
    let light = ProfileTests.property(
      "button_type_\(number)", characteristic: 2, homeAssistant: [Self.entity(.sensor(nil))])
    #expect(throws: Self.same("button_type_\(number)")) {
      try ProfileTests.profile([button, light])
    }
    let withoutEntity = ProfileTests.property("position_y", characteristic: 2)
    #expect(withoutEntity.homeAssistantParts == [])
    #expect(throws: Never.self) { try ProfileTests.profile([position, withoutEntity]) }
  }
}
