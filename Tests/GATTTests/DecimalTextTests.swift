import GATT
import Testing

@Suite struct DecimalTextTests {
  private let codec: Codec

  init() throws { codec = try Codec.scalar(.decimal) }

  /// What programs send: `dtostrf` with a width, `String(float)`, `%.1f`, `std::to_string`, `str` of MicroPython, buffers that
  /// are sent with their zeros, and lines.
  @Test(arguments: [
    (" 23.45", 23.45), ("  7.00", 7), ("100.00", 100), ("1013.25", 1013.25), ("-3.50", -3.5),
    ("346.2", 346.2),
    ("23.450001", 23.450001), ("21", 21), ("+5", 5), ("007", 7), ("5.", 5), ("21.5\0\0\0\0", 21.5),
    ("21.50\r\n", 21.5), ("\t-1.5 \n\0", -1.5), ("999999.00", 999_999), ("-0.00", 0),
    ("-0.30000000000000004", -0.30000000000000004), ("1000000000000000", 1e15),
    ("0.000000000000000000000000000001", 1e-30),
  ])
  func numbers(text: String, number: Double) throws {
    let value = try codec.decode(Array(text.utf8))
    #expect(value == .number(number))
    #expect(value.doubleValue?.sign == (number < 0 ? .minus : .plus))
    #expect(try codec.decode(codec.encode(value)) == value)
  }

  @Test(arguments: [
    "", " ", "\0\0", "nan", "   nan", "inf", "1e308", "0x10", "1,5", "1.2.3", "--1", "1-", "+", "-", ".",
    "-.", ".5",
    "1 2", "21.5 C", "21.5%", "T=24.4 H=46.6", "21\0.5", "²", "٣", "0.0000000000000000000000000000001",
    String(repeating: "1", count: 33), String(repeating: " ", count: 512),
  ])
  func everythingElseIsMalformed(text: String) {
    #expect(throws: CodecError.notANumber(Array(text.utf8))) { try codec.decode(Array(text.utf8)) }
  }

  @Test func malformedTextIsShown() {
    func text(_ bytes: [UInt8]) -> String? {
      error(of: CodecError.self) { try codec.decode(bytes) }?.description
    }
    #expect(text(Array("21.5 C".utf8)) == #"not a number in plain digits: "21.5 C""#)
    #expect(text([0x32, 0x1B]) == "not a number in plain digits: 32 1b")
    #expect(text([]) == #"not a number in plain digits: """#)
  }

  @Test(arguments: [
    (Value.number(21.5), "21.5"), (.integer(-7), "-7"), (.number(20), "20"), (.number(-0.0), "0"),
    (.number(0.00005), "0.00005"), (.number(-1.25e-7), "-0.000000125"),
    (.number(0.1 + 0.2), "0.30000000000000004"),
    (.number(-1e15), "-1000000000000000"), (.number(123_456_789.25), "123456789.25"),
  ])
  func numbersAreWrittenInPlainDigits(value: Value, text: String) throws {
    #expect(try String(decoding: codec.encode(value), as: UTF8.self) == text)
  }

  @Test(arguments: [1e16, -1e308, .nan, .infinity])
  func numbersBeyondTheRangeAreRefused(number: Double) throws {
    #expect(codec.range == -1e15...1e15)
    let problem = error(of: CodecError.self) { try codec.encode(.number(number)) }
    #expect(problem?.description.hasSuffix("is outside -1000000000000000…1000000000000000") == true)
    #expect(throws: CodecError.range(value: 1e16, allowed: -1e15...1e15)) {
      try codec.decode(Array("10000000000000000".utf8))
    }
    #expect(throws: CodecError.tooLong(count: 39, most: 32)) {
      try codec.encode(.number(1.2345678901234567e-21))
    }
    #expect(throws: CodecError.kind(expected: "a number", found: "text")) { try codec.encode(.text("21")) }
  }

  @Test func itIsANumber() throws {
    #expect(codec.content == .number(step: nil) && codec.width == nil && codec.step == nil)
    let limited = try Codec(.scalar(Codec.Scalar(.decimal, valid: -55...125)))
    #expect(throws: CodecError.range(value: -127, allowed: -55...125)) {
      try limited.decode(Array("-127.00".utf8))
    }
    // Behind other fields, to the end.
    let record = try Codec.record([Codec.Field("channel", .uint8), Codec.Field("level", .decimal)])
    #expect(try record.decode([3] + Array(" 1.50".utf8)) == .record([.integer(3), .number(1.5)]))
    #expect(record.content(of: "level")?.isNumber == true)
  }
}
