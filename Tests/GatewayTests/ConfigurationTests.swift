import GATT
import Testing

@testable import Gateway

@Suite struct ConfigurationTests {
  func parse(_ text: String) throws -> Configuration { try Configuration.parse(Array(text.utf8)).get() }
  func errors(_ text: String) -> [String] {
    if case .failure(let failure) = Configuration.parse(Array(text.utf8)) {
      failure.errors.map(\.description)
    } else {
      []
    }
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
          "tls": { "ca_file": "ca", "cert_file": "cert", "key_file": "key" } },
        "home_assistant": { "discovery": false, "prefix": "ha/x" },
        "devices": [
          { "match": { "identifier": "c5:a1:b2:c3:d4:e5" }, "id": "kitchen", "name": "Küche", "area": "Kitchen",
            "period": 5000, "enabled": false, "gateway": "attic" },
          { "match": { "name_prefix": "BBC" } } ] }
      """)
    var expected = Configuration()
    expected.gateway = Configuration.Gateway(id: GatewayID("living-room"), area: "Living room")
    expected.bluetooth.adapter = "hci12"
    expected.mqtt = Configuration.MQTT(
      host: "10.0.0.1", port: 8883, protocolVersion: .v311, username: "u", passwordFile: "p", password: nil,
      baseTopic: "home/microbit", qos: 0, readings: false,
      tls: Configuration.TLS(caFile: "ca", certFile: "cert", keyFile: "key"))
    expected.homeAssistant = Configuration.HomeAssistant(discovery: false, prefix: "ha/x")
    expected.devices = [
      Configuration.Device(
        match: .identifier(BluetoothAddress(truncating: 0xC5A1_B2C3_D4E5)), id: try DeviceID("kitchen"),
        name: "Küche", area: "Kitchen", period: 5000, isEnabled: false, gateway: GatewayID("attic")),
      Configuration.Device(match: .namePrefix("BBC")),
    ]
    #expect(configuration == expected)
  }

  @Test func whatIsWrittenIsReadAgain() throws {
    let text =
      #"{"gateway":{"id":"g"},"mqtt":{"port":1,"protocol":"3.1.1","tls":{}},"devices":[{"match":"#
      + #"{"identifier":"00:00:00:00:00:01"},"id":"a","period":1}]}"#
    let configuration = try parse(text)
    let json = try #require(configuration.json)
    #expect(try Configuration.parse(json.bytes).get() == configuration)
  }

  @Test(arguments: [
    // Unknown keys.
    (#"{"mqtt":{"prot":1}}"#, "mqtt.prot: unknown key (did you mean port?)"),
    (#"{"mqqt":{}}"#, "mqqt: unknown key (did you mean mqtt?)"),
    (#"{"devices":[{"matches":{}}]}"#, "devices[0].matches: unknown key (did you mean match?)"),
    (#"{"mqtt":{"password":"x"}}"#, "mqtt.password: unknown key (did you mean password_file?)"),
    (
      #"{"gateway":{"zzzzzzzz":1}}"#, "gateway.zzzzzzzz: unknown key (known here: id, area)"
    ),
    (#"{"gateway":{"a b":1}}"#, #"gateway."a b": unknown key (known here: id, area)"#),
    (#"{"gateway":{"":1}}"#, #"gateway."": unknown key (did you mean id?)"#),
    (#"{"gateway":{"$schema":"x"}}"#, "gateway.$schema: unknown key (known here: id, area)"),
    // Wrong types.
    ("[]", "expected an object, found a list"),
    ("7", "expected an object, found a number"),
    (#"{"mqtt":null}"#, "mqtt: expected an object, found null"),
    (#"{"mqtt":{"tls":true}}"#, "mqtt.tls: expected an object, found true"),
    (#"{"mqtt":{"port":true}}"#, "mqtt.port: expected a whole number, 1…65535, found true"),
    (#"{"mqtt":{"port":"1883"}}"#, "mqtt.port: expected a number, found a string (write it without quotes)"),
    (#"{"mqtt":{"port":1883.5}}"#, "mqtt.port: 1883.5 is not a whole number, 1…65535"),
    (#"{"mqtt":{"readings":"yes"}}"#, "mqtt.readings: expected true or false, found a string"),
    (#"{"mqtt":{"readings":1}}"#, "mqtt.readings: expected true or false, found a number"),
    (#"{"mqtt":{"host":[]}}"#, "mqtt.host: expected a string, found a list"),
    (#"{"devices":{}}"#, "devices: expected a list, found an object"),
    (#"{"devices":["x"]}"#, "devices[0]: expected an object, found a string"),
    (#"{"$schema":1}"#, "$schema: expected a string, found a number"),
    // Impossible values.
    (#"{"mqtt":{"port":0}}"#, "mqtt.port: 0 is below 1"),
    (#"{"mqtt":{"port":65536}}"#, "mqtt.port: 65536 is above 65535"),
    (#"{"mqtt":{"qos":2}}"#, "mqtt.qos: 2 is above 1"),
    (#"{"mqtt":{"qos":-1}}"#, "mqtt.qos: -1 is below 0"),
    (#"{"mqtt":{"protocol":"4"}}"#, #"mqtt.protocol: expected "5" or "3.1.1", found "4""#),
    (
      #"{"mqtt":{"protocol":5}}"#,
      #"mqtt.protocol: expected "5" or "3.1.1", found a number (write it in quotes)"#
    ),
    (#"{"mqtt":{"host":""}}"#, "mqtt.host: this is empty (leave the key out instead)"),
    (
      #"{"mqtt":{"host":"mqtt://x"}}"#,
      #"mqtt.host: "mqtt://x" is no host name (the name alone: no mqtt:// before and no path behind it)"#
    ),
    (#"{"mqtt":{"host":"a b"}}"#, #"mqtt.host: "a b" is no host name (no white space)"#),
    (#"{"mqtt":{"base_topic":"a/+/b"}}"#, #"mqtt.base_topic: "a/+/b" holds a wildcard, + or #"#),
    (#"{"mqtt":{"base_topic":"a#"}}"#, ##"mqtt.base_topic: "a#" holds a wildcard, + or #"##),
    (
      #"{"mqtt":{"base_topic":"/a"}}"#,
      #"mqtt.base_topic: "/a" has an empty level (no / at the ends, no two in a row)"#
    ),
    (
      #"{"mqtt":{"base_topic":"a//b"}}"#,
      #"mqtt.base_topic: "a//b" has an empty level (no / at the ends, no two in a row)"#
    ),
    (
      #"{"mqtt":{"base_topic":"a/"}}"#,
      #"mqtt.base_topic: "a/" has an empty level (no / at the ends, no two in a row)"#
    ),
    (
      #"{"mqtt":{"base_topic":"$SYS"}}"#,
      #"mqtt.base_topic: "$SYS" begins with $, which brokers keep for themselves"#
    ),
    (#"{"mqtt":{"base_topic":"a\u0000b"}}"#, #"mqtt.base_topic: "a·b" holds a control character"#),
    (
      #"{"mqtt":{"base_topic":"a\uFFFE"}}"#,
      "mqtt.base_topic: \"a\u{FFFE}\" holds a character that brokers refuse"
    ),
    (#"{"mqtt":{"base_topic":""}}"#, "mqtt.base_topic: this is empty (leave the key out instead)"),
    (##"{"home_assistant":{"prefix":"#"}}"##, ##"home_assistant.prefix: "#" holds a wildcard, + or #"##),
    (#"{"bluetooth":{"adapter":"hci"}}"#, #"bluetooth.adapter: "hci" is no adapter (like hci0)"#),
    (#"{"bluetooth":{"adapter":"usb0"}}"#, #"bluetooth.adapter: "usb0" is no adapter (like hci0)"#),
    (
      #"{"gateway":{"id":"Living room"}}"#,
      #"gateway.id: "Living room" is no id (lower-case letters a-z, digits, - and _)"#
    ),
    (#"{"devices":[{"period":0}]}"#, "devices[0].period: 0 is below 1"),
    (#"{"devices":[{"period":65536}]}"#, "devices[0].period: 65536 is above 65535"),
    (
      #"{"devices":[{"id":"bridge"}]}"#, #"devices[0].id: "bridge" is a word that topics use themselves"#
    ),
    (
      #"{"devices":[{},{"match":{"name_prefix":"x"},"id":"K"}]}"#,
      #"devices[1].id: "K" is no id (lower-case letters a-z, digits, - and _)"#
    ),
    (
      #"{"devices":[{"match":{"identifier":"C5:A1"}}]}"#,
      #"devices[0].match.identifier: "C5:A1" is no Bluetooth address (like C5:A1:B2:C3:D4:E5)"#
    ),
    (
      #"{"devices":[{"match":{"name_prefix":""}}]}"#,
      "devices[0].match.name_prefix: this is empty (leave the key out instead)"
    ),
    (#"{"devices":[{"match":{}}]}"#, "devices[0].match: this is empty (give identifier or name_prefix)"),
    (
      #"{"devices":[{"match":{"identifier":"C5:A1:B2:C3:D4:E5","name_prefix":"x"}}]}"#,
      "devices[0].match: identifier and name_prefix together (give one of them)"
    ),
    // What does not go together.
    (
      #"{"mqtt":{"tls":{"cert_file":"x"}}}"#,
      "mqtt.tls.cert_file: a certificate without its key (give key_file too)"
    ),
    (
      #"{"mqtt":{"tls":{"key_file":"x"}}}"#,
      "mqtt.tls.key_file: a key without its certificate (give cert_file too)"
    ),
    (
      #"{"mqtt":{"password_file":"x"}}"#,
      "mqtt.password_file: a password without a user name (give username too)"
    ),
    (
      #"{"devices":[{"match":{"name_prefix":"a"},"id":"x"},{"match":{"name_prefix":"b"},"id":"x"}]}"#,
      "devices[1].id: devices[0] is called x already"
    ),
    (
      #"{"devices":[{"match":{"identifier":"00:00:00:00:00:0A"}},{"match":{"identifier":"00:00:00:00:00:0a"}}]}"#,
      "devices[1].match.identifier: devices[0] matches the same already"
    ),
    (
      #"{"devices":[{"match":{"identifier":"00:00:00:00:00:0A"}},{"id":"00000000000a"}]}"#,
      "devices[1].id: devices[0] is called 00000000000a already"
    ),
    // No JSON.
    ("", "line 1, column 1: the text is empty"),
    (#"{"mqtt": {"#, "line 1, column 11: expected a key in double quotes, found the end"),
    (
      "{\n  \"mqtt\": { \"port\": 1883 },\n}",
      "line 3, column 1: expected a key in double quotes, found \"}\""
    ),
    (#"{"mqtt":{},"mqtt":{}}"#, #"line 1, column 12: the key "mqtt" stands here for the second time"#),
  ])
  func saysWhereAndWhy(text: String, expected: String) {
    #expect(errors(text) == [expected])
  }

  @Test func saysWhereItIsNotUTF8() {
    let result = Configuration.parse([0x7B, 0xFF, 0x7D])
    let expected = ConfigurationError(path: "", problem: "line 1, column 2: this is not UTF-8")
    #expect(result == .failure(ConfigurationErrors(errors: [expected])))
  }

  @Test func tellsAllErrorsInTheirOrder() {
    let text = #"""
      { "mqtt": { "port": 0, "hots": "x", "qos": 7 },
        "devices": [ { "id": "kitchen" }, { "match": { "name_prefix": "a" }, "id": "kitchen", "period": -1 } ],
        "nope": 1 }
      """#
    #expect(
      errors(text) == [
        "mqtt.port: 0 is below 1", "mqtt.hots: unknown key (did you mean host?)", "mqtt.qos: 7 is above 1",
        "devices[1].period: -1 is below 1", "devices[1].id: devices[0] is called kitchen already",
        "nope: unknown key (known here: $schema, gateway, bluetooth, mqtt, home_assistant, devices)",
      ])
  }

  @Test func limitsLengths() {
    let long = String(repeating: "x", count: 129)
    #expect(
      errors("{\"gateway\":{\"area\":\"\(long)\"}}") == ["gateway.area: this is longer than 128 characters"])
  }

  @Test func errorsHoldNothingThatSteersATerminal() {
    for text in [
      #"{"\u001b[2J":1}"#, #"{"gateway":{"id":"\u001b"}}"#, #"{"gateway":{"area":"\u001b"}}"#, "{\"\u{1B}",
      #"{"mqtt":{"protocol":"\u001b"}}"#, "\u{1B}",
    ] {
      let lines = errors(text)
      #expect(lines.count == 1)
      #expect(!lines.joined().unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x7F }, "\(text)")
    }
  }

  @Test func warnsOfEntriesThatCannotBeReached() throws {
    func warnings(_ text: String) throws -> [String] { try parse(text).warnings.map(\.description) }
    #expect(
      try warnings(
        #"{"devices":[{"match":{"identifier":"00:00:00:00:00:01"}},{"match":{"name_prefix":"BBC"}}]}"#) == [])
    #expect(
      try warnings(
        #"{"devices":[{"match":{"name_prefix":"BBC"}},{"match":{"identifier":"00:00:00:00:00:01"}}]}"#)
        == ["devices[1]: stands behind devices[0], whose name_prefix may match it first (put it before)"])
    #expect(
      try warnings(#"{"devices":[{"match":{"name_prefix":"BBC"}},{"match":{"name_prefix":"BBC micro"}}]}"#)
        == ["devices[1]: never matches: devices[0] comes first and matches all of it"])
    #expect(
      try warnings(#"{"devices":[{"match":{"name_prefix":"BBC micro"}},{"match":{"name_prefix":"BBC"}}]}"#)
        == [])
  }

  @Test func theFirstEntryThatMatchesIsTaken() throws {
    let one = BluetoothAddress(truncating: 1)
    let configuration = try parse(
      #"{"devices":[{"match":{"identifier":"00:00:00:00:00:01"},"id":"one"},{"match":{"name_prefix":"BBC"}}]}"#
    )
    #expect(configuration.device(matching: one, name: nil)?.id?.description == "one")
    #expect(configuration.device(matching: one, name: "BBC")?.id?.description == "one")
    let other = BluetoothAddress(truncating: 2)
    #expect(configuration.device(matching: other, name: "BBC micro:bit") == configuration.devices[1])
    #expect(configuration.device(matching: other, name: "bbc") == nil)
    #expect(configuration.device(matching: other, name: nil) == nil)
  }
}
