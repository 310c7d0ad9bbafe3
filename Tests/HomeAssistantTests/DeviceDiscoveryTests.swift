import Configuration
import EventLoop
import GATT
import JSON
import MQTT
import Testing

@testable import Bridge
@testable import Devices
@testable import HomeAssistant

@Suite struct DeviceDiscoveryTests {
  let map = TopicMap(base: "microbit", gateway: GatewayID(hostName: "attic"))
  let discovery: Discovery
  var device: DeviceDescription

  init() throws {
    discovery = Discovery(prefix: "homeassistant", qos: .atLeastOnce, topics: map)
    let address = try #require(BluetoothAddress("C5:A1:B2:C3:D4:E5"))
    device = DeviceDescription(try DeviceID("kitchen"), address)
    device.bluetoothName = "BBC micro:bit [zugev]"
  }

  func document(_ device: DeviceDescription, before: Announced? = nil) -> DiscoveryDocument {
    discovery.document(of: device, topics: topics(device), before: before)
  }

  private func topics(_ device: DeviceDescription) -> DeviceTopics {
    map.topics(of: device.id, device.profile)
  }

  private func components(_ device: DeviceDescription, before: Announced? = nil) throws -> JSONObject {
    let document = try JSONParser.parse(document(device, before: before).payload)
    guard case .object(let object) = document, case .object(let components) = object["cmps"] else {
      throw Broken()
    }
    return components
  }

  private struct Broken: Error {}

  @Test func propertiesNeverOfferedHaveNoEntities() throws {
    var device = device
    device.learn(offered: ["temperature"])
    #expect(
      try components(device).names == [
        "temperature", "offset-temperature", "connectivity", "rssi", "firmware", "model", "enabled",
        "reconnect",
      ])
    // An earlier version announced entities for all properties: they are removed.
    let earlier = Announced(prefix: "homeassistant", components: [.init(key: "period", platform: .number)])
    #expect(try components(device, before: earlier)["period"] == ["p": "number"])
  }

  @Test func aDataLogHasASwitch() throws {
    #expect(try components(device)["log"] == nil)
    var device = device
    device.configure { $0.log = true }
    let log = try #require(try components(device)["log"])
    #expect(log["p"] == "switch" && log["pl_off"] == #"{"id":"kitchen","options":{"log":false}}"#)
  }

  @Test func propertyNoLongerOfferedIsUnavailable() throws {
    var device = device
    device.learn(offered: ["temperature", "period"])
    let whole = try components(device)
    device.learn(offered: ["temperature"])
    let period = try #require(try components(device)["period"])
    guard case .object(let members) = period else { throw Broken() }
    #expect(members["avty"] == [["t": "homeassistant/device/ble_c5a1b2c3d4e5/removed"]])
    #expect(members["cmd_t"] == "microbit/kitchen/period/set")
    device.learn(offered: ["period"])
    let offset = try #require(try components(device)["offset-temperature"])
    #expect(offset["avty"] == [["t": "homeassistant/device/ble_c5a1b2c3d4e5/removed"]])
    device.learn(offered: ["temperature", "period"])
    #expect(try components(device) == whole)
  }

  private var automatic: DeviceDescription {
    let profile = Profile.microbit.limited(to: Set(Profile.microbit.automaticProperties), isAutomatic: true)
    return DeviceDescription(device.id, device.address, profile)
  }

  @Test func automaticPropertiesAreThoseOfTheLastProgram() throws {
    var device = automatic
    device.learn(offered: ["temperature", "period", "led_text"])
    let before = document(device).announced
    #expect(
      Array(try components(device).names.prefix(5)) == [
        "temperature", "offset-temperature", "period", "led_text", "led_text_notify",
      ])
    // A service that goes on a link may come back on it.
    device.learn(offered: ["temperature", "period"], usable: ["temperature", "period"], isNewLink: false)
    #expect(try components(device, before: before)["led_text"]?["avty"] != nil)
    device.learn(offered: ["temperature", "button_a"])
    let after = try components(device, before: before)
    #expect(after["led_text"] == ["p": "text"] && after["led_text_notify"] == ["p": "notify"])
    #expect(after["period"] == ["p": "number"] && after["button_a"]?["p"] == "event")
  }

  @Test func valuesAreSensorsOnceTheyAreConfirmed() throws {
    var device = automatic
    device.learn(offered: ["uart_rx", "uart_tx"])
    func value(_ written: String, isNumber: Bool = true, isConfirmed: Bool = true) throws -> NamedValue {
      let entry = ValueTable.Entry(
        written: written, isNumber: isNumber, isConfirmed: isConfirmed, lastSeen: 1)
      return NamedValue(try #require(ValueName(written)).key, entry, nil, of: .microbitUARTReceived)
    }
    device.values = [
      try value("temp_C"), try value("light"), try value("door", isNumber: false), try value("온도"),
      try value("once", isConfirmed: false),
    ]
    let components = try components(device)
    #expect(
      components.names.filter { $0.hasPrefix("value-") } == [
        "value-temp", "value-light", "value-door", "value-UC628_UB3C4_",
      ])
    #expect(components["value-UC628_UB3C4_"]?["stat_t"] == "microbit/kitchen/values/온도")
    let temperature = try #require(components["value-temp"])
    #expect(temperature["unit_of_meas"] == "°C" && temperature["dev_cla"] == "temperature")
    #expect(temperature["stat_cla"] == "measurement" && temperature["name"] == "Temp")
    #expect(temperature["stat_t"] == "microbit/kitchen/values/temp" && temperature["avty"] == nil)
    #expect(temperature["val_tpl"] == "{{ value if is_number(value) else none }}")
    #expect(temperature["sug_dsp_prc"] == .integer(1))
    let light = try #require(components["value-light"])
    #expect(light["unit_of_meas"] == nil && light["dev_cla"] == nil && light["stat_cla"] == "measurement")
    #expect(components["value-door"]?["stat_cla"] == nil && light["sug_dsp_prc"] == nil)
    // Another program without UART.
    device.learn(offered: ["temperature"])
    #expect(try self.components(device)["value-light"]?["avty"] != nil)
  }

  @Test func whatChangesEachSecondIsNotEnabled() throws {
    let components = try components(automatic)
    for key in ["accelerometer_x", "accelerometer_z"] {
      #expect(components[key]?["en"] == .bool(false), "\(key)")
    }
    let magnetic: [Property] = [.microbitMagnetometer, .microbitBearing]
    #expect(magnetic.allSatisfy { property in property.homeAssistant.allSatisfy { !$0.isEnabled } })
    #expect(
      components["temperature"]?["en"] == nil && components["temperature"]?["sug_dsp_prc"] == .integer(0))
  }

  @Test func pageIsLinkedWhereItCanBeOpened() throws {
    var http = Configuration.HTTP()
    (http.isEnabled, http.addresses) = (true, ["0.0.0.0"])
    let url = try #require(http.networkURL)
    #expect(url.hasSuffix(":8484/") && !url.contains("0.0.0.0"))
    http.addresses = ["127.0.0.1", "192.0.2.7"]
    #expect(http.networkURL == "http://192.0.2.7:8484/")
    http.proxy = "172.30.32.2"
    #expect(http.networkURL == nil)
    http = Configuration.HTTP()
    http.isEnabled = true
    #expect(http.networkURL == nil)
    let topics = TopicMap(base: "microbit", gateway: GatewayID(hostName: "here"))
    let discovery = Discovery(prefix: "homeassistant", qos: .atLeastOnce, topics: topics, page: url)
    let document = discovery.document(of: device, topics: topics.topics(of: device.id, device.profile))
    let json = try JSONParser.parse(document.payload)
    #expect(json["dev"]?["cu"] == .string(url))
  }

  /// It does not know what that gateway announced, but which properties it published.
  @Test func entitiesOfTheProgramAtAnotherGatewayAreRemoved() throws {
    var device = automatic
    device.learn(offered: ["temperature"])
    let topics = TopicMap(base: "microbit", gateway: GatewayID(hostName: "here"))
    let discovery = Discovery(prefix: "homeassistant", qos: .atLeastOnce, topics: topics)
    let before = discovery.announced(
      Set(names: ["temperature", "accelerometer", "unknown", "values/light", "values/+/#"]), of: device,
      device.profile)
    let components = try components(device, before: before)
    #expect(
      components["accelerometer_x"] == ["p": "sensor"] && components["accelerometer_z"] == ["p": "sensor"])
    #expect(components["value-light"] == ["p": "sensor"])
    #expect(components["temperature"]?["stat_t"] != nil && components["period"] == nil)
  }

  /// The entry here leaves them out.
  @Test func entitiesOfPropertiesUsedAtAnotherGatewayAloneAreRemoved() throws {
    let topics = TopicMap(base: "microbit", gateway: GatewayID(hostName: "here"))
    let discovery = Discovery(prefix: "homeassistant", qos: .atLeastOnce, topics: topics)
    let before = discovery.announced(Set(names: ["temperature", "button_a"]), of: device, .microbit)
    let components = try components(device, before: before)
    #expect(components["button_a"] == ["p": "event"])
    #expect(components["temperature"]?["stat_t"] != nil)
  }

  @Test func documentDescribesTheWholeDevice() throws {
    var device = device
    device.configure { ($0.name, $0.area) = ("Kitchen", "Ground floor") }
    device.record.model = "BBC micro:bit V2"
    device.record.firmware = "MICROBIT2"
    device.record.serial = "8817"
    let document = document(device)
    #expect(document.topic.string == "homeassistant/device/ble_c5a1b2c3d4e5/config")
    try expect(
      document,
      """
      { "dev": {
          "ids": ["ble_c5a1b2c3d4e5"], "name": "Kitchen", "mf": "micro:bit Educational Foundation",
          "mdl": "BBC micro:bit V2", "sw": "MICROBIT2", "sn": "8817", "sa": "Ground floor",
          "cns": [["bluetooth", "C5:A1:B2:C3:D4:E5"]] },
        "o": { "name": "microbit-gateway", "sw": "\(Version.current)" },
        "avty": [{ "t": "microbit/kitchen/availability" }, { "t": "microbit/bridge/attic/state" }],
        "avty_mode": "all",
        "cmps": {
          "temperature": {
            "p": "sensor", "uniq_id": "ble_c5a1b2c3d4e5_temperature", "qos": 1,
            "name": "Temperature", "dev_cla": "temperature", "stat_cla": "measurement",
            "unit_of_meas": "°C", "stat_t": "microbit/kitchen/temperature", "sug_dsp_prc": 0 },
          "offset-temperature": {
            "p": "number", "uniq_id": "ble_c5a1b2c3d4e5_offset-temperature", "qos": 1,
            "name": "Temperature offset", "unit_of_meas": "°C", "ent_cat": "config",
            "stat_t": "microbit/kitchen/info", "cmd_t": "microbit/bridge/attic/request/device/options",
            "min": -1000000000, "max": 1000000000, "step": 0.1, "mode": "box",
            "val_tpl":
              "{{ (((value_json|default({}))['adjust']|default({}))['temperature']|default({}))['offset']|default(0) }}",
            "cmd_tpl":
              "{\\"id\\":\\"kitchen\\",\\"options\\":{\\"adjust\\":{\\"temperature\\":{\\"offset\\":{{ value }}}}}}",
            "avty": [{ "t": "microbit/bridge/attic/state" }] },
          "period": {
            "p": "number", "uniq_id": "ble_c5a1b2c3d4e5_period", "qos": 1,
            "name": "Measuring interval", "dev_cla": "duration", "unit_of_meas": "ms", "ent_cat": "config",
            "stat_t": "microbit/kitchen/period", "cmd_t": "microbit/kitchen/period/set",
            "min": 20, "max": 65535, "step": 1, "mode": "box",
            "val_tpl": "{{ value if is_number(value) and 20 <= value|float <= 65535 else none }}" },
          "connectivity": {
            "p": "binary_sensor", "uniq_id": "ble_c5a1b2c3d4e5_connectivity", "qos": 1,
            "name": "Connectivity", "dev_cla": "connectivity", "ent_cat": "diagnostic",
            "stat_t": "microbit/kitchen/availability", "pl_on": "online", "pl_off": "offline",
            "avty": [{ "t": "microbit/bridge/attic/state" }] },
          "rssi": {
            "p": "sensor", "uniq_id": "ble_c5a1b2c3d4e5_rssi", "qos": 1,
            "name": "Signal strength", "dev_cla": "signal_strength",
            "unit_of_meas": "dBm", "ent_cat": "diagnostic", "stat_t": "microbit/kitchen/info",
            "val_tpl": "{{ (value_json|default({}))['rssi']|default(none) }}" },
          "firmware": {
            "p": "sensor", "uniq_id": "ble_c5a1b2c3d4e5_firmware", "qos": 1,
            "name": "Firmware", "ent_cat": "diagnostic", "stat_t": "microbit/kitchen/info",
            "val_tpl": "{{ (value_json|default({}))['firmware']|default(none) }}" },
          "model": {
            "p": "sensor", "uniq_id": "ble_c5a1b2c3d4e5_model", "qos": 1,
            "name": "Model", "ent_cat": "diagnostic", "stat_t": "microbit/kitchen/info",
            "val_tpl": "{{ (value_json|default({}))['model']|default(none) }}" },
          "enabled": {
            "p": "switch", "uniq_id": "ble_c5a1b2c3d4e5_enabled", "qos": 1,
            "name": "Enabled", "ent_cat": "config", "stat_t": "microbit/kitchen/info",
            "cmd_t": "microbit/bridge/attic/request/device/options",
            "val_tpl": "{{ (value_json|default({}))['enabled']|default(none) }}",
            "pl_on": "{\\"id\\":\\"kitchen\\",\\"options\\":{\\"enabled\\":true}}",
            "pl_off": "{\\"id\\":\\"kitchen\\",\\"options\\":{\\"enabled\\":false}}",
            "stat_on": "True", "stat_off": "False",
            "avty": [{ "t": "microbit/bridge/attic/state" }] },
          "reconnect": {
            "p": "button", "uniq_id": "ble_c5a1b2c3d4e5_reconnect", "qos": 1,
            "name": "Reconnect", "dev_cla": "restart", "ent_cat": "diagnostic",
            "cmd_t": "microbit/bridge/attic/request/device/reconnect",
            "pl_prs": "{\\"id\\":\\"kitchen\\"}",
            "avty": [{ "t": "microbit/bridge/attic/state" }] } } }
      """)
    #expect(document.payload.count < 3500)
  }

  @Test func unknownDeviceDataIsOmitted() throws {
    try expect(
      document(device), at: "dev",
      """
      { "ids": ["ble_c5a1b2c3d4e5"], "name": "BBC micro:bit [zugev]",
        "mf": "micro:bit Educational Foundation", "mdl": "BBC micro:bit",
        "cns": [["bluetooth", "C5:A1:B2:C3:D4:E5"]] }
      """)
  }

  /// A rename changes topics, but nothing by which Home Assistant identifies the device and its entities.
  @Test func renameKeepsTheIdentifiers() throws {
    var renamed = device
    renamed.id = try DeviceID("hall")
    let before = document(device)
    let after = document(renamed, before: before.announced)
    #expect(after.topic == before.topic)
    #expect(after.announced == before.announced)
    let entities = try uniqueIDs(before)
    #expect(entities.count == 9)
    #expect(try uniqueIDs(after) == entities)
    let text = String(decoding: after.payload, as: UTF8.self)
    #expect(text.contains("microbit/hall/temperature"))
    #expect(!text.contains("kitchen"))
  }

  @Test func entitiesHaveTheConfiguredQoS() throws {
    let discovery = Discovery(prefix: "homeassistant", qos: .atMostOnce, topics: map)
    let document = discovery.document(of: device, topics: topics(device))
    #expect(!String(decoding: document.payload, as: UTF8.self).contains("qos"))
  }

  // MARK: Entities of a profile

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

  // MARK: Advertised names

  /// Whatever a name contains, nothing else in the document changes.
  @Test(arguments: [
    #"","x":"#, #"\"}"#, "\\", "{{ states('person.me') }}", "{% for x in range(9999999) %}", "a\nb\u{0}c",
    "\u{202E}gro.live", "micro\u{200D}bit", "🌡 Küche", "\u{FFFF}\u{FFFE}",
    String(repeating: "x", count: 9999),
  ])
  func namesAffectNothingElse(name: String) throws {
    var named = device
    named.bluetoothName = name
    named.configure { $0.area = name }
    named.record.model = name
    named.record.firmware = name
    named.record.serial = name
    let document = document(named)
    #expect(try object(document, "cmps") == object(self.document(device), "cmps"))
    let allowed = ["ids", "name", "mf", "mdl", "sw", "sn", "sa", "cns"]
    #expect(try object(document, "dev").names.allSatisfy(allowed.contains))
    #expect(try object(document).names == ["dev", "o", "avty", "avty_mode", "cmps"])
    #expect(document.payload.count < 4096)
  }

  @Test func nameWithoutVisibleCharactersIsIgnored() throws {
    var device = device
    device.bluetoothName = "\u{1}\u{200B} "
    #expect(try object(document(device), "dev")["name"] == .string("kitchen"))
    device.configure { $0.name = "\t" }
    #expect(try object(document(device), "dev")["name"] == .string("kitchen"))
  }

  /// Home Assistant shows it before the entity's.
  @Test(arguments: [
    ("Temperature", JSONValue.null, "offset" as JSONValue), ("temperature", .null, "offset"),
    ("Temperature offset", "Temperature", .null), ("Temp", "Temperature", "Temperature offset"),
    ("Temperature ", .null, "offset"), ("Kitchen", "Temperature", "Temperature offset"),
  ])
  func nameOfTheDeviceIsNotRepeated(name: String, temperature: JSONValue, offset: JSONValue) throws {
    var device = device
    device.configure { $0.name = name }
    let components = try components(device)
    #expect(components["temperature"]?["name"] == temperature)
    #expect(components["offset-temperature"]?["name"] == offset)
  }

  // MARK: Earlier announcements

  @Test func everyComponentIsAnnounced() {
    let components: [(String, Platform)] = [
      ("temperature", .sensor), ("offset-temperature", .number), ("period", .number),
      ("connectivity", .binarySensor), ("rssi", .sensor),
      ("firmware", .sensor), ("model", .sensor), ("enabled", .switch), ("reconnect", .button),
    ]
    let expected = Announced(
      prefix: "homeassistant",
      components: components.map { Announced.Component(key: $0.0, platform: $0.1) })
    #expect(document(device).announced == expected)
  }

  /// Again and again: the announcement before this one may have been lost.
  @Test func removedComponentIsNamedWithItsPlatformAlone() throws {
    let earlier = Announced(
      prefix: "homeassistant",
      components: [
        Announced.Component(key: "humidity", platform: .sensor),
        Announced.Component(key: "model", platform: .sensor),
      ])
    var announced = earlier
    for _ in 0..<2 {
      let document = document(device, before: announced)
      let components = try object(document, "cmps")
      try expect(components["humidity"], #"{ "p": "sensor" }"#)
      #expect(components.names.count == 10)
      #expect(document.announced.components.map(\.key).contains("humidity"))
      announced = document.announced
    }
    #expect(announced.components.count == 10)
  }

  /// A document has one platform for each key: the entity of the earlier one is removed first, then the other announced.
  @Test func entityOfAnotherPlatformIsAnnouncedAfterTheEarlierOneIsRemoved() throws {
    let present = document(device)
    let period = { (platform: Platform) in Announced.Component(key: "period", platform: platform) }
    let earlier = Announced(
      prefix: "homeassistant",
      components: present.announced.components.filter { $0.key != "period" } + [
        period(.select), period(.switch),
      ])
    var before = earlier
    var published = PublishedDocument()
    func next(isReannouncement: Bool = false) -> DiscoveryDocument {
      let document = discovery.document(
        of: device, topics: topics(device), before: before, isReannouncement: isReannouncement,
        removed: published.removed)
      before = document.announced
      published.replace(by: document)
      return document
    }
    // Again on each connection, as Home Assistant may have missed it.
    for _ in 0..<2 {
      for platform in [Platform.select, .switch] {
        let removal = next()
        try expect(object(removal, "cmps")["period"], #"{ "p": "\#(platform.rawValue)" }"#)
        #expect(removal.replaced == [period(platform)])
        #expect(try object(removal, "cmps").names.count == present.completed.components.count)
      }
      for _ in 0..<2 {
        let last = next()
        #expect(try object(last, "cmps") == object(present, "cmps"))
        #expect(last.replaced == [])
        #expect(Set(last.announced.components) == Set(present.announced.components + earlier.components))
        #expect(last.completed == present.completed)
      }
      published.expire()
    }
  }

  /// As often as it changes, with no new connection between.
  @Test func entityThatChangesItsPlatformThereAndBackIsRemovedEachTime() throws {
    let platforms: [Platform] = [.number, .select, .number, .select]
    var before: Announced?
    var published = PublishedDocument()
    for (index, platform) in platforms.enumerated() {
      for isSecond in index == 0 ? [true] : [false, true] {
        let document = DiscoveryDocument(
          object: "ble_a", prefix: "ha", device: [:], availability: [], qos: .atLeastOnce,
          components: [DiscoveryComponent(key: "period", platform: platform, members: [:])], before: before,
          removed: published.removed)
        before = document.announced
        published.replace(by: document)
        let found = try object(document, "cmps")["period"]?["p"]?.text
        #expect(found == (isSecond ? platform : platforms[index - 1]).rawValue, "\(index) \(isSecond)")
      }
    }
  }

  /// At Home Assistant's start, the earlier one is announced once more, in place of the one that exists, and removed.
  @Test func entityOfAnEarlierPlatformIsReannouncedAndThenRemoved() throws {
    let present = self.document(device)
    let earlier = Announced(
      prefix: "homeassistant",
      components: present.announced.components + [Announced.Component(key: "period", platform: .select)])
    func document(isReannouncement: Bool, removed: Set<Announced.Component>) -> DiscoveryDocument {
      discovery.document(
        of: device, topics: topics(device), before: earlier, isReannouncement: isReannouncement,
        removed: removed)
    }
    let select = Announced.Component(key: "period", platform: .select)
    let reannouncement = document(isReannouncement: true, removed: [select])
    let entity = try object(reannouncement, "cmps")["period"]
    #expect(entity?["p"] == "select")
    #expect(entity?["uniq_id"] == "ble_c5a1b2c3d4e5_period")
    #expect(entity?["avty"] == [["t": "homeassistant/device/ble_c5a1b2c3d4e5/removed"]])
    #expect(reannouncement.announced == earlier)
    #expect(reannouncement.completed == present.completed)
    var published = PublishedDocument()
    published.reannounce()
    let removal = document(isReannouncement: false, removed: published.removed)
    try expect(object(removal, "cmps")["period"], #"{ "p": "select" }"#)
    published.replace(by: removal)
    let last = document(isReannouncement: false, removed: published.removed)
    #expect(last.payload == present.payload)
    #expect(last.completed == present.completed)
  }

  /// Home Assistant removes only what it knows: after its start both are announced once more, then one is removed.
  @Test func removedComponentIsReannouncedAndThenRemoved() throws {
    let before = document(device)
    let earlier = Announced(
      prefix: before.announced.prefix,
      components: before.announced.components + [Announced.Component(key: "valve", platform: .number)])
    let topics = topics(device)
    let reannouncement = discovery.document(
      of: device, topics: topics, before: earlier, isReannouncement: true)
    try expect(
      try object(reannouncement, "cmps")["valve"],
      """
      { "p": "number", "uniq_id": "ble_c5a1b2c3d4e5_valve", "qos": 1,
        "cmd_t": "homeassistant/device/ble_c5a1b2c3d4e5/removed",
        "stat_t": "homeassistant/device/ble_c5a1b2c3d4e5/removed",
        "min": -2147483648, "max": 2147483647,
        "avty": [{ "t": "homeassistant/device/ble_c5a1b2c3d4e5/removed" }] }
      """)
    #expect(reannouncement.announced == earlier)
    #expect(reannouncement.completed == before.announced)
    #expect(document(device, before: earlier).completed == before.announced)
    // Without removed components, a reannouncement is the same as any announcement.
    let same = discovery.document(
      of: device, topics: topics, before: before.announced, isReannouncement: true)
    #expect(same == document(device, before: before.announced))
    #expect(same.announced == same.completed)
  }

  /// Home Assistant creates a gateway that it does not know yet without an area: the retained document does not refer to it.
  @Test func linkConnectsTheDeviceWithTheGateway() throws {
    let link = discovery.link(of: device, topics: topics(device))
    let document = document(device)
    #expect(link.topic == document.topic)
    let (whole, dev, cmps) = try (object(document), object(document, "dev"), object(document, "cmps"))
    let json: JSONValue = [
      "dev": JSONValue.object(dev).setting("via_device", to: "ble_gateway_attic"),
      "o": whole["o"], "avty_mode": "all",
      "cmps": ["connectivity": cmps["connectivity"]],
    ]
    #expect(try JSONValue.object(object(link)) == json)
    #expect(dev["via_device"] == nil)
    // Not another gateway's announcement.
    #expect(discovery.origin(of: link.payload).gateways == [])
  }

  @Test func documentOfAnotherGatewayIsRecognised() throws {
    func document(by gateway: String, base: String = "microbit") -> [UInt8] {
      let map = TopicMap(base: base, gateway: GatewayID(hostName: gateway))
      return Discovery(prefix: "homeassistant", qos: .atLeastOnce, topics: map)
        .document(of: device, topics: map.topics(of: device.id, device.profile)).payload
    }
    #expect(discovery.origin(of: document(by: "cellar")).gateways == [GatewayID("cellar")!])
    #expect(discovery.origin(of: document(by: "attic")).gateways == [GatewayID("attic")!])
    #expect(discovery.origin(of: document(by: "cellar", base: "elsewhere")).gateways == [])
    #expect(discovery.origin(of: document(by: "attic", base: "else/where")).otherBase == "else/where")
    #expect(discovery.origin(of: document(by: "cellar")).otherBase == nil)
    let removal = Removal(object: "ble_c5a1b2c3d4e5", announced: self.document(device).announced)
    #expect(discovery.origin(of: removal.reannouncement(qos: .atLeastOnce).payload).gateways == [])
    for text in ["", "{", "[]", "{}", #"{"avty":1}"#, #"{"avty":[1,{},{"t":1},{"t":""}]}"#] {
      #expect(discovery.origin(of: Array(text.utf8)).gateways == [], "\(text)")
      #expect(discovery.origin(of: Array(text.utf8)).otherBase == nil, "\(text)")
    }
  }

  /// There the whole topic is cleared.
  @Test func componentsUnderAnotherPrefixAreNotRemovedHere() {
    let earlier = Announced(
      prefix: "other", components: [Announced.Component(key: "humidity", platform: .sensor)])
    #expect(document(device, before: earlier) == document(device))
  }

  // MARK: Topics

  @Test func topicIdentifiesItsDeviceOrGateway() throws {
    let subject = Discovery.Subject.device(device.address)
    #expect(discovery.topic(of: subject) == document(device).topic)
    #expect(discovery.subject(of: "homeassistant/device/ble_c5a1b2c3d4e5/config") == subject)
    #expect(discovery.subject(of: "homeassistant/device/ble_gateway_attic/config") == .gateway)
    #expect(discovery.status.string == "homeassistant/status")
  }

  @Test(arguments: [
    "", "config", "homeassistant/device/ble_C5A1B2C3D4E5/config",
    "homeassistant/device/ble_c5a1b2c3d4e/config",
    "homeassistant/device/ble_c5a1b2c3d4e5f/config", "homeassistant/device/c5a1b2c3d4e5/config",
    "homeassistant/device/ble_c5a1b2c3d4e5/config/x", "homeassistant/device/ble_c5a1b2c3d4e5",
    "homeassistant/sensor/ble_c5a1b2c3d4e5/config",
    "homeassistant/device/x/ble_c5a1b2c3d4e5/config",
    "homeassistant2/device/ble_c5a1b2c3d4e5/config",
    "homeassistant/device/ble_gateway_cellar/config", "homeassistant/status", "microbit/kitchen/info",
  ])
  func otherTopicsIdentifyNothing(topic: String) {
    #expect(discovery.subject(of: topic) == nil)
  }
}
