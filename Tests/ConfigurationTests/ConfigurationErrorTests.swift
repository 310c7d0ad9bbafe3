import TestSupport
import Testing

@testable import Configuration
@testable import JSON

@Suite struct ConfigurationErrorTests {
  static let oneOf =
    "give at least one of identifier, radio, name, name_prefix, name_contains, service, manufacturer"

  func errors(_ text: String) -> [String] {
    if case .failure(let failure) = Configuration.parse(Array(text.utf8)) {
      failure.errors.map(\.description)
    } else {
      []
    }
  }

  private static let mistakes: [(String, String)] = [
    // Unknown keys.
    (#"{"mqtt":{"prot":1}}"#, "mqtt.prot: unknown key (did you mean port?)"),
    (#"{"mqqt":{}}"#, "mqqt: unknown key (did you mean mqtt?)"),
    (#"{"devices":[{"matches":{}}]}"#, "devices[0].matches: unknown key (did you mean match?)"),
    (#"{"mqtt":{"password":"x"}}"#, "mqtt.password: unknown key (did you mean password_file?)"),
    (
      #"{"gateway":{"zzzzzzzz":1}}"#, "gateway.zzzzzzzz: unknown key (known keys: id, area)"
    ),
    (
      #"{"nope":1}"#,
      "nope: unknown key (known keys: $schema, gateway, bluetooth, mqtt, spool, home_assistant, http, radio, "
        + "devices, profiles, profiles_directory, fleet)"
    ),
    (
      #"{"devices":[{"match":{"name":"x"},"profile":"radio"}]}"#,
      #"devices[0].profile: only what is heard by radio has this profile (match it by its letters: {"radio": "zotut"})"#
    ),
    (
      #"{"devices":[{"match":{"radio":"zotut"},"profile":"microbit"}]}"#,
      "devices[0].profile: what is heard by radio has the profile radio (leave the key out)"
    ),
    (
      #"{"devices":[{"profile":"microbit","match":{"radio":"zotut"}}]}"#,
      "devices[0].profile: what is heard by radio has the profile radio (leave the key out)"
    ),
    (#"{"gateway":{"a b":1}}"#, #"gateway."a b": unknown key (known keys: id, area)"#),
    (#"{"gateway":{"":1}}"#, #"gateway."": unknown key (did you mean id?)"#),
    (#"{"gateway":{"$schema":"x"}}"#, "gateway.$schema: unknown key (known keys: id, area)"),
    // Wrong types.
    ("[]", "expected an object, found a list"),
    (#"{"mqtt":null}"#, "mqtt: expected an object, found null"),
    (#"{"mqtt":{"tls":true}}"#, "mqtt.tls: expected an object, found true"),
    (#"{"mqtt":{"port":true}}"#, "mqtt.port: expected a whole number, 1…65535, found true"),
    (#"{"mqtt":{"port":"1883"}}"#, "mqtt.port: expected a number, found a string (write it without quotes)"),
    (#"{"mqtt":{"port":1883.5}}"#, "mqtt.port: 1883.5 is not a whole number, 1…65535"),
    (#"{"mqtt":{"readings":"yes"}}"#, "mqtt.readings: expected true or false, found a string"),
    (#"{"mqtt":{"host":[]}}"#, "mqtt.host: expected a string, found a list"),
    (#"{"devices":{}}"#, "devices: expected a list, found an object"),
    (#"{"devices":["x"]}"#, "devices[0]: expected an object, found a string"),
    (#"{"$schema":1}"#, "$schema: expected a string, found a number"),
    // What the program names itself.
    (
      #"{"devices":[{"values":true}]}"#,
      "devices[0].values: expected false or an object, found true (leave the key out instead)"
    ),
    (
      #"{"devices":[{"values":{"Soil":{}}}]}"#,
      "devices[0].values.Soil: not a valid name (as in topics: letters in lower case, digits and _, at most 32)"
    ),
    (
      #"{"devices":[{"values":{"a":{"unti":"%"}}}]}"#,
      "devices[0].values.a.unti: unknown key (did you mean unit?)"
    ),
    (
      #"{"devices":[{"values":{"a":{"columns":["x","1"]}}}]}"#,
      #"devices[0].values.a.columns: "1" is not a name (it begins with a letter; null leaves a column out)"#
    ),
    (#"{"devices":[{"values":{"a":1}}]}"#, "devices[0].values.a: expected an object, found a number"),
    // What becomes of values.
    (
      #"{"devices":[{"adjust":{"temprature":{"offset":1}}}]}"#,
      "devices[0].adjust.temprature: the profile microbit has no property \"temprature\" (did you mean temperature?)"
    ),
    (
      #"{"devices":[{"adjust":{"temperature":{"offset":"-4.5"}}}]}"#,
      "devices[0].adjust.temperature.offset: expected a number, found a string (write it without quotes)"
    ),
    (
      #"{"devices":[{"match":{"name":"x"},"adjust":{"temperature":{"offset":true}}}]}"#,
      "devices[0].adjust.temperature.offset: expected a number, -1000000000…1000000000, found true"
    ),
    (
      #"{"devices":[{"adjust":{"temperature":{"offset":1e10}}}]}"#,
      "devices[0].adjust.temperature.offset: 10000000000 is above 1000000000"
    ),
    (
      #"{"devices":[{"adjust":{"temperature":{"ofset":1}}}]}"#,
      "devices[0].adjust.temperature.ofset: unknown key (did you mean offset?)"
    ),
    (
      #"{"devices":[{"adjust":{"temperature":-4.5}}]}"#,
      "devices[0].adjust.temperature: expected an object, found a number"
    ),
    (
      #"{"devices":[{"key":"231d39c1d7cc1ab1aee224cd096db93"}]}"#,
      "devices[0].key: a key has 32 hexadecimal digits"
    ),
    (
      #"{"devices":[{"key":"231d39c1d7cc1ab1aee224cd096db932","key_file":"x"}]}"#,
      "devices[0].key_file: key and key_file must not be combined (give one of them)"
    ),
    (
      #"{"devices":[{"profile":"bthome","adjust":{"button_2":{"offset":1}}}]}"#,
      "devices[0].adjust.button_2.offset: button_2 is no single number: it has no offset"
    ),
    (
      #"{"devices":[{"profile":"bthome","properties":["temperature_0"]}]}"#,
      "devices[0].properties: the profile bthome has no property \"temperature_0\" (did you mean temperature?)"
    ),
    (
      #"{"devices":[{"adjust":{"period":{"offset":1}}}]}"#,
      "devices[0].adjust.period.offset: period can be set: it has no offset"
    ),
    (
      #"{"devices":[{"adjust":{"accelerometer":{"offset":1}}}]}"#,
      "devices[0].adjust.accelerometer.offset: accelerometer is no single number: it has no offset"
    ),
    (
      #"{"devices":[{"adjust":{"button_a":{"report":{"change":1}}}}]}"#,
      "devices[0].adjust.button_a.report: button_a is an event: each is published"
    ),
    (
      #"{"devices":[{"adjust":{"temperature":{"report":{"min_interval":-1}}}}]}"#,
      "devices[0].adjust.temperature.report.min_interval: -1 is below 0"
    ),
    // Keys that need or exclude each other.
    (
      #"{"mqtt":{"tls":{"cert_file":"x"}}}"#,
      "mqtt.tls.cert_file: a certificate needs its key (add key_file)"
    ),
    (
      #"{"mqtt":{"tls":{"key_file":"x"}}}"#,
      "mqtt.tls.key_file: a key needs its certificate (add cert_file)"
    ),
    (
      #"{"mqtt":{"password_file":"x"}}"#,
      "mqtt.password_file: a password needs a user name (add username)"
    ),
    (
      #"{"devices":[{"match":{"name_prefix":"a"},"id":"x"},{"match":{"name_prefix":"b"},"id":"x"}]}"#,
      "devices[1].id: devices[0] already has the id x"
    ),
    (
      #"{"devices":[{"match":{"identifier":"00:00:00:00:00:0A"}},{"match":{"identifier":"00:00:00:00:00:0a"}}]}"#,
      "devices[1].match.identifier: devices[0] already matches this"
    ),
    (
      #"{"devices":[{"match":{"identifier":"00:00:00:00:00:0A"}},{"id":"00000000000a"}]}"#,
      "devices[1].id: devices[0] already has the id 00000000000a"
    ),
    (
      #"{"devices":[{"connect":"sometimes"}]}"#,
      #"devices[0].connect: expected "always" or "on_demand", found "sometimes""#
    ),
    (#"{"devices":[{"connect":"on_demand","every":4}]}"#, "devices[0].every: 4 is below 5"),
    // What has no effect with the profile.
    (
      #"{"devices":[{"match":{"service":"fcd2"},"profile":"bthome","connect":"on_demand"}]}"#,
      "devices[0].connect: a device of the profile bthome is only heard, never connected (remove it)"
    ),
    (
      #"{"devices":[{"offline_after":60}]}"#,
      "devices[0].offline_after: only a device that is only heard has it: a link has an end of its own (remove it)"
    ),
    (
      #"{"devices":[{"every":600}]}"#,
      "devices[0].every: only a device that is connected on demand has an interval "
        + #"(add "connect": "on_demand")"#
    ),
  ]

  @Test func aKeyOfAnotherProfileHasNoEffect() {
    let text = #"{"devices":[{"match":{"service":"fcd2"},"key":"231d39c1d7cc1ab1aee224cd096db932"}]}"#
    let remedy = #"(remove it, or use "profile": "bthome")"#
    #expect(
      errors(text) == ["devices[0].key: only BTHome is decrypted, and the profile is microbit \(remedy)"])
  }

  @Test(arguments: mistakes + impossibleValues)
  func mistakeIsDescribed(text: String, expected: String) {
    #expect(errors(text) == [expected])
  }

  private static let places: [(String, [String])] = [
    // Invalid JSON.
    ("", ["c.json:1:1: the text is empty"]),
    (
      "{\n  \"mqtt\": { \"port\": 1883 },\n}",
      [
        "c.json:3:1: expected a key in double quotes, found \"}\" (trailing comma: remove the comma before it)"
      ]
    ),
    (
      "{\n  // the broker\n  \"mqtt\": {}\n}",
      ["c.json:2:3: expected a key in double quotes, found \"/\" (JSON has no comments: remove it)"]
    ),
    // Each error has its position, in document order.
    (
      """
      {
        "mqtt": { "port": 0, "hots": "x",
                  "qos": 7 },
        "devices": [
          { "match": {}, "id": "Küche" },
          { "match": { "name_prefix": "a" },
            "period": 19 }
        ]
      }
      """,
      [
        "c.json:2:21: mqtt.port: 0 is below 1", "c.json:2:24: mqtt.hots: unknown key (did you mean host?)",
        "c.json:3:20: mqtt.qos: 7 is above 1",
        "c.json:5:16: devices[0].match: must not be empty (\(oneOf))",
        "c.json:5:26: devices[0].id: \"Küche\" is not a valid id (try kueche)",
        "c.json:7:17: devices[1].period: 19 is below 20",
      ]
    ),
    // A key whose name looks like a path.
    (
      "{\"gateway.id\": 1,\n \"gateway\": {\"id\": 1}}",
      [
        "c.json:1:2: gateway.id: unknown key (did you mean gateway?)",
        "c.json:2:20: gateway.id: expected a string, found a number",
      ]
    ),
    // The position of a default id is that of its entry.
    (
      """
      { "devices": [
        { "match": { "identifier": "00:00:00:00:00:0A" } },
        { "match": { "name_prefix": "x" }, "id": "a" },
        { "match": { "identifier": "00:00:00:00:00:0B" } },
        { "match": { "name_prefix": "y" }, "id": "00000000000a" } ] }
      """,
      ["c.json:5:44: devices[3].id: devices[0] already has the id 00000000000a"]
    ),
    (
      """
      { "devices": [
        { "match": { "name_prefix": "y" }, "id": "00000000000a" },
        { "match": { "identifier": "00:00:00:00:00:0A" } } ] }
      """,
      ["c.json:3:3: devices[1].id: devices[0] already has the id 00000000000a"]
    ),
    ("\n []", ["c.json:2:2: expected an object, found a list"]),
  ]

  @Test(arguments: places)
  func errorsHavePositions(text: String, expected: [String]) throws {
    guard case .failure(let failure) = Configuration.parse(Array(text.utf8)) else {
      throw Failure("no error")
    }
    #expect(failure.errors.map { $0.description(in: "c.json") } == expected)
  }

  @Test func invalidUTF8HasAPosition() {
    let result = Configuration.parse([0x7B, 0xFF, 0x7D])
    let expected = ConfigurationError(
      position: TextPosition(line: 1, column: 2), problem: "this is not UTF-8")
    #expect(result == .failure(ConfigurationErrors(errors: [expected])))
  }

  /// Each of many thousands of errors has its position, and finding them all is fast.
  @Test func thousandsOfErrorsHavePositions() throws {
    let text = "{" + (0..<20_000).map { "\"key\($0)\":1" }.joined(separator: ",") + "}"
    guard case .failure(let failure) = Configuration.parse(Array(text.utf8)) else {
      throw Failure("no error")
    }
    #expect(failure.errors.count == 20_000)
    let column = text.utf8.count - "\"key19999\":1}".utf8.count + 1
    #expect(failure.errors.last?.position == TextPosition(line: 1, column: column))
  }

  /// As in a request: the search for similar names, and reading the list for each name, kept the gateway busy for minutes.
  @Test func thousandsOfUnknownPropertiesAreFoundFast() throws {
    let names = (0..<3000).map { #""unknown_property_\#($0)""# }
    let list = names.joined(separator: ",")
    for options in [
      #""properties":[\#(list)]"#, #""exclude":[\#(list)]"#,
      #""desired":{\#(names.map { "\($0):1" }.joined(separator: ","))}"#,
    ] {
      let text = #"{"devices":[{"match":{"name":"x"},\#(options)}]}"#
      guard case .failure(let failure) = Configuration.parse(Array(text.utf8)) else {
        Issue.record("it is valid")
        continue
      }
      #expect(failure.errors.count == 3000)
      #expect(failure.errors.count { $0.hint != nil } == 20)
    }
  }

  @Test func tooLongTextIsAnError() {
    let long = String(repeating: "x", count: 129)
    #expect(
      errors("{\"gateway\":{\"area\":\"\(long)\"}}") == [
        "gateway.area: must not be longer than 128 characters"
      ])
  }

  @Test func errorsContainNoControlCharacters() {
    for text in [
      #"{"\u001b[2J":1}"#, #"{"gateway":{"id":"\u001b"}}"#, #"{"gateway":{"area":"\u001b"}}"#, "{\"\u{1B}",
      #"{"mqtt":{"protocol":"\u001b"}}"#, "\u{1B}",
    ] {
      let lines = errors(text)
      #expect(lines.count == 1)
      #expect(!lines.joined().unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x7F }, "\(text)")
    }
  }
}
