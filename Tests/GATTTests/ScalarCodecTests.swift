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

@Suite struct ScaleTests {
  /// A plain floating-point multiplication would give each of these spurious digits at its end.
  @Test(
    arguments: [
      (Codec.ScalarType.int16, 0.01, nil, 2153, 21.53), (.int16, 0.01, nil, -27315, -273.15),
      (.uint16, 0.01, nil, 5507, 55.07), (.uint32, 0.1, nil, 1_013_253, 101_325.3),
      (.uint16, 0.1, -40, 613, 21.3), (.uint8, 0.3, nil, 3, 0.9), (.uint16, 0.02, -273.15, 14727, 21.39),
      (.uint16, 0.0009765625, nil, 1024, 1), (.uint16, 0.0009765625, nil, 1, 0.0009765625),
      (.uint24, 1e-3, nil, 1_234_567, 1234.567), (.int8, 0.5, nil, -128, -64),
      (.int32, 1e-7, nil, 521_234_567, 52.1234567),
    ] as [(Codec.ScalarType, Double?, Double?, Int, Double)])
  func scaledValueIsAnExactDecimal(
    type: Codec.ScalarType, scale: Double?, offset: Double?, raw: Int, value: Double
  ) throws {
    let plain = try Codec.scalar(type)
    let codec = try Codec.scalar(type, scale: scale, offset: offset)
    let bytes = try plain.encode(.integer(raw))
    #expect(try codec.decode(bytes) == .number(value))
    #expect(try codec.encode(.number(value)) == bytes)
  }

  /// JSON readers and Home Assistant expect 1000, not 1000.0.
  @Test(
    arguments: [
      (Codec.ScalarType.uint8, 500, nil, 2, 1000), (.int8, -1, nil, 5, -5), (.uint8, 5, 100, 3, 115),
      (.uint8, nil, -40, 255, 215), (.uint64, 2, nil, 500, 1000), (.uint8, 1e10, nil, 255, 2_550_000_000_000),
    ] as [(Codec.ScalarType, Double?, Double?, Int, Int)])
  func wholeScaleKeepsNumbersWhole(
    type: Codec.ScalarType, scale: Double?, offset: Double?, raw: Int, value: Int
  ) throws {
    let codec = try Codec.scalar(type, scale: scale, offset: offset)
    let bytes = try Codec.scalar(type).encode(.integer(raw))
    #expect(try codec.decode(bytes) == .integer(value))
    #expect(try codec.encode(.integer(value)) == bytes)
  }

  /// Glucose in kg/L as mg/dL, Fahrenheit, mV.
  @Test(
    arguments: [
      (Codec.ScalarType.sfloat, 100_000, nil, 0.00091, 91), (.float, 0.1, nil, -36.5, -3.65),
      (.float32, 1.8, 32, 21.3, 70.34), (.float64, nil, -273.15, 300, 26.85),
      (.decimal, 0.001, nil, 2953, 2.953), (.float32, 1e-12, nil, 1.5, 1.5e-12),
      (.float, 0.001, nil, 4.56e-6, 4.56e-9), (.float64, 0.5, nil, 0, 0),
      (.float32, 100, nil, 1e30, 1e32), (.sfloat, 100, nil, .infinity, .infinity),
    ] as [(Codec.ScalarType, Double?, Double?, Double, Double)])
  func numbersWithAFractionAreScaled(
    type: Codec.ScalarType, scale: Double?, offset: Double?, raw: Double, value: Double
  ) throws {
    let codec = try Codec.scalar(type, scale: scale, offset: offset)
    let bytes = try Codec.scalar(type).encode(.number(raw))
    #expect(try codec.decode(bytes) == .number(value))
    #expect(try codec.encode(.number(value)) == bytes)
    #expect(codec.step == nil)
  }

  @Test func theRangeOfScaledFractionsHasAnEnd() throws {
    let most = Double.greatestFiniteMagnitude
    #expect(try Codec.scalar(.float64, scale: 100).range == -most...most)
    #expect(
      try Codec.scalar(.decimal, scale: -0.001, offset: 5).range == -999_999_999_995...1_000_000_000_005)
    let codec = try Codec.scalar(.float32, scale: 0.1)
    let problem = error(of: CodecError.self) { try codec.encode(.number(3.5e37)) }
    #expect(problem?.description.hasPrefix("3.5e+37 is outside -3.40") == true)
    let limited = try Codec(.scalar(Codec.Scalar(.float32, scale: 100, valid: 0...100)))
    #expect(throws: CodecError.range(value: 150, allowed: 0...100)) {
      try limited.decode([0, 0, 0xC0, 0x3F])
    }
  }

  @Test func encodesTheNearestRepresentableValue() throws {
    let codec = try Codec.scalar(.uint8, scale: 0.5)
    #expect(try codec.encode(.number(10.2)) == [20])
    #expect(try codec.encode(.number(10.3)) == [21])
    #expect(try codec.encode(.integer(10)) == [20])
    #expect(codec.range == 0...127.5)
    for value in [-0.3, 128, 1e300, -1e300, .infinity] {
      #expect(throws: CodecError.range(value: value, allowed: 0...127.5)) {
        try codec.encode(.number(value))
      }
    }
    #expect(error(of: CodecError.self) { try codec.encode(.number(.nan)) } != nil)
  }

  @Test func negativeScaleReversesTheRange() throws {
    #expect(try Codec.scalar(.uint8, scale: -2, offset: 1).range == -509...1)
  }

  /// A third is no decimal fraction.
  @Test func anyScaleWorks() throws {
    let codec = try Codec.scalar(.int16, scale: 1.0 / 3, offset: 0.1)
    let plain = try Codec.scalar(.int16)
    for raw in [-32768, -1, 0, 1, 3, 32767] {
      let bytes = try plain.encode(.integer(raw))
      #expect(try codec.decode(bytes) == .number(Double(raw) * (1.0 / 3) + 0.1))
      #expect(try codec.encode(try codec.decode(bytes)) == bytes)
    }
  }
}

@Suite struct CodecErrorTests {
  @Test func showsTheBytesUpToALimit() {
    func text(_ expected: Int, _ bytes: [UInt8]) -> String {
      CodecError.length(expected: expected, bytes: bytes).description
    }
    #expect(text(1, []) == "expected 1 byte, got 0")
    #expect(text(2, [0x0A, 0xFF, 0x00]) == "expected 2 bytes, got 3: 0a ff 00")
    let long = text(1, [UInt8](repeating: 0xAB, count: 512))
    #expect(long.hasPrefix("expected 1 byte, got 512: ab ab"))
    #expect(long.hasSuffix("ab …"))
    #expect(long.utf8.count < 100)
  }

  @Test(arguments: [
    (CodecError.range(value: -1, allowed: 0...65535), "-1 is outside 0…65535"),
    (.range(value: 128, allowed: 0...127.5), "128 is outside 0…127.5"),
    (.tooShort(needed: 3, bytes: [1, 2]), "expected at least 3 bytes, got 2: 01 02"),
    (.notUTF8([0xFF]), "not UTF-8: ff"),
    (.notEddystoneURL([0xEB, 9]), "not an address of Eddystone-URL: eb 09"),
    (.tooLarge(.max), "18446744073709551615 is above 9223372036854775807"),
    (.kind(expected: "a number", found: "text"), "expected a number, got text"),
    (.word("ajar", known: ["closed", "open"]), #""ajar" is not one of closed, open"#),
    (.tooLong(count: 21, most: 20), "21 bytes are more than 20"),
    (.field("bpm", .missingField), "bpm: missing"),
    (.presence, "these fields cannot be present and missing together"),
  ])
  func errorDescriptionIsAPlainSentence(error: CodecError, text: String) {
    #expect(error.description == text)
  }
}
