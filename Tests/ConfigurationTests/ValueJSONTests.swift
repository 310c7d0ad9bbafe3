import GATT
import JSON
import Testing

@testable import Configuration

@Suite struct ValueJSONTests {
  private func codec(_ type: Codec.ScalarType, scale: Double? = nil, values: [Int: String] = [:]) throws
    -> Codec
  {
    try Codec(.scalar(.init(type, scale: scale, values: values)))
  }
  private func text(_ json: JSONValue) -> String { String(decoding: json.bytes, as: UTF8.self) }
  private func value(_ text: String, _ codec: Codec) throws -> Value? {
    codec.value(try JSONParser.parse(Array(text.utf8)))
  }

  private func measurement() throws -> Codec {
    try Codec(
      .record([
        .init("flags", .uint8, isHidden: true), .init("bpm", .uint8, unless: [.init(field: "flags", bit: 0)]),
        .init("bpm", .uint16, if: [.init(field: "flags", bit: 0)]),
        .init("energy", .uint16, if: [.init(field: "flags", bit: 3)]), .init("rr", .uint16, isRepeated: true),
      ]))
  }

  // MARK: Writing JSON

  @Test func scalarsAreWritten() throws {
    #expect(text(try codec(.int8).json(.integer(-128))) == "-128")
    #expect(text(try codec(.int16, scale: 0.01).json(.number(21.53))) == "21.53")
    #expect(text(try codec(.uint8, values: [1: "open"]).json(.text("open"))) == #""open""#)
    #expect(text(try codec(.uint8, values: [1: "open"]).json(.integer(2))) == "2", "a number without a word")
    #expect(text(try codec(.bool).json(.bool(true))) == "true")
    #expect(text(try codec(.utf8).json(.text("say \"hi\"\n"))) == #""say \"hi\"\n""#)
    #expect(text(try codec(.bytes).json(.bytes([0, 0x0A, 0xFF]))) == #""000aff""#)
    #expect(text(try codec(.bytes).json(.bytes([]))) == #""""#)
  }

  @Test(arguments: [Double.nan, .infinity, -.infinity])
  func nonFiniteNumbersBecomeNull(number: Double) throws {
    #expect(try codec(.float64).json(.number(number)) == .null)
    let record = try Codec(.record([.init("x", .float32), .init("y", .float32)]))
    #expect(text(record.json(.record([.number(number), .number(1.5)]))) == #"{"x":null,"y":1.5}"#)
  }

  @Test func recordsAndListsAreWritten() throws {
    let measurement = try measurement()
    #expect(
      text(measurement.json(.record([.integer(70), nil, .list([.integer(800), .integer(810)])])))
        == #"{"bpm":70,"rr":[800,810]}"#)
    let list = try Codec(.list(of: .record([.init("x", .int8), .init("y", .int8)])))
    #expect(
      text(list.json(.list([.record([.integer(1), .integer(2)]), .record([.integer(3), .integer(4)])])))
        == #"[{"x":1,"y":2},{"x":3,"y":4}]"#)
    #expect(text(list.json(.list([]))) == "[]")
  }

  // MARK: Parsing JSON

  @Test func numbersAreParsed() throws {
    #expect(try value("5", codec(.uint8)) == .integer(5))
    #expect(try value("300", codec(.uint8)) == .integer(300), "the range is not checked here")
    #expect(try value("5.5", codec(.uint8)) == nil)
    #expect(try value("700.0000000000001", codec(.uint16)) == .integer(700))
    #expect(try value("700.00001", codec(.uint16)) == nil)
    for text in ["5.0", "5e0", "0.5E+1", "50e-1"] {
      #expect(try value(text, codec(.uint8)) == .integer(5), "\(text)")
    }
    #expect(try value("-0.0", codec(.uint8)) == .integer(0))
    #expect(try value("0.0e-400", codec(.uint8)) == .integer(0))
    #expect(try value("9007199254740991.0", codec(.int64)) == .integer(9_007_199_254_740_991))
    #expect(try value("9007199254740993.0", codec(.int64)) == nil, "its Double is another number")
    #expect(try value("1e300", codec(.uint8)) == .number(1e300))
    #expect(try value("5.5", codec(.float32)) == .number(5.5))
    #expect(try value("5", codec(.float32)) == .integer(5))
    #expect(try value("5.5", codec(.uint8, scale: 0.5)) == .number(5.5))
    for text in ["true", "\"5\"", "null", "[5]", "{}"] {
      #expect(try value(text, codec(.uint8)) == nil)
      #expect(try value(text, codec(.float64)) == nil)
    }
  }

  @Test func wordsAreParsed() throws {
    let door = try codec(.uint8, values: [0: "closed", 1: "open"])
    #expect(try value("\"open\"", door) == .text("open"))
    #expect(try value("\"ajar\"", door) == .text("ajar"), "unknown words are not rejected here")
    #expect(try value("1", door) == nil && value("1.5", door) == nil)
    #expect(try value("true", door) == nil)
  }

  @Test func otherScalarsAreParsed() throws {
    #expect(try value("false", codec(.bool)) == .bool(false))
    #expect(try value("0", codec(.bool)) == nil)
    #expect(try value("\"\"", codec(.utf8)) == .text(""))
    #expect(try value("7", codec(.utf8)) == .text("7") && value("null", codec(.utf8)) == nil)
    #expect(try value("\"00fF\"", codec(.bytes)) == .bytes([0, 255]))
    for text in ["\"0\"", "\"0g\"", "\"+1\"", "\"é\"", "7", "[0]"] {
      #expect(try value(text, codec(.bytes)) == nil)
    }
  }

  @Test func objectsAreParsed() throws {
    let measurement = try measurement()
    #expect(
      try value(#"{"rr":[800],"bpm":70}"#, measurement)
        == .record([
          .integer(70), nil, .list([.integer(800)]),
        ]))
    #expect(try value("{}", measurement) == .record([nil, nil, nil]))
    for text in [
      #"{"flags":0}"#, #"{"bpm":"70"}"#, #"{"bpm":null}"#, #"{"rr":800}"#, #"{"rr":[800,"x"]}"#, "[]", "70",
      "null",
    ] {
      #expect(try value(text, measurement) == nil, "\(text)")
    }
  }

  @Test func arraysAreParsed() throws {
    let list = try Codec(.list(of: .scalar(.init(.uint8))))
    #expect(try value("[1,2]", list) == .list([.integer(1), .integer(2)]))
    #expect(try value("[]", list) == .list([]))
    for text in ["[1,\"2\"]", "[null]", "1", "{}", "\"0102\""] { #expect(try value(text, list) == nil) }
  }

  /// What is published can be sent back as a command.
  @Test func publishedValueIsAcceptedAsACommand() throws {
    let cases: [(Codec, Value)] = [
      (try codec(.int64), .integer(.min)), (try codec(.uint8, scale: 0.5), .number(5.5)),
      (try codec(.float64), .number(1e-300)), (try codec(.bool), .bool(true)),
      (try codec(.utf8), .text("\u{0}\u{202E}é")), (try codec(.bytes), .bytes([1, 2])),
      (try codec(.uint8, values: [1: "true"]), .text("true")),
      (try measurement(), .record([.integer(300), .integer(5), .list([])])),
      (
        try Codec(.record([.init("name", .uint8), .init("raw", .bytes)])),
        .record([.integer(1), .bytes([255])])
      ),
      (try Codec(.list(of: .record([.init("x", .bool)]))), .list([.record([.bool(false)])])),
    ]
    for (codec, value) in cases {
      let written = codec.json(value).bytes
      #expect(codec.value(try JSONParser.parse(written)) == value)
      // Its bytes round-trip as well.
      #expect(try codec.decode(codec.encode(value)) == value)
    }
  }

  // MARK: Descriptions of values

  @Test func codecDescribesItsValues() throws {
    #expect(try codec(.uint16).valueDescription == "a whole number in plain digits")
    #expect(try codec(.uint16, scale: 0.1).valueDescription == "a number")
    #expect(try codec(.float32).valueDescription == "a number")
    #expect(try codec(.sfloat).valueDescription == "a number")
    #expect(
      try Codec(.scalar(.bits(rows: 5, columns: 5))).valueDescription
        == "rows of # and ., with / between them")
    #expect(try codec(.bool).valueDescription == "true or false")
    #expect(try codec(.utf8).valueDescription == "a text")
    #expect(try codec(.bytes).valueDescription == "bytes in hexadecimal digits without blanks")
    #expect(try codec(.uint8, values: [1: "open", 0: "closed"]).valueDescription == "one of closed, open")
    #expect(try measurement().valueDescription == "an object of bpm, energy, rr")
    #expect(try Codec(.list(of: .scalar(.init(.uint8)))).valueDescription == "an array")
  }

  @Test func textsWordsAndBytesArePlain() throws {
    for type in Codec.ScalarType.allCases where type != .bits {
      #expect(try codec(type).isPlain == (type == .utf8 || type == .bytes))
    }
    let picture = try Codec(.scalar(.bits(rows: 2, columns: 3)))
    #expect(
      picture.isPlain && picture.value(.string("#.#")) == .text("#.#") && picture.value(.integer(5)) == nil)
    #expect(try codec(.uint8, values: [1: "open"]).isPlain)
    #expect(try !measurement().isPlain)
    #expect(try !Codec(.list(of: .scalar(.init(.uint8)))).isPlain)
  }

  // MARK: Values in commands and requests

  private func property(_ codec: Codec, range: ClosedRange<Double>? = nil, maxLength: Int? = nil) -> Property
  {
    Property(
      name: "limit", service: BluetoothUUID(short: 1), characteristic: BluetoothUUID(short: 2),
      access: .write,
      codec: codec, unit: "ms", range: range, maxLength: maxLength)
  }

  private func problem(_ json: JSONValue, _ property: Property) -> String? {
    do throws(ValueProblem) {
      _ = try property.value(of: json)
      return nil
    } catch {
      return error.reason
    }
  }

  @Test func rangesAndLengthsAreChecked() throws {
    let period = property(try codec(.uint16), range: 20...1000)
    #expect(problem(.integer(20), period) == nil && problem(.integer(1000), period) == nil)
    #expect(problem(.integer(19), period) == "19 is below the smallest limit, 20 ms")
    #expect(problem(.number(1e20), period) == "1e+20 is above the largest limit, 1000 ms")
    #expect(problem(.number(20.5), period) != nil)
    #expect(problem(.number(.nan), period) != nil)
    for json in [JSONValue.string("20"), .bool(true), .null] {
      let expected = "expected a whole number in plain digits, found \(json.kind)"
      #expect(problem(json, period) == expected)
    }
    let byte = property(try codec(.uint8))
    #expect(problem(.integer(256), byte) == "256 is above the largest limit, 255 ms")
    let half = property(try codec(.uint8, scale: 0.5), range: 0.5...2.5)
    #expect(problem(.integer(0), half) == "0 is below the smallest limit, 0.5 ms")
    #expect(problem(.number(2.75), half) == "2.75 is above the largest limit, 2.5 ms")
    let raw = property(try codec(.bytes), maxLength: 1)
    #expect(problem(.string("01"), raw) == nil)
    #expect(problem(.string("0102"), raw) == "limit has 2 bytes, the maximum is 1")
    #expect(problem(.integer(1), raw) != nil)
    let text = property(try codec(.utf8), maxLength: 2)
    #expect(problem(.string("é"), text) == nil)
    #expect(problem(.string("é!"), text) == "limit has 3 bytes, the maximum is 2")
  }

  @Test func aPropertyThatCannotBeSetIsNamed() throws {
    let reading = Property(
      name: "reading", service: BluetoothUUID(short: 1), characteristic: BluetoothUUID(short: 2),
      access: .read, codec: try codec(.uint16))
    #expect(problem(.integer(1), reading) == "reading cannot be set")
  }

  /// The codec alone would round it to the largest number that it can encode.
  @Test func aScaledNumberJustAboveTheLargestIsRefused() throws {
    let half = property(try codec(.uint8, scale: 0.5))
    #expect(try half.value(of: .number(127.5)) == EncodedValue(.number(127.5), [255]))
    #expect(problem(.number(127.6), half) == "127.6 is above the largest limit, 127.5 ms")
  }
}
