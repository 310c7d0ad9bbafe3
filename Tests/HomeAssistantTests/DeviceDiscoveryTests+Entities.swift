import Configuration
import GATT
import JSON
import MQTT
import Testing

@testable import Bridge
@testable import Devices
@testable import HomeAssistant

/// Entities of a profile.
extension DeviceDiscoveryTests {
  /// A new property becomes an entity by its metadata alone.
  @Test func everyPropertyWithMetadataIsAnEntity() throws {
    let service = BluetoothUUID.microbitTemperatureService
    var number: UInt16 = 0
    func property(
      _ name: String, codec: Codec = .uint16, unit: String? = nil, _ entity: HomeAssistantEntity?
    ) -> Property {
      number += 1
      return Property(
        name: name, service: service, characteristic: .microbit(number), access: [.read, .write, .notify],
        codec: codec, unit: unit, homeAssistant: entity.map { [$0] } ?? [])
    }
    let profile = try Profile(
      name: "thing", manufacturer: "Maker", model: "Thing",
      properties: [
        property(
          "steps", HomeAssistantEntity(.sensor(.totalIncreasing), name: "Steps", category: .diagnostic)),
        property("secret", unit: "V", nil),
        property("light", unit: "lux", HomeAssistantEntity(.sensor(nil), name: "Light", unit: "lx")),
        property("speed", HomeAssistantEntity(.number(.slider), name: "Speed")),
        property(
          "target", codec: try Codec(.scalar(Codec.Scalar(.uint8, scale: 0.5))),
          HomeAssistantEntity(.number(.box), name: "Target")),
        property(
          "gain", codec: try Codec(.scalar(Codec.Scalar(.float32))),
          HomeAssistantEntity(.number(.box), name: "Gain")),
        property(
          "leak", unit: "\u{B5}A", HomeAssistantEntity(.sensor(nil), name: "Leak", deviceClass: "current")),
      ])
    let map = TopicMap(base: "b", gateway: GatewayID(hostName: "g"))
    let thing = DeviceDescription(device.id, device.address, profile)
    let document = Discovery(prefix: "ha", qos: .atMostOnce, topics: map)
      .document(of: thing, topics: map.topics(of: thing.id, profile))
    let components = try object(document, "cmps")
    #expect(components.names.prefix(5) == ["steps", "light", "speed", "target", "gain"])
    #expect(components["target"]?["step"] == JSONValue.number(0.5))
    #expect(components["gain"]?["step"] == JSONValue.number(0.001))
    #expect(components["leak"]?["unit_of_meas"] == "\u{3BC}A")
    #expect(!components.names.contains("secret"))
    try expect(
      components["steps"],
      """
      { "p": "sensor", "uniq_id": "ble_c5a1b2c3d4e5_steps", "name": "Steps",
        "stat_cla": "total_increasing", "ent_cat": "diagnostic", "stat_t": "b/kitchen/steps" }
      """)
    try expect(
      components["light"],
      """
      { "p": "sensor", "uniq_id": "ble_c5a1b2c3d4e5_light", "name": "Light", "unit_of_meas": "lx",
        "stat_t": "b/kitchen/light", "sug_dsp_prc": 0 }
      """)
    try expect(
      components["speed"],
      """
      { "p": "number", "uniq_id": "ble_c5a1b2c3d4e5_speed", "name": "Speed",
        "stat_t": "b/kitchen/speed", "cmd_t": "b/kitchen/speed/set", "min": 0, "max": 65535, "step": 1,
        "mode": "slider", "val_tpl": "{{ value if is_number(value) and 0 <= value|float <= 65535 else none }}" }
      """)
    #expect(try object(document, "dev")["mf"] == .string("Maker"))
    #expect(try object(document, "dev")["mdl"] == .string("Thing"))
  }

  /// The components in the document of a device with these properties.
  private func components(with properties: [Property]) throws -> JSONObject {
    let profile = try Profile(name: "thing", properties: properties)
    let map = TopicMap(base: "b", gateway: GatewayID(hostName: "g"))
    let thing = DeviceDescription(device.id, device.address, profile)
    return try object(
      Discovery(prefix: "ha", qos: .atMostOnce, topics: map)
        .document(of: thing, topics: map.topics(of: thing.id, profile)), "cmps")
  }

  @Test func entityOfEachPlatformMayBeDisabledByDefault() throws {
    let kinds: [HomeAssistantEntity.Kind] = [
      .sensor(nil), .number(.box), .select([HomeAssistantEntity.Choice("One", .integer(1))]),
      .switch(on: .integer(1), off: .integer(0)),
    ]
    let properties = kinds.enumerated().map { index, kind in
      Property(
        name: "p\(index)", service: .microbitTemperatureService, characteristic: .microbit(UInt16(index)),
        access: [.read, .write, .notify], codec: .uint16, range: 0...10,
        homeAssistant: [HomeAssistantEntity(kind, name: "P\(index)", isEnabled: false)])
    }
    let components = try components(with: properties)
    for property in properties { #expect(components[property.name]?["en"] == .bool(false)) }
  }

  /// Home Assistant refuses each value of a sensor that is to be a number and is none.
  @Test func whatIsNoNumberIsAnnouncedAsNone() throws {
    let record = try Codec(
      .record([
        Codec.Field("temperature", Codec.Scalar(.int16, scale: 0.01), unit: "°C"),
        Codec.Field("low", .bool),
        Codec.Field("mode", Codec.Scalar(.uint8, values: [0: "slow", 1: "fast"])),
        Codec.Field("text", .utf8),
      ]))
    func property(_ name: String, _ number: UInt16, _ codec: Codec, _ entities: [HomeAssistantEntity])
      -> Property
    {
      Property(
        name: name, service: .microbitTemperatureService, characteristic: .microbit(number),
        access: .notify, codec: codec, homeAssistant: entities)
    }
    let words = try Codec(.scalar(Codec.Scalar(.uint8, values: [0: "slow", 1: "fast"])))
    let all = HomeAssistantEntity(.sensor(.measurement), name: "Climate", deviceClass: "temperature")
    let one = HomeAssistantEntity(
      .sensor(.measurement), field: "temperature", name: "Temperature", deviceClass: "temperature")
    let components = try components(with: [
      property("climate", 1, record, [all]), property("own", 2, record, [one]),
      property("mode", 3, words, [HomeAssistantEntity(.sensor(nil), name: "Mode")]),
    ])
    #expect(
      components.names.prefix(7) == [
        "climate_temperature", "climate_low", "climate_mode", "climate_text", "own_temperature", "mode",
        "connectivity",
      ])
    try expect(
      components["own_temperature"],
      """
      { "p": "sensor", "uniq_id": "ble_c5a1b2c3d4e5_own_temperature", "name": "Temperature",
        "dev_cla": "temperature", "stat_cla": "measurement", "unit_of_meas": "°C", "stat_t": "b/kitchen/own",
        "val_tpl": "{{ (value_json|default({}))['temperature']|default(none) }}", "sug_dsp_prc": 2 }
      """)
    try expect(
      components["climate_low"],
      """
      { "p": "binary_sensor", "uniq_id": "ble_c5a1b2c3d4e5_climate_low", "name": "Climate low",
        "stat_t": "b/kitchen/climate", "pl_on": "True", "pl_off": "False",
        "val_tpl": "{{ (value_json|default({}))['low']|default(none) }}" }
      """)
    let word = "(value_json|default({}))['mode']"
    try expect(
      components["climate_mode"],
      """
      { "p": "sensor", "uniq_id": "ble_c5a1b2c3d4e5_climate_mode", "name": "Climate mode", "dev_cla": "enum",
        "stat_t": "b/kitchen/climate", "ops": ["slow", "fast"],
        "val_tpl": "{{ \(word) if \(word) in [\\"slow\\",\\"fast\\"] else none }}" }
      """)
    let text = "(value_json|default({}))['text']"
    try expect(
      components["climate_text"],
      """
      { "p": "sensor", "uniq_id": "ble_c5a1b2c3d4e5_climate_text", "name": "Climate text",
        "stat_t": "b/kitchen/climate", "val_tpl": "{{ \(text)[:255] if \(text) is string else none }}" }
      """)
    try expect(
      components["mode"],
      """
      { "p": "sensor", "uniq_id": "ble_c5a1b2c3d4e5_mode", "name": "Mode", "dev_cla": "enum",
        "stat_t": "b/kitchen/mode", "ops": ["slow", "fast"],
        "val_tpl": "{{ value if value in [\\"slow\\",\\"fast\\"] else none }}" }
      """)
  }

  /// 20 is published as `20.0` where numbers are fractional.
  @Test func anOptionIsComparedWithWhatIsPublished() throws {
    let codec = try Codec(.scalar(Codec.Scalar(.uint8, scale: 0.5)))
    func property(_ name: String, _ number: UInt16, _ kind: HomeAssistantEntity.Kind) -> Property {
      Property(
        name: name, service: .microbitTemperatureService, characteristic: .microbit(number),
        access: [.read, .write], codec: codec, homeAssistant: [HomeAssistantEntity(kind, name: "It")])
    }
    let choice = HomeAssistantEntity.Choice("Warm", .integer(20))
    let components = try components(with: [
      property("choice", 1, .select([choice])),
      property("power", 2, .switch(on: .integer(1), off: .integer(0))),
    ])
    #expect(components["choice"]?["val_tpl"] == #"{{ {"20.0":"Warm"}.get(value) }}"#)
    #expect(components["power"]?["pl_on"] == "1.0" && components["power"]?["pl_off"] == "0.0")
  }

  /// Its value is never published: with a topic, Home Assistant would wait for it.
  @Test func aNumberThatCannotBeReadHasNoState() throws {
    let property = Property(
      name: "speed", service: .microbitTemperatureService, characteristic: .microbit(1), access: .write,
      codec: .uint8, homeAssistant: [HomeAssistantEntity(.number(.box), name: "Speed")])
    try expect(
      components(with: [property])["speed"],
      """
      { "p": "number", "uniq_id": "ble_c5a1b2c3d4e5_speed", "name": "Speed", "cmd_t": "b/kitchen/speed/set",
        "min": 0, "max": 255, "step": 1, "mode": "box" }
      """)
  }

  @Test func anEventThatWasNotAnnouncedIsIgnored() throws {
    try expect(
      components(with: [.microbitButtonA])["button_a"],
      """
      { "p": "event", "uniq_id": "ble_c5a1b2c3d4e5_button_a", "name": "Button A", "dev_cla": "button",
        "stat_t": "b/kitchen/button_a", "evt_typ": ["press_end", "press_start", "long_press_start"],
        "val_tpl":
          "{{ value if (value_json|default({}))['event_type'] in [\\"press_end\\",\\"press_start\\",\\"long_press_start\\"] else '' }}" }
      """)
  }

  @Test func eventHasADeviceTriggerForEachOfItsTypes() throws {
    let components = try components(with: [.microbitButtonA])
    #expect(
      components.names.prefix(4) == [
        "button_a", "button_a_type_0", "button_a_type_1", "button_a_type_2",
      ])
    try expect(
      components["button_a_type_1"],
      """
      { "p": "device_automation", "uniq_id": "ble_c5a1b2c3d4e5_button_a_type_1", "atype": "trigger",
        "type": "button_short_press", "stype": "Button A", "t": "b/kitchen/button_a",
        "val_tpl": "{{ (value_json|default({}))['event_type']|default(none) }}", "pl": "press_start" }
      """)
  }

  @Test func oneWithADisplayHasAButtonToIdentifyIt() throws {
    #expect(try components(with: [.microbitLEDMatrix])["identify"] != nil)
    #expect(try components(with: [.microbitTemperature, .microbitScrollDelay])["identify"] == nil)
    try expect(
      components(with: [.microbitLEDText])["identify"],
      """
      { "p": "button", "uniq_id": "ble_c5a1b2c3d4e5_identify", "name": "Identify", "dev_cla": "identify",
        "ent_cat": "diagnostic", "cmd_t": "b/bridge/g/request/device/identify",
        "pl_prs": "{\\"id\\":\\"kitchen\\"}" }
      """)
  }

  @Test func aPropertyMayHaveSeveralEntities() throws {
    let components = try components(with: [.microbitLEDText, .microbitLEDMatrix, .microbitPins])
    #expect(
      components.names.prefix(7) == [
        "led_text", "led_text_notify", "led", "led_image", "pins_p0", "pins_p1", "pins_p2",
      ])
    try expect(
      components["led_text_notify"],
      """
      { "p": "notify", "uniq_id": "ble_c5a1b2c3d4e5_led_text_notify", "name": "LED text",
        "cmd_t": "b/kitchen/led_text/set", "cmd_tpl": "{{ {'value': value}|to_json }}" }
      """)
    try expect(
      components["led"],
      """
      { "p": "text", "uniq_id": "ble_c5a1b2c3d4e5_led", "name": "LED matrix", "stat_t": "b/kitchen/led",
        "cmd_t": "b/kitchen/led/set", "max": 255 }
      """)
    try expect(
      components["led_image"],
      """
      { "p": "image", "uniq_id": "ble_c5a1b2c3d4e5_led_image", "name": "LED matrix",
        "img_t": "b/kitchen/led/image", "cont_type": "image/svg+xml" }
      """)
    try expect(
      components["pins_p0"],
      """
      { "p": "switch", "uniq_id": "ble_c5a1b2c3d4e5_pins_p0", "name": "Pin P0", "cmd_t": "b/kitchen/pins/set",
        "pl_on": "[{\\"pin\\":\\"P0\\",\\"value\\":1}]", "pl_off": "[{\\"pin\\":\\"P0\\",\\"value\\":0}]" }
      """)
  }

  /// An empty text is published in quotes: an empty payload clears the topic.
  @Test func aTextIsTakenOutOfItsQuotes() throws {
    func property(_ name: String, _ number: UInt16, _ kind: HomeAssistantEntity.Kind) -> Property {
      Property(
        name: name, service: .microbitTemperatureService, characteristic: .microbit(number),
        access: [.read, .write], codec: .utf8, homeAssistant: [HomeAssistantEntity(kind, name: "It")])
    }
    let components = try components(with: [
      property("note", 1, .text), property("shown", 2, .sensor(nil)),
    ])
    try expect(
      components["note"],
      #"""
      { "p": "text", "uniq_id": "ble_c5a1b2c3d4e5_note", "name": "It", "stat_t": "b/kitchen/note",
        "cmd_t": "b/kitchen/note/set",
        "val_tpl": "{{ (value_json|default(value) if value[:1] == '\"' else value)[:255] }}",
        "cmd_tpl": "{{ {'value': value}|to_json }}", "max": 255 }
      """#)
    try expect(
      components["shown"],
      #"""
      { "p": "sensor", "uniq_id": "ble_c5a1b2c3d4e5_shown", "name": "It", "stat_t": "b/kitchen/shown",
        "val_tpl": "{{ none if value == '' else (value_json|default(value) if value[:1] == '\"' else value)[:255] }}" }
      """#)
  }

  @Test func aSelectOffersChoicesOrTheWordsOfAnEnumeration() throws {
    func property(_ name: String, _ number: UInt16, _ codec: Codec, _ kind: HomeAssistantEntity.Kind)
      -> Property
    {
      Property(
        name: name, service: .microbitTemperatureService, characteristic: .microbit(number),
        access: [.read, .write], codec: codec, homeAssistant: [HomeAssistantEntity(kind, name: "It")])
    }
    let choices = [
      HomeAssistantEntity.Choice("1 s", .integer(1000)), .init(#"5 "}}" s"#, .integer(5000)),
    ]
    let words = try Codec(.scalar(.init(.uint8, values: [0: "off", 1: "slow", 2: "fast"])))
    let flag = try Codec(.scalar(.init(.bool)))
    let components = try components(with: [
      property("period", 1, .uint16, .select(choices)), property("speed", 2, words, .select([])),
      property("light", 3, flag, .switch(on: .bool(true), off: .bool(false))),
      property("door", 4, flag, .binarySensor),
    ])
    try expect(
      components["period"],
      #"""
      { "p": "select", "uniq_id": "ble_c5a1b2c3d4e5_period", "name": "It", "stat_t": "b/kitchen/period",
        "cmd_t": "b/kitchen/period/set", "ops": ["1 s", "5 \"}}\" s"],
        "val_tpl": "{{ {\"1000\":\"1 s\",\"5000\":\"5 \\\"}}\\\" s\"}.get(value) }}",
        "cmd_tpl": "{{ {\"1 s\":\"1000\",\"5 \\\"}}\\\" s\":\"5000\"}.get(value) }}" }
      """#)
    try expect(
      components["speed"],
      """
      { "p": "select", "uniq_id": "ble_c5a1b2c3d4e5_speed", "name": "It", "stat_t": "b/kitchen/speed",
        "cmd_t": "b/kitchen/speed/set", "ops": ["off", "slow", "fast"],
        "val_tpl": "{{ value if value in [\\"off\\",\\"slow\\",\\"fast\\"] else none }}" }
      """)
    try expect(
      components["light"],
      """
      { "p": "switch", "uniq_id": "ble_c5a1b2c3d4e5_light", "name": "It", "stat_t": "b/kitchen/light",
        "cmd_t": "b/kitchen/light/set", "pl_on": "true", "pl_off": "false" }
      """)
    try expect(
      components["door"],
      """
      { "p": "binary_sensor", "uniq_id": "ble_c5a1b2c3d4e5_door", "name": "It", "stat_t": "b/kitchen/door",
        "pl_on": "true", "pl_off": "false" }
      """)
  }

  @Test func aNumberAsTextIsANumber() throws {
    let codec = try Codec(.scalar(.init(.decimal)))
    func property(_ name: String, _ number: UInt16, _ kind: HomeAssistantEntity.Kind) -> Property {
      Property(
        name: name, service: .microbitTemperatureService, characteristic: .microbit(number),
        access: [.read, .write], codec: codec, unit: "°C", range: 5...30,
        homeAssistant: [HomeAssistantEntity(kind, name: "It", deviceClass: "temperature")])
    }
    let components = try components(with: [
      property("inside", 1, .sensor(.measurement)), property("target", 2, .number(.box)),
    ])
    try expect(
      components["inside"],
      """
      { "p": "sensor", "uniq_id": "ble_c5a1b2c3d4e5_inside", "name": "It", "dev_cla": "temperature",
        "stat_cla": "measurement", "unit_of_meas": "°C", "stat_t": "b/kitchen/inside" }
      """)
    let target = try #require(components["target"])
    #expect(target["min"] == .integer(5) && target["max"] == .integer(30) && target["step"] == .number(0.001))
  }
}
