import GATT
import JSON
import TestSupport
import Testing

@testable import Configuration

@Suite struct ConfigurationTests {
  func parse(_ text: String) throws -> Configuration { try Configuration.parse(Array(text.utf8)).get() }

  @Test(arguments: [
    (#"{"bluetooth":{"adapters":["hci1","hci0"]}}"#, ["hci1", "hci0"]), (#"{"bluetooth":{}}"#, ["hci0"]),
    (#"{"bluetooth":{"adapter":"hci2"}}"#, ["hci2"]),
  ])
  func adaptersAreGivenAsAListOrAsOne(text: String, adapters: [String]) throws {
    let configuration = try Configuration.parse(Array(text.utf8)).get()
    #expect(configuration.bluetooth.adapters == adapters)
    // Round trip through JSON.
    let again = try Configuration.parse(configuration.json.bytes).get()
    #expect(again == configuration)
  }

  @Test func everyKeyHasADefault() throws {
    let configuration = try parse("{}")
    #expect(configuration == Configuration())
    #expect(try parse(#"{"gateway":{},"bluetooth":{},"mqtt":{},"home_assistant":{}}"#) == configuration)
    #expect(configuration.devices == [Configuration.Device()])
    #expect(configuration.devices.first?.match == .namePrefix("BBC micro:bit"))
    #expect(try parse(#"{"devices":[]}"#).devices.isEmpty)
    #expect(try parse(#"{"devices":[{}]}"#) == configuration)
  }

  @Test func readsEveryKey() throws {
    let configuration = try parse(
      """
      { "$schema": "x", "gateway": { "id": "living-room", "area": "Living room" },
        "bluetooth": { "adapter": "hci12" },
        "mqtt": { "host": "10.0.0.1", "port": 8883, "protocol": "3.1.1", "username": "u", "password_file": "p",
          "base_topic": "home/microbit", "qos": 0, "readings": false,
          "tls": { "ca_file": "ca", "cert_file": "cert", "key_file": "key", "alpn": "mqtt" } },
        "home_assistant": { "discovery": false, "prefix": "ha/x" },
        "devices": [
          { "match": { "identifier": "c5:a1:b2:c3:d4:e5" }, "id": "kitchen", "name": "Küche", "area": "Kitchen",
            "period": 5000, "enabled": false, "gateway": "attic", "connect": "on_demand",
            "every": 900 },
          { "match": { "name_prefix": "BBC" } } ] }
      """)
    var expected = Configuration()
    expected.gateway.id = GatewayID("living-room")
    expected.gateway.area = "Living room"
    expected.bluetooth.adapter = "hci12"
    expected.mqtt.host = "10.0.0.1"
    expected.mqtt.port = 8883
    expected.mqtt.protocolVersion = .v311
    expected.mqtt.username = "u"
    expected.mqtt.passwordFile = "p"
    expected.mqtt.baseTopic = "home/microbit"
    expected.mqtt.qos = 0
    expected.mqtt.readings = false
    var tls = Configuration.TLS()
    tls.caFile = "ca"
    tls.certFile = "cert"
    tls.keyFile = "key"
    tls.alpn = "mqtt"
    expected.mqtt.tls = tls
    expected.homeAssistant.discovery = false
    expected.homeAssistant.prefix = "ha/x"
    expected.devices = [
      Configuration.Device(
        match: .identifier(BluetoothAddress(truncating: 0xC5A1_B2C3_D4E5)), id: try DeviceID("kitchen")),
      Configuration.Device(match: .namePrefix("BBC")),
    ]
    expected.devices[0].name = "Küche"
    expected.devices[0].area = "Kitchen"
    expected.devices[0].period = 5000
    expected.devices[0].isEnabled = false
    expected.devices[0].gateway = GatewayID("attic")
    expected.devices[0].connect = .onDemand
    expected.devices[0].every = 900
    #expect(configuration == expected)
  }

  @Test func writtenConfigurationIsReadBackUnchanged() throws {
    let text =
      #"{"gateway":{"id":"g"},"mqtt":{"port":1,"protocol":"3.1.1","tls":{}},"devices":[{"match":"#
      + #"{"identifier":"00:00:00:00:00:01"},"id":"a","period":20}]}"#
    let configuration = try parse(text)
    #expect(try Configuration.parse(configuration.json.bytes).get() == configuration)
  }

  @Test(arguments: [
    "localhost", "broker.example", "10.0.0.1", "::1", "2001:db8::1", "fe80::1%eth0", "::ffff:10.0.0.1", "a_b",
  ])
  func acceptsHostNamesAndAddresses(host: String) throws {
    #expect(try parse("{\"mqtt\":{\"host\":\"\(host)\"}}").mqtt.host == host)
  }

  @Test(arguments: [
    (["one", "two:8883"], [("one", 1884), ("two", 8883)]),
    (
      ["10.0.0.1:1", "::1", "[fe80::1%eth0]:65535"],
      [("10.0.0.1", 1), ("::1", 1884), ("fe80::1%eth0", 65535)]
    ),
  ])
  func acceptsSeveralBrokers(hosts: [String], brokers: [(host: String, port: Int)]) throws {
    let json: JSONValue = ["mqtt": ["port": .integer(1884), "hosts": .array(hosts.map(JSONValue.string))]]
    let mqtt = try parse(String(decoding: json.bytes, as: UTF8.self)).mqtt
    #expect(mqtt.brokers.elementsEqual(brokers, by: ==))
    #expect(mqtt.hosts?.map(\.description) == hosts)
    #expect(Configuration.MQTT.keys.first { $0.name == "host" }?.write(mqtt) == nil)
  }

  @Test func emptyDeviceListHasAWarning() throws {
    #expect(
      try parse(#"{"devices":[]}"#).warnings().map(\.description) == [
        "devices: the list is empty: no micro:bit is connected unless a request adds it "
          + "(leave the key out to connect to every micro:bit in range)"
      ])
    #expect(try parse("{}").warnings() == [])
  }

  /// A peripheral that is connected now and then is not there when an event happens.
  @Test(arguments: [
    (#""profile":"p""#, "rx, key"), (#""profile":"p","properties":["rx","level"]"#, "rx"),
    (#""profile":"p","exclude":["rx","key"]"#, ""), (#""properties":["auto"]"#, ""),
    (#""properties":["auto","button_a"]"#, "button_a"), (#""properties":["temperature"]"#, ""),
  ])
  func eventsOnDemandAreWarnedAbout(keys: String, events: String) throws {
    func property(_ name: String, _ number: Int, _ keys: String) -> String {
      #""\#(name)":{"service":"1111","characteristic":"222\#(number)",\#(keys),"type":"uint8"}"#
    }
    let event = #""access":["notify"],"kind":"event""#
    let properties = [
      property("rx", 1, event), property("key", 2, event), property("level", 3, #""access":["notify"]"#),
      property("tx", 4, #""access":["write"],"kind":"event""#),
    ].joined(separator: ",")
    func warnings(_ connect: String) throws -> [String] {
      let profiles = #""profiles":{"p":{"properties":{\#(properties)}}}"#
      let entry = #"{"match":{"name":"x"},"connect":"\#(connect)",\#(keys)}"#
      return try parse("{\(profiles),\"devices\":[\(entry)]}").warnings().map(\.description)
    }
    let text =
      "devices[0].connect: on demand, events are not received: \(events) (leave the key out to receive them)"
    #expect(try warnings("on_demand") == (events.isEmpty ? [] : [text]))
    #expect(try warnings("always") == [])
  }

  @Test func firstMatchingEntryIsUsed() throws {
    let one = BluetoothAddress(truncating: 1)
    let configuration = try parse(
      #"{"devices":[{"match":{"identifier":"00:00:00:00:00:01"},"id":"one"},{"match":{"name_prefix":"BBC"}}]}"#
    )
    #expect(configuration.device(matching: one, Advertisement())?.id?.description == "one")
    #expect(configuration.device(matching: one, Advertisement(name: "BBC"))?.id?.description == "one")
    let other = BluetoothAddress(truncating: 2)
    #expect(
      configuration.device(matching: other, Advertisement(name: "BBC micro:bit")) == configuration.devices[1])
    #expect(configuration.device(matching: other, Advertisement(name: "bbc")) == nil)
    #expect(configuration.device(matching: other, Advertisement()) == nil)
  }
}
