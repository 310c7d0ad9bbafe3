import GATT
import JSON
import TestSupport
import Testing

@testable import Configuration

@Suite struct ProfileTests {
  static func parse(_ text: String) throws -> Configuration {
    switch Configuration.parse(Array(text.utf8)) {
    case .success(let configuration): return configuration
    case .failure(let failure): throw Failure(failure.errors.map(\.description).joined(separator: "\n"))
    }
  }

  /// The blocks of docs/profiles.md, each a whole configuration.
  private static func examples() throws -> [Configuration] {
    let text = String(decoding: try shipped("docs/profiles.md"), as: UTF8.self)
    let blocks = text.components(between: "```json\n", and: "```")
    return try blocks.map(parse)
  }

  /// Their quotients by a second are not always the numbers of which they were made.
  @Test(arguments: ["0.1", "1.578", "2363", "4810", "604800"])
  func intervalsAreWrittenAsTheyWere(_ poll: String) throws {
    let keys = #""service":"1111","characteristic":"2222","access":["read"],"type":"uint8""#
    let configuration = try Self.parse(#"{"profiles":{"p":{"properties":{"a":{\#(keys),"poll":\#(poll)}}}}}"#)
    #expect(try Configuration.parse(configuration.json.bytes).get() == configuration)
    #expect(String(decoding: configuration.json.bytes, as: UTF8.self).contains("\"poll\":\(poll)"))
  }

  @Test func documentedProfilesAreParsed() throws {
    let examples = try Self.examples()
    try #require(
      examples.map { $0.profiles.map(\.name) } == [
        ["sensortag"], ["counter"], ["heart"], ["esp32_climate"], ["visitors"], [], ["classroom"],
      ])
    #expect(
      examples.map { $0.devices.map(\.profile) } == [
        ["sensortag"], ["counter"], ["heart"], ["esp32_climate"], ["visitors"], ["bthome", "bthome"],
        ["classroom"],
      ])

    var near = Configuration.Match()
    near.nameContains = "SensorTag"
    near.minRSSI = -80
    #expect(examples[0].devices[0].match == near)
    let service = BluetoothUUID(short: 0xFFE0)
    let keys = Property(
      name: "keys", service: service, characteristic: BluetoothUUID(short: 0xFFE1), kind: .event,
      access: .notify,
      codec: try Codec(.scalar(.init(.uint8, values: [0: "none", 1: "right", 2: "left", 3: "both"]))),
      homeAssistant: [HomeAssistantEntity(.event, name: "Keys")])
    let humidity = try #require(BluetoothUUID("f000aa20-0451-4000-b000-000000000000"))
    let profile0 = try Profile(name: "sensortag", requires: [service, humidity], properties: [keys])
    #expect(examples[0].profiles == [profile0])

    let counter = BluetoothUUID(short: 0x1111)
    let add = Property(
      name: "add", service: counter, characteristic: BluetoothUUID(short: 0x2222), kind: .event,
      access: .write,
      writeMode: .request, codec: .uint8)
    let profile1 = try Profile(name: "counter", requires: [counter], properties: [add])
    #expect(examples[1].profiles == [profile1])
  }

  @Test func heartRateIsDecodedByItsFlags() throws {
    let heart = try #require(try Self.examples()[2].profiles.first)
    #expect(heart.properties.map(\.name) == ["heart_rate", "battery"])
    #expect(heart.requires == [BluetoothUUID(short: 0x180D)])
    let battery = heart.properties[1]
    #expect(battery.poll == .seconds(3600) && battery.unit == "%" && battery.access == .read)
    let codec = heart.properties[0].codec
    for (bytes, json) in [
      ([0x00, 72], #"{"bpm":72}"#), ([0x06, 72], #"{"bpm":72}"#),
      ([0x01, 0x2C, 0x01], #"{"bpm":300}"#),
      ([0x19, 75, 0, 0xE8, 0x03, 0x00, 0x04, 0xF0, 0x03], #"{"bpm":75,"energy":1000,"rr":[1.0,0.984375]}"#),
      ([0x10, 60], #"{"bpm":60,"rr":[]}"#),
    ] as [([UInt8], String)] {
      #expect(String(decoding: codec.json(try codec.decode(bytes)).bytes, as: UTF8.self) == json)
    }
    #expect(throws: CodecError.self) { try codec.decode([0x08, 72, 1]) }
  }

  /// Every key, each with a value that is not its default.
  @Test func everyKeyIsRead() throws {
    let configuration = try Self.parse(
      #"""
      { "profiles": { "all_of-it": {
          "manufacturer": "M", "model": "N", "requires": ["180f"],
          "alive": { "property": "a", "period": "b" },
          "properties": {
            "a": { "service": "0000180F-0000-1000-8000-00805F9B34FB", "characteristic": "00002a19", "instance": 1,
                   "kind": "state", "access": ["notify", "read"], "type": "int16", "scale": 0.5, "offset": -40,
                   "endian": "big", "unit": "°C", "poll": 0.5,
                   "report": { "min_interval": 200, "change": 0.25 },
                   "home_assistant": { "platform": "sensor", "name": "A", "device_class": "temperature",
                                       "state_class": "measurement", "unit": "C", "category": "diagnostic" } },
            "b": { "service": "180f", "characteristic": "2a1a", "access": ["read", "write"], "write": "request",
                   "type": "uint16", "range": [20, 65535], "initial": 5000, "before_reading": true,
                   "auto": true,
                   "home_assistant": { "platform": "number", "name": "B", "mode": "slider", "category": "config" } },
            "c": { "service": "180f", "characteristic": "2a1b", "access": ["write"], "write": "command",
                   "kind": "event", "type": "utf8", "max_length": 20,
                   "home_assistant": [ { "platform": "text", "name": "C" },
                                       { "platform": "select", "key": "choice", "name": "D",
                                         "options": { "yes": "1", "no": "0" } },
                                       { "platform": "switch", "key": "switch", "name": "E", "on": "1", "off": "0" },
                                       { "platform": "notify", "key": "notify", "name": "F" } ] },
            "d": { "service": "180f", "characteristic": "2a1c", "access": ["notify"], "repeat": true,
                   "fields": [ { "name": "f", "type": "uint8", "hidden": true },
                               { "name": "x", "type": "uint16", "endian": "big", "scale": 2, "offset": 1,
                                 "if": ["f.0", "f.1"], "unless": "f.2" },
                               { "name": "z", "type": "uint8", "bits": [4, 2], "of": "f" },
                               { "name": "w", "type": "bool", "bit": 7, "inverted": true, "of": "f" },
                               { "name": "y", "type": "uint8", "values": { "0": "no", "1": "yes" } } ] } } } } }
      """#)
    let battery = BluetoothUUID(short: 0x180F)
    func uuid(_ number: UInt32) -> BluetoothUUID { BluetoothUUID(short: number) }
    let flags = Codec.Flag(field: "f", bit: 0)
    let properties = [
      Property(
        name: "a", service: battery, characteristic: uuid(0x2A19), instance: 1, access: [.read, .notify],
        codec: try Codec(.scalar(.init(.int16, scale: 0.5, offset: -40, endian: .big))), unit: "°C",
        poll: .milliseconds(500),
        report: Property.Report(minInterval: .milliseconds(200), change: 0.25),
        homeAssistant: [
          HomeAssistantEntity(
            .sensor(.measurement), name: "A", deviceClass: "temperature", unit: "C", category: .diagnostic)
        ]),
      Property(
        name: "b", service: battery, characteristic: uuid(0x2A1A), access: [.read, .write],
        writeMode: .request,
        codec: .uint16, range: 20...65535, initial: .integer(5000), isBeforeReading: true, isAutomatic: true,
        homeAssistant: [HomeAssistantEntity(.number(.slider), name: "B", category: .config)]),
      Property(
        name: "c", service: battery, characteristic: uuid(0x2A1B), kind: .event, access: .write,
        writeMode: .command, codec: .utf8, maxLength: 20,
        homeAssistant: [
          HomeAssistantEntity(.text, name: "C"),
          HomeAssistantEntity(
            .select([.init("yes", .text("1")), .init("no", .text("0"))]), key: "choice", name: "D"),
          HomeAssistantEntity(.switch(on: .text("1"), off: .text("0")), key: "switch", name: "E"),
          HomeAssistantEntity(.notify, key: "notify", name: "F"),
        ]),
      Property(
        name: "d", service: battery, characteristic: uuid(0x2A1C), access: .notify,
        codec: try Codec(
          .list(
            of: .record([
              .init("f", .uint8, isHidden: true),
              .init(
                "x", .init(.uint16, scale: 2, offset: 1, endian: .big),
                if: [flags, .init(field: "f", bit: 1)],
                unless: [.init(field: "f", bit: 2)]),
              .init("z", .init(.uint8, bits: 4..<6), of: "f"),
              .init("w", .init(.bool, bits: 7..<8, isInverted: true), of: "f"),
              .init("y", .init(.uint8, values: [0: "no", 1: "yes"])),
            ])))),
    ]
    let expected = try Profile(
      name: "all_of-it", manufacturer: "M", model: "N", requires: [battery], alive: "a", alivePeriod: "b",
      properties: properties)
    #expect(configuration.profiles == [expected])
    // The JSON that it writes is parsed to the same configuration.
    #expect(try Configuration.parse(configuration.json.bytes).get() == configuration)
  }

  @Test func builtInProfileRoundTripsThroughJSON() throws {
    let json = try #require(Profile.microbit.json)
    let text = String(decoding: json.bytes, as: UTF8.self)
    let copy = try #require(try Self.parse(#"{"profiles":{"copy":\#(text)}}"#).profiles.first)
    #expect(copy.properties == Profile.microbit.properties)
    #expect(copy.alive == Profile.microbit.alive && copy.requires == Profile.microbit.requires)
    #expect(copy.manufacturer == Profile.microbit.manufacturer && copy.model == Profile.microbit.model)
  }

  // MARK: Devices

  private static let profiles = #"""
    "profiles":{"fan":{"properties":{
      "speed":{"service":"1111","characteristic":"2222","access":["read","write"],"type":"uint8","range":[0,100],
        "auto":true},
      "mode":{"service":"1111","characteristic":"2223","access":["read","write"],"type":"uint8",
        "values":{"0":"off","1":"on"}},
      "light":{"service":"1111","characteristic":"2224","access":["write"],"kind":"event","type":"bool"},
      "rpm":{"service":"1111","characteristic":"2225","access":["read"],"type":"uint16"}}}}
    """#

  @Test(
    arguments: [
      ("{}", Profile.microbit.automaticProperties, [:]),
      (#"{"properties":"auto"}"#, Profile.microbit.automaticProperties, [:]),
      (#"{"period":5000}"#, Profile.microbit.automaticProperties, ["period": .integer(5000)]),
      (#"{"properties":"led"}"#, ["led"], [:]),
      (
        #"{"properties":["auto","led","accelerometer"],"exclude":["period","button_a","accelerometer"]}"#,
        ["temperature", "button_b", "led_text", "led", "uart_rx", "uart_tx", "bearing", "accelerometer"], [:]
      ),
      (#"{"properties":["button_a","temperature"]}"#, ["temperature", "button_a"], [:]),
      (
        #"{"properties":["button_a"],"desired":{"period":5000}}"#, ["period", "button_a"],
        ["period": .integer(5000)]
      ),
      (#"{"properties":["button_a"],"period":20}"#, ["period", "button_a"], ["period": .integer(20)]),
      (
        #"{"desired":{"scroll_delay":100},"exclude":["period","uart_rx","uart_tx","bearing","accelerometer"]}"#,
        ["temperature", "button_a", "button_b", "led_text", "scroll_delay"], ["scroll_delay": .integer(100)]
      ),
      (#"{"profile":"microbit"}"#, Profile.microbit.automaticProperties, [:]),
      (#"{"properties":["button_a","button_b"],"exclude":["button_a"]}"#, ["button_b"], [:]),
      (
        #"{"exclude":["period"],"period":50}"#, Profile.microbit.automaticProperties, ["period": .integer(50)]
      ),
      (#"{"profile":"fan"}"#, ["speed"], [:]),
      (
        #"{"profile":"fan","properties":["rpm"],"desired":{"mode":"on","speed":7}}"#,
        ["speed", "mode", "rpm"],
        ["mode": .text("on"), "speed": .integer(7)]
      ),
    ] as [(String, [String], [String: Value])])
  func entryDecidesPropertiesAndDesiredValues(entry: String, properties: [String], desired: [String: Value])
    throws
  {
    let configuration = try Self.parse(#"{"devices":[\#(entry)],\#(Self.profiles)}"#)
    let device = try #require(configuration.devices.first)
    let profile = configuration.profile(of: device.options)
    #expect(profile.name == (device.profile ?? "microbit"))
    #expect(profile.properties.map(\.name) == properties)
    #expect(profile.isAutomatic == (device.properties?.contains("auto") ?? true))
    #expect(configuration.desired(of: device.options) == desired)
    #expect(try Configuration.parse(configuration.json.bytes).get() == configuration)
  }

  @Test(arguments: [
    (
      #"{"profile":"fun"}"#,
      #"1:24: devices[0].profile: there is no profile "fun" (did you mean fan?)"#
    ),
    (
      #"{"profile":"refrigerator"}"#,
      #"1:24: devices[0].profile: there is no profile "refrigerator" (there are microbit, bthome, fan)"#
    ),
    (
      #"{"properties":["temperature","buton_a"]}"#,
      #"1:42: devices[0].properties[1]: the profile microbit has no property "buton_a" (did you mean button_a?)"#
    ),
    (
      #"{"exclude":["buton_a"]}"#,
      #"1:25: devices[0].exclude[0]: the profile microbit has no property "buton_a" (did you mean button_a?)"#
    ),
    (#"{"properties":[]}"#, "1:27: devices[0].properties: must not be empty (leave the key out instead)"),
    (
      #"{"desired":{"perod":5}}"#,
      #"1:25: devices[0].desired.perod: the profile microbit has no property "perod" (did you mean period?)"#
    ),
    (
      #"{"desired":{"period":10}}"#, "1:34: devices[0].desired.period: 10 is below the smallest period, 20 ms"
    ),
    (
      #"{"desired":{"period":"5000"}}"#,
      "1:34: devices[0].desired.period: expected a whole number in plain digits, found a string"
    ),
    (#"{"desired":{"temperature":21}}"#, "1:39: devices[0].desired.temperature: temperature cannot be set"),
    (
      #"{"desired":{"led_text":"Hi"}}"#,
      "1:36: devices[0].desired.led_text: led_text is an event: only a state can hold a value"
    ),
    (
      #"{"desired":{"period":50},"period":50}"#,
      "1:47: devices[0].period: period and desired.period must not be combined (give one of them)"
    ),
    (
      #"{"profile":"fan","period":50}"#,
      #"1:30: devices[0].period: the profile fan has no property "period" (there are speed, mode, light, rpm)"#
    ),
    (
      #"{"profile":"fan","desired":{"mode":"auto"}}"#,
      #"1:48: devices[0].desired.mode: "auto" is not one of off, on"#
    ),
    (
      #"{"profile":"fan","desired":{"speed":101}}"#,
      "1:49: devices[0].desired.speed: 101 is above the largest speed, 100"
    ),
  ])
  func invalidEntryIsReportedAtItsPosition(entry: String, expected: String) throws {
    let text = #"{"devices":[\#(entry)],\#(Self.profiles)}"#
    #expect(Self.errors(text) == [expected])
  }

  static func errors(_ text: String) -> [String] {
    guard case .failure(let failure) = Configuration.parse(Array(text.utf8)) else { return [] }
    return failure.errors.map { error in
      String(error.description(in: "").dropFirst())
    }
  }
}

extension String {
  /// The texts between each `start` and the `end` that follows it.
  fileprivate func components(between start: String, and end: String) -> [String] {
    var parts: [String] = []
    var rest = self[...]
    while let begin = rest.firstRange(of: start) {
      rest = rest[begin.upperBound...]
      guard let stop = rest.firstRange(of: end) else { break }
      parts.append(String(rest[..<stop.lowerBound]))
      rest = rest[stop.upperBound...]
    }
    return parts
  }
}
