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

  func topics(_ device: DeviceDescription) -> DeviceTopics {
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
    device.namedValues = [
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
