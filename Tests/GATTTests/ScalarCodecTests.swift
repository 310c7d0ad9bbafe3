import GATT
import Testing

@Suite struct IntegerCodecTests {
  /// A value and its bytes, little-endian.
  struct Example: Sendable {
    let type: Codec.ScalarType
    let value: Int
    let bytes: [UInt8]
  }

  static let examples = [
    Example(type: .uint8, value: 0, bytes: [0]),
    Example(type: .uint8, value: 255, bytes: [0xFF]),
    Example(type: .uint16, value: 0, bytes: [0, 0]),
    Example(type: .uint16, value: 1000, bytes: [0xE8, 0x03]),
    Example(type: .uint16, value: 65535, bytes: [0xFF, 0xFF]),
    Example(type: .uint24, value: 0x12_3456, bytes: [0x56, 0x34, 0x12]),
    Example(type: .uint24, value: 0xFF_FFFF, bytes: [0xFF, 0xFF, 0xFF]),
    Example(type: .uint32, value: 0x1234_5678, bytes: [0x78, 0x56, 0x34, 0x12]),
    Example(type: .uint32, value: 0xFFFF_FFFF, bytes: [0xFF, 0xFF, 0xFF, 0xFF]),
    Example(type: .uint64, value: 0x0102_0304_0506_0708, bytes: [8, 7, 6, 5, 4, 3, 2, 1]),
    Example(type: .uint64, value: .max, bytes: [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F]),
    Example(type: .int8, value: 21, bytes: [21]),
    Example(type: .int8, value: 127, bytes: [0x7F]),
    Example(type: .int8, value: -1, bytes: [0xFF]),
    Example(type: .int8, value: -128, bytes: [0x80]),
    Example(type: .int16, value: -1020, bytes: [0x04, 0xFC]),
    Example(type: .int16, value: 32767, bytes: [0xFF, 0x7F]),
    Example(type: .int16, value: -32768, bytes: [0x00, 0x80]),
    Example(type: .sint24, value: -1, bytes: [0xFF, 0xFF, 0xFF]),
    Example(type: .sint24, value: 8_388_607, bytes: [0xFF, 0xFF, 0x7F]),
    Example(type: .sint24, value: -8_388_608, bytes: [0, 0, 0x80]),
    Example(type: .int32, value: -2, bytes: [0xFE, 0xFF, 0xFF, 0xFF]),
    Example(type: .int32, value: -2_147_483_648, bytes: [0, 0, 0, 0x80]),
    Example(type: .int32, value: 2_147_483_647, bytes: [0xFF, 0xFF, 0xFF, 0x7F]),
    Example(type: .int64, value: .min, bytes: [0, 0, 0, 0, 0, 0, 0, 0x80]),
    Example(type: .int64, value: .max, bytes: [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F]),
    Example(type: .int64, value: -1, bytes: [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]),
  ]

  @Test(arguments: examples)
  func integersAreCodedInBothByteOrders(example: Example) throws {
    let little = try Codec.scalar(example.type)
    #expect(try little.decode(example.bytes) == .integer(example.value))
    #expect(try little.encode(.integer(example.value)) == example.bytes)
    let big = try Codec.scalar(example.type, endian: .big)
    #expect(try big.decode(example.bytes.reversed()) == .integer(example.value))
    #expect(try big.encode(.integer(example.value)) == example.bytes.reversed())
  }

  /// The type, its size, and the nearest numbers below and above its range.
  static let bounds: [(Codec.ScalarType, Int, Int, Int)] = [
    (.uint8, 1, -1, 256), (.uint16, 2, -1, 65536), (.uint24, 3, -1, 0x100_0000),
    (.uint32, 4, -1, 0x1_0000_0000), (.int8, 1, -129, 128), (.int16, 2, -32769, 32768),
    (.sint24, 3, -0x80_0001, 0x80_0000), (.int32, 4, -0x8000_0001, 0x8000_0000),
  ]

  @Test(arguments: bounds)
  func refusesNumbersOutOfRange(type: Codec.ScalarType, size: Int, below: Int, above: Int) throws {
    let codec = try Codec.scalar(type)
    let range = Double(below + 1)...Double(above - 1)
    #expect(codec.range == range)
    for value in [below, above, Int.max, Int.min] {
      #expect(throws: CodecError.range(value: Double(value), allowed: range)) {
        try codec.encode(.integer(value))
      }
    }
    #expect(throws: CodecError.range(value: .infinity, allowed: range)) {
      try codec.encode(.number(.infinity))
    }
    #expect(try codec.encode(.integer(above - 1)).count == size)
  }

  static let sizes: [(Codec.ScalarType, Int)] = [
    (.uint8, 1), (.uint16, 2), (.uint24, 3), (.uint32, 4), (.uint64, 8), (.int8, 1), (.int16, 2),
    (.sint24, 3), (.int32, 4), (.int64, 8), (.float32, 4), (.float64, 8), (.bool, 1), (.sfloat, 2),
    (.float, 4),
  ]

  @Test(arguments: sizes)
  func lengthErrorHasTheBytes(type: Codec.ScalarType, size: Int) throws {
    let codec = try Codec.scalar(type)
    for count in [0, size - 1, size + 1, 20, 512] where count != size {
      let bytes = [UInt8](repeating: 7, count: count)
      #expect(throws: CodecError.length(expected: size, bytes: bytes)) { try codec.decode(bytes) }
    }
    #expect(throws: Never.self) { try codec.decode([UInt8](repeating: 7, count: size)) }
  }

  @Test func tableOfSizesIsComplete() {
    let fixed = Set(Self.sizes.map(\.0))
    #expect(fixed.union([.decimal, .utf8, .bytes, .bits]) == Set(Codec.ScalarType.allCases))
  }

  @Test(arguments: [0x8000_0000_0000_0000, UInt64.max])
  func uint64AboveIntMaxIsRefused(number: UInt64) throws {
    let bytes = (0..<8).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
    #expect(throws: CodecError.tooLarge(number)) { try Codec.scalar(.uint64).decode(bytes) }
    #expect(throws: CodecError.tooLarge(number)) {
      try Codec.scalar(.uint64, scale: 0.5).decode(bytes)
    }
    #expect(throws: CodecError.range(value: -1, allowed: 0...Double(Int.max))) {
      try Codec.scalar(.uint64).encode(.integer(-1))
    }
    #expect(throws: CodecError.range(value: 0x1p63, allowed: 0...0x1p63)) {
      try Codec.scalar(.uint64).encode(.number(0x1p63))
    }
  }

  @Test func integerAcceptsAWholeFloatingPointNumber() throws {
    #expect(try Codec.uint8.encode(.number(20)) == [20])
    #expect(try Codec.int8.encode(.number(-0.0)) == [0])
    #expect(throws: CodecError.kind(expected: "a whole number", found: "a number")) {
      try Codec.uint8.encode(.number(20.5))
    }
    let nan = error(of: CodecError.self) { try Codec.uint8.encode(.number(.nan)) }
    #expect(nan?.description == "nan is outside 0…255")
  }

  @Test(arguments: [
    Value.bool(true), .text("20"), .bytes([20]), .record([.integer(20)]), .list([.integer(20)]),
  ])
  func refusesOtherKinds(value: Value) {
    let problem = error(of: CodecError.self) { try Codec.uint8.encode(value) }
    #expect(problem?.description.hasPrefix("expected a number, got ") == true, "\(value)")
  }
}

@Suite struct FloatCodecTests {
  @Test(
    arguments: [
      (0.0, [0, 0, 0, 0]), (1.0, [0, 0, 0x80, 0x3F]), (-2.5, [0, 0, 0x20, 0xC0]),
      (21.3, [0x66, 0x66, 0xAA, 0x41]), (0.1, [0xCD, 0xCC, 0xCC, 0x3D]),
      (.infinity, [0, 0, 0x80, 0x7F]), (-.infinity, [0, 0, 0x80, 0xFF]),
      (3.4028235e38, [0xFF, 0xFF, 0x7F, 0x7F]), (1e-45, [1, 0, 0, 0]),
    ] as [(Double, [UInt8])])
  func float32IsTheShortestDecimalNumber(value: Double, bytes: [UInt8]) throws {
    let codec = try Codec.scalar(.float32)
    #expect(try codec.decode(bytes) == .number(value))
    #expect(try codec.encode(.number(value)) == bytes)
    #expect(try Codec.scalar(.float32, endian: .big).decode(bytes.reversed()) == .number(value))
  }

  @Test(
    arguments: [
      (1.0, [0, 0, 0, 0, 0, 0, 0xF0, 0x3F]), (-0.1, [0x9A, 0x99, 0x99, 0x99, 0x99, 0x99, 0xB9, 0xBF]),
      (.infinity, [0, 0, 0, 0, 0, 0, 0xF0, 0x7F]), (-.infinity, [0, 0, 0, 0, 0, 0, 0xF0, 0xFF]),
    ] as [(Double, [UInt8])])
  func float64IsExact(value: Double, bytes: [UInt8]) throws {
    let codec = try Codec.scalar(.float64)
    #expect(try codec.decode(bytes) == .number(value))
    #expect(try codec.encode(.number(value)) == bytes)
    #expect(try Codec.scalar(.float64, endian: .big).encode(.number(value)) == bytes.reversed())
  }

  @Test(arguments: [Codec.ScalarType.float32, .float64])
  func nanRoundTrips(type: Codec.ScalarType) throws {
    let codec = try Codec.scalar(type)
    let decoded = try codec.decode(try codec.encode(.number(.nan)))
    #expect(decoded.doubleValue?.isNaN == true)
  }

  @Test func negativeZeroKeepsItsSign() throws {
    let codec = try Codec.scalar(.float32)
    #expect(try codec.decode([0, 0, 0, 0x80]).doubleValue?.sign == .minus)
    #expect(try codec.encode(.number(-0.0)) == [0, 0, 0, 0x80])
  }

  @Test func numberOutsideFloat32IsRefused() throws {
    let codec = try Codec.scalar(.float32)
    let most = Double(Float.greatestFiniteMagnitude)
    for value in [3.5e38, -3.5e38] {
      #expect(throws: CodecError.range(value: value, allowed: -most...most)) {
        try codec.encode(.number(value))
      }
    }
  }

  @Test func floatAcceptsAnInteger() throws {
    #expect(try Codec.scalar(.float32).encode(.integer(1)) == [0, 0, 0x80, 0x3F])
    #expect(throws: CodecError.kind(expected: "a number", found: "text")) {
      try Codec.scalar(.float64).encode(.text("1"))
    }
  }
}

@Suite struct BoolTextAndBytesCodecTests {
  @Test func boolIsTrueForAnyNonZeroByte() throws {
    #expect(try Codec.bool.decode([0]) == .bool(false))
    #expect(try Codec.bool.decode([1]) == .bool(true))
    #expect(try Codec.bool.decode([0xFF]) == .bool(true))
    #expect(try Codec.bool.encode(.bool(true)) == [1])
    #expect(try Codec.bool.encode(.bool(false)) == [0])
    #expect(throws: CodecError.kind(expected: "true or false", found: "a number")) {
      try Codec.bool.encode(.integer(1))
    }
  }

  @Test(arguments: ["", "a", "temperature", "21 °C 🌡", "line\n", "zero\0", "\u{FEFF}mark"])
  func textIsCodedAsUTF8(text: String) throws {
    #expect(try Codec.utf8.decode(Array(text.utf8)) == .text(text))
    #expect(try Codec.utf8.encode(.text(text)) == Array(text.utf8))
  }

  @Test(
    arguments: [
      [0xFF], [0xC3], [0x61, 0x80], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80], [0xE2, 0x82],
    ] as [[UInt8]])
  func invalidUTF8IsRefused(bytes: [UInt8]) {
    #expect(throws: CodecError.notUTF8(bytes)) { try Codec.utf8.decode(bytes) }
  }

  @Test func textAndBytesAreLimitedTo512Bytes() throws {
    let long = String(repeating: "a", count: 512)
    #expect(try Codec.utf8.encode(.text(long)).count == 512)
    #expect(throws: CodecError.tooLong(count: 513, most: 512)) { try Codec.utf8.encode(.text(long + "a")) }
    #expect(throws: CodecError.tooLong(count: 513, most: 512)) {
      try Codec.bytes.encode(.bytes([UInt8](repeating: 1, count: 513)))
    }
    #expect(throws: CodecError.kind(expected: "text", found: "a number")) {
      try Codec.utf8.encode(.integer(1))
    }
    #expect(throws: CodecError.kind(expected: "bytes", found: "text")) { try Codec.bytes.encode(.text("00")) }
  }

  @Test func textAndBytesMayHaveAFixedSize() throws {
    let text = try Codec(.scalar(Codec.Scalar(.utf8, size: 6)))
    #expect(text.width == 6 && text.fits(6) && !text.fits(5))
    #expect(try text.decode(Array("3.2.1\0".utf8)) == .text("3.2.1"))
    // What follows the end of a string is left from a longer one.
    #expect(try text.decode(Array("ab\0cd\0".utf8)) == .text("ab"))
    #expect(try text.encode(.text("é")) == [0xC3, 0xA9, 0, 0, 0, 0])
    #expect(try text.encode(.text("123456")) == Array("123456".utf8))
    #expect(throws: CodecError.tooLong(count: 7, most: 6)) { try text.encode(.text("1234567")) }
    #expect(throws: CodecError.length(expected: 6, bytes: [0x61])) { try text.decode([0x61]) }

    let bytes = try Codec(.scalar(Codec.Scalar(.bytes, size: 2)))
    #expect(try bytes.decode([0, 1]) == .bytes([0, 1]) && bytes.encode(.bytes([2, 3])) == [2, 3])
    #expect(throws: CodecError.length(expected: 2, bytes: [1])) { try bytes.encode(.bytes([1])) }

    let record = try Codec.record([
      Codec.Field("address", Codec.Scalar(.bytes, size: 3)),
      Codec.Field("version", Codec.Scalar(.utf8, size: 4)),
      Codec.Field("level", .uint8),
    ])
    let value = Value.record([.bytes([1, 2, 3]), .text("1.0"), .integer(9)])
    #expect(try record.decode([1, 2, 3, 0x31, 0x2E, 0x30, 0, 9]) == value)
    #expect(try record.encode(value) == [1, 2, 3, 0x31, 0x2E, 0x30, 0, 9])
    let list = try Codec(.list(of: .scalar(Codec.Scalar(.bytes, size: 2))))
    #expect(try list.decode([1, 2, 3, 4]) == .list([.bytes([1, 2]), .bytes([3, 4])]))
  }

  @Test(arguments: [[], [0], [0xFF, 0x00, 0x80]] as [[UInt8]])
  func bytesAreUnchanged(bytes: [UInt8]) throws {
    #expect(try Codec.bytes.decode(bytes) == .bytes(bytes))
    #expect(try Codec.bytes.encode(.bytes(bytes)) == bytes)
  }
}

@Suite struct EnumerationCodecTests {
  let codec: Codec

  init() throws { codec = try Codec.scalar(.uint8, values: [0: "closed", 1: "open", 7: "error"]) }

  @Test func wordsStandForTheirNumbers() throws {
    #expect(codec.words == [0: "closed", 1: "open", 7: "error"])
    #expect(try codec.decode([1]) == .text("open"))
    #expect(try codec.decode([7]) == .text("error"))
    #expect(try codec.encode(.text("open")) == [1])
    #expect(try codec.encode(.integer(7)) == [7])
  }

  @Test func numberWithoutAWordIsDecodedAsAnInteger() throws {
    #expect(try codec.decode([2]) == .integer(2))
    #expect(try codec.decode([0xFF]) == .integer(255))
  }

  @Test func onlyEnumeratedValuesAreEncoded() {
    let known = ["closed", "open", "error"]
    #expect(throws: CodecError.word("ajar", known: known)) { try codec.encode(.text("ajar")) }
    #expect(throws: CodecError.word("2", known: known)) { try codec.encode(.integer(2)) }
    #expect(throws: CodecError.word("300", known: known)) { try codec.encode(.integer(300)) }
    #expect(throws: CodecError.kind(expected: "a word or its number", found: "true or false")) {
      try codec.encode(.bool(true))
    }
    #expect(codec.range == nil)
  }

  @Test func negativeNumbersCanHaveWords() throws {
    let codec = try Codec.scalar(.int16, endian: .big, values: [-1: "unknown", 0x0102: "known"])
    #expect(try codec.decode([0xFF, 0xFF]) == .text("unknown"))
    #expect(try codec.encode(.text("known")) == [1, 2])
  }
}

/// Numbers that are none: unknown to the peripheral, or damaged on the way.
@Suite struct UnknownValueTests {
  @Test func anUnknownValueIsNoNumber() throws {
    let codec = try Codec(.scalar(Codec.Scalar(.int16, scale: 0.01, unknown: [-32768, 32767])))
    #expect(try codec.decode([0x00, 0x80]) == .unknown)
    #expect(try codec.decode([0xFF, 0x7F]) == .unknown)
    #expect(try codec.decode([0xFE, 0x7F]) == .number(327.66))
    #expect(Value.unknown.doubleValue == nil && Value.unknown.adding(1) == .unknown)
    // What libraries of the DS18B20 report without a sensor, and before it has measured.
    let text = try Codec(.scalar(Codec.Scalar(.decimal, scale: 0.1, unknown: [-127, 85])))
    #expect(try text.decode(Array("-127.00".utf8)) == .unknown)
    #expect(try text.decode(Array("85.00\r\n".utf8)) == .unknown)
    #expect(try text.decode(Array("85.5".utf8)) == .number(8.55))
  }

  @Test func whatIsNotValidIsMalformed() throws {
    let codec = try Codec(.scalar(Codec.Scalar(.uint8, unknown: [255], valid: 0...100)))
    #expect(try codec.decode([100]) == .integer(100))
    #expect(throws: CodecError.range(value: 101, allowed: 0...100)) { try codec.decode([101]) }
    #expect(try codec.decode([255]) == .unknown)
    let float = try Codec(.scalar(Codec.Scalar(.float32, valid: -40...85)))
    #expect(throws: CodecError.self) { try float.decode([0, 0, 0x80, 0x43]) }
    // No number at all.
    #expect(try float.decode([0, 0, 0xC0, 0x7F]).doubleValue?.isNaN == true)
  }

  @Test func theOtherFieldsOfARecordAreKnown() throws {
    let codec = try Codec.record([
      Codec.Field("a", Codec.Scalar(.uint8, unknown: [255])),
      Codec.Field("b", Codec.Scalar(.uint8, valid: 0...9)),
    ])
    #expect(try codec.decode([255, 5]) == .record([nil, .integer(5)]))
    #expect(throws: CodecError.field("b", .range(value: 10, allowed: 0...9))) { try codec.decode([1, 10]) }
  }

  /// A value between others, and only in data that is meant.
  @Test func aSourceSaysWhereItsValueIs() {
    let source = Property.Source(.manufacturer(1), prefix: [5], length: 4, position: 2)
    #expect(source.value(in: [5, 1, 2, 3], width: 1) == [2])
    #expect(source.value(in: [5, 1, 2, 3], width: nil) == [2, 3])
    #expect(source.value(in: [5, 1, 2], width: 1) == nil && source.value(in: [6, 1, 2, 3], width: 1) == nil)
    #expect(Property.Source(.manufacturer(1), position: 9).value(in: [1], width: 2) == [])
  }
}
