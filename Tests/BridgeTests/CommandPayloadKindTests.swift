import GATT
import Testing

@testable import Bridge

/// Commands for properties of every kind of value.
@Suite struct CommandPayloadKindTests {
  private func property(_ name: String, _ description: Codec.Description) throws -> Property {
    Property(
      name: name, service: .microbitTemperatureService, characteristic: .microbitTemperatureService,
      access: .write, codec: try Codec(description))
  }

  private func parse(_ text: String, _ property: Property) -> Result<ParsedCommand, Rejection> {
    parse(Array(text.utf8), property)
  }
  private func parse(_ payload: [UInt8], _ property: Property) -> Result<ParsedCommand, Rejection> {
    ParsedCommand.parse(payload, for: property)
  }
  private func value(_ text: String, _ property: Property) -> Value? {
    try? parse(text, property).get().value
  }
  private func reason(_ text: String, _ property: Property) -> String? {
    if case .failure(let rejection) = parse(text, property) { rejection.reason } else { nil }
  }

  // MARK: Text

  @Test(arguments: [
    "Hello", " Hello ", "", "a\nb", "21.5", "true", "null", "[1]", "é🌡", "{", "say \"hi\"", "a: {x}",
  ])
  func plainPayloadIsTheText(text: String) throws {
    #expect(value(text, try property("text", .scalar(.init(.utf8)))) == .text(text))
  }

  /// `echo Hello | mosquitto_pub -s`: LEDs show no line end, and a line has its own.
  @Test func lineEndIsPartOfATextThatIsSentAsItIs() throws {
    #expect(value("Hello\n", try property("text", .scalar(.init(.utf8)))) == .text("Hello\n"))
    #expect(value("Hello\r\n", .microbitLEDText) == .text("Hello"))
    #expect(value("a\nb\n", .microbitUARTSent) == .text("a\nb"))
    #expect(value(".#.#./#####/#####/.###./..#..\n", .microbitLEDMatrix) != nil)
  }

  @Test func textMayBeSentAsJSON() throws {
    let text = try property("text", .scalar(.init(.utf8)))
    #expect(value(#""Hello""#, text) == .text("Hello"))
    #expect(value(#"{"value":"Hello"}"#, text) == .text("Hello"))
    let long = try parse(#"{"value":"{}","ttl":60,"transaction":"a1"}"#, text).get()
    #expect(long.value == .text("{}") && long.ttl == 60 && long.transaction == "a1")
    #expect(value(#"{"value":21}"#, text) == .text("21") && value(#"{"value":-0.5}"#, text) == .text("-0.5"))
    #expect(value(#"{"value":true}"#, text) == .text("true"))
    #expect(reason(#"{"value":null}"#, text) == #""null" is not a text"#)
    #expect(reason(#"{"value":[21]}"#, text) == #""[21]" is not a text"#)
    #expect(
      reason(#"{"cmd":"led"}"#, text)
        == #"unknown key "cmd"; allowed: value, ttl, transaction "#
        + #"(put the value into {"value":"{\"cmd\":\"led\"}"})"#)
    #expect(reason("{}", text) == "the key value is missing")
  }

  @Test(arguments: [[0xFF], [0x41, 0xC3], [0xED, 0xA0, 0x80]])
  func invalidUTF8IsNotAText(payload: [UInt8]) throws {
    let text = try property("text", .scalar(.init(.utf8)))
    guard case .failure(let rejection) = parse(payload, text) else {
      Issue.record("accepted as a text")
      return
    }
    #expect(rejection.reason.hasSuffix("is not a text"))
  }

  // MARK: Enumerations

  private func door() throws -> Property {
    try property("door", .scalar(.init(.uint8, values: [0: "closed", 1: "open", 7: "12"])))
  }

  @Test func plainPayloadIsTheWord() throws {
    let door = try door()
    #expect(value("closed", door) == .text("closed"))
    #expect(value(#""closed""#, door) == .text("closed"))
    #expect(value(#"{"value":"open","ttl":1}"#, door) == .text("open"))
    #expect(value("12", door) == .text("12"), "a word like a number")
    #expect(value("open\n", door) == .text("open") && value("open\r\n", door) == .text("open"))
  }

  @Test(arguments: [
    ("ajar", #""ajar" is not one of closed, open, 12"#),
    ("Closed", #""Closed" is not one of closed, open, 12"#),
    ("", #""" is not one of closed, open, 12"#),
    (#"{"value":"ajar"}"#, #""ajar" is not one of closed, open, 12"#),
    (#"{"value":true}"#, #""true" is not one of closed, open, 12"#),
    (#"{"value":null}"#, #""null" is not one of closed, open, 12"#),
    (#"{"value":2}"#, #""2" is not one of closed, open, 12"#),
    ("1", #""1" is not one of closed, open, 12"#),
    (#"{"value":1}"#, #""1" is not one of closed, open, 12"#),
  ])
  func otherWordsAreRejected(text: String, expected: String) throws {
    #expect(reason(text, try door()) == expected)
  }

  // MARK: Booleans

  @Test func onlyTrueAndFalseAreBooleans() throws {
    let lock = try property("lock", .scalar(.init(.bool)))
    #expect(value("true", lock) == .bool(true))
    #expect(value(" false\n", lock) == .bool(false))
    #expect(value(#"{"value":true}"#, lock) == .bool(true))
    #expect(value(#""true""#, lock) == .bool(true))
    for text in ["1", "0", "TRUE", "on", "yes", "null", "[true]"] {
      #expect(reason(text, lock)?.hasSuffix("is not true or false") == true, "\(text)")
    }
  }

  // MARK: Bytes

  @Test(
    arguments: [
      ("00ff10", [0, 255, 16]), ("00FF", [0, 255]), ("", []), ("1234", [0x12, 0x34]), ("12e4", [0x12, 0xE4]),
      (#""0aff""#, [10, 255]), (#"{"value":"0aff"}"#, [10, 255]), ("00", [0]),
      ("0aff\n", [10, 255]),
    ] as [(String, [UInt8])])
  func bytesAreHexadecimalDigits(text: String, bytes: [UInt8]) throws {
    #expect(value(text, try property("raw", .scalar(.init(.bytes)))) == .bytes(bytes))
  }

  @Test(arguments: ["0", "0x00", "gg", "00 ff", "00\n00", "\u{FF10}\u{FF10}", "[0]", "null"])
  func otherPayloadsAreNotBytes(text: String) throws {
    let raw = try property("raw", .scalar(.init(.bytes)))
    #expect(reason(text, raw)?.hasSuffix("is not bytes in hexadecimal digits without blanks") == true)
  }

  // MARK: Numbers

  @Test func fractionsAreParsed() throws {
    let target = try property("target", .scalar(.init(.int16, scale: 0.01)))
    #expect(value("21.5", target) == .number(21.5))
    #expect(value("2.15e1", target) == .number(21.5))
    #expect(value(#"{"value":21.5}"#, target) == .number(21.5))
    #expect(reason("warm", target) == #""warm" is not a number"#)
  }

  /// JSON has no NaN and no infinities.
  @Test(arguments: [
    "NaN", "nan", "Infinity", "-Infinity", "inf", "1e999", "-1e999", "null", #"{"value":NaN}"#,
    #"{"value":1e999}"#, #"{"value":null}"#, #""NaN""#,
  ])
  func nonFiniteNumbersAreRejected(text: String) throws {
    for type in [Codec.ScalarType.float32, .float64, .uint16] {
      #expect(reason(text, try property("number", .scalar(.init(type)))) != nil, "\(type)")
    }
  }

  // MARK: Records

  private func colour() throws -> Property {
    try property("colour", .record([.init("red", .uint8), .init("green", .uint8), .init("tag", .bytes)]))
  }

  @Test func aRecordIsAnObjectOfItsFields() throws {
    let colour = try colour()
    let expected = Value.record([1, 2, .bytes([10, 255])])
    #expect(value(#"{"red":1,"green":2,"tag":"0aff"}"#, colour) == expected)
    #expect(value(#" {"tag":"0aff","green":2,"red":1} "#, colour) == expected)
    let long = try parse(
      #"{"value":{"red":1,"green":2,"tag":"0aff"},"ttl":9,"transaction":"t"}"#, colour
    ).get()
    #expect(long.value == expected && long.ttl == 9 && long.transaction == "t")
  }

  @Test(arguments: [
    ("7", #""7" is not an object of red, green, tag"#),
    ("red", #""red" is not an object of red, green, tag"#),
    ("[1,2]", #""[1,2]" is not an object of red, green, tag"#), ("{}", "red: missing"),
    (#"{"red":1,"tag":""}"#, "green: missing"),
    (#"{"red":256,"green":2,"tag":""}"#, "red: 256 is outside 0…255"),
    (#"{"value":7,"transaction":"t"}"#, #""7" is not an object of red, green, tag"#),
    (#"{"value":{"red":1},"x":1}"#, #"unknown key "x"; allowed: value, ttl, transaction"#),
    (#"{"value":{"red":1,"blue":2}}"#, #""{"red":1,"blue":2}" is not an object of red, green, tag"#),
  ])
  func otherPayloadsAreNotRecords(text: String, expected: String) throws {
    #expect(reason(text, try colour()) == expected)
  }

  /// Only an object below `value` makes the long form.
  @Test func aRecordMayHaveAFieldNamedValue() throws {
    let limit = try property("limit", .record([.init("value", .uint8), .init("ttl", .uint8)]))
    let short = try parse(#"{"value":5,"ttl":60}"#, limit).get()
    #expect(short.value == .record([5, 60]) && short.ttl == nil)
    let long = try parse(#"{"value":{"value":5,"ttl":6},"ttl":60}"#, limit).get()
    #expect(long.value == .record([5, 6]) && long.ttl == 60)
  }

  // MARK: Lists

  @Test func aListIsAnArray() throws {
    let levels = try property("levels", .list(of: .scalar(.init(.uint8))))
    #expect(value("[1,2,3]", levels) == .list([1, 2, 3]))
    #expect(value(#"{"value":[1,2],"transaction":"t"}"#, levels) == .list([1, 2]))
    #expect(reason("7", levels) == #""7" is not an array"#)
    #expect(reason("[1,null]", levels) == #""[1,null]" is not an array"#)
  }

  @Test func anObjectIsNoList() throws {
    let points = try property("points", .list(of: .record([.init("x", .int8), .init("y", .int8)])))
    #expect(value(#"{"value":[{"x":1,"y":2}]}"#, points) == .list([.record([1, 2])]))
    #expect(
      reason(#"{"x":1,"y":2}"#, points)
        == #"unknown key "x"; allowed: value, ttl, transaction (put the value into {"value":…})"#)
  }
}
