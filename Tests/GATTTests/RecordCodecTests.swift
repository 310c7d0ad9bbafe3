import GATT
import Testing

/// Formats of the Bluetooth SIG (GATT Specification Supplement).
@Suite struct StandardFormatTests {
  /// 2A37: the flags say how wide the heart rate is, and which fields follow.
  static func heartRate() throws -> Codec {
    try .record([
      Codec.Field("flags", .uint8, isHidden: true),
      Codec.Field("bpm", .uint8, unless: ["flags.0"]),
      Codec.Field("bpm", .uint16, if: ["flags.0"]),
      Codec.Field("energy", .uint16, if: ["flags.3"]),
      Codec.Field("rr", Codec.Scalar(.uint16, scale: 1.0 / 1024), isRepeated: true, if: ["flags.4"]),
    ])
  }

  static let heartRates: [([UInt8], [Value?])] = [
    ([0x00, 60], [.integer(60), nil, nil]),
    ([0x01, 0x2C, 0x01], [.integer(300), nil, nil]),
    ([0x08, 72, 0x34, 0x12], [.integer(72), .integer(0x1234), nil]),
    (
      [0x10, 60, 0x00, 0x04, 0x00, 0x02],
      [.integer(60), nil, .list([.number(1), .number(0.5)])]
    ),
    (
      [0x19, 0x2C, 0x01, 0x01, 0x00, 0x39, 0x03],
      [.integer(300), .integer(1), .list([.number(0.8056640625)])]
    ),
    ([0x10, 60], [.integer(60), nil, .list([])]),
  ]

  @Test(arguments: heartRates)
  func heartRateFieldsFollowTheFlags(bytes: [UInt8], values: [Value?]) throws {
    let codec = try Self.heartRate()
    #expect(codec.fields == ["bpm", "energy", "rr"])
    #expect(try codec.decode(bytes) == .record(values))
    #expect(try codec.encode(.record(values)) == bytes)
  }

  /// Bits 1 and 2, the sensor contact, select no field.
  @Test func otherFlagsOfAHeartRateAreIgnored() throws {
    #expect(try Self.heartRate().decode([0x06, 60]) == .record([.integer(60), nil, nil]))
  }

  /// There are fewer or more bytes than the flags say.
  @Test(
    arguments: [
      ([], CodecError.tooShort(needed: 1, bytes: [])),
      ([0x00], .tooShort(needed: 2, bytes: [0x00])),
      ([0x01, 60], .tooShort(needed: 3, bytes: [0x01, 60])),
      ([0x08, 60], .tooShort(needed: 4, bytes: [0x08, 60])),
      ([0x08, 60, 1], .tooShort(needed: 4, bytes: [0x08, 60, 1])),
      ([0x00, 60, 0], .length(expected: 2, bytes: [0x00, 60, 0])),
      ([0x08, 60, 1, 2, 3], .length(expected: 4, bytes: [0x08, 60, 1, 2, 3])),
      ([0x10, 60, 0, 4, 0], .field("rr", .tooShort(needed: 6, bytes: [0x10, 60, 0, 4, 0]))),
    ] as [([UInt8], CodecError)])
  func lengthThatContradictsTheFlagsIsRefused(bytes: [UInt8], expected: CodecError) throws {
    let codec = try Self.heartRate()
    #expect(throws: expected) { try codec.decode(bytes) }
  }

  /// Name, type, scale, unit; bytes and value.
  @Test(
    arguments: [
      (Codec.ScalarType.int16, 0.01, [0x66, 0x08], 21.5),  // 2A6E, temperature in °C
      (.int16, 0.01, [0x18, 0xFC], -10),
      (.int16, 0.01, [0x00, 0x80], -327.68),  // "value is not known"
      (.uint16, 0.01, [0x83, 0x15], 55.07),  // 2A6F, humidity in %
      (.uint16, 0.01, [0x10, 0x27], 100),
      (.uint32, 0.1, [0xFD, 0x75, 0x0F, 0x00], 101_324.5),  // 2A6D, pressure in Pa
    ] as [(Codec.ScalarType, Double, [UInt8], Double)])
  func environmentalValuesAreScaledIntegers(
    type: Codec.ScalarType, scale: Double, bytes: [UInt8], value: Double
  ) throws {
    let codec = try Codec.scalar(type, scale: scale)
    #expect(try codec.decode(bytes) == .number(value))
    #expect(try codec.encode(.number(value)) == bytes)
  }

  /// 2A19, in %.
  @Test func batteryLevelIsOneByte() throws {
    #expect(try Codec.uint8.decode([87]) == .integer(87))
    #expect(throws: CodecError.length(expected: 1, bytes: [])) { try Codec.uint8.decode([]) }
  }

  /// 2A9D: one flag selects the unit, others select fields; the height depends on both.
  @Test func weightUnitsFollowTheFlags() throws {
    let codec = try Codec.record([
      Codec.Field("flags", .uint8, isHidden: true),
      Codec.Field("kg", Codec.Scalar(.uint16, scale: 0.005), unless: ["flags.0"]),
      Codec.Field("lb", Codec.Scalar(.uint16, scale: 0.01), if: ["flags.0"]),
      Codec.Field("user", .uint8, if: ["flags.2"]),
      Codec.Field("m", Codec.Scalar(.uint16, scale: 0.001), if: ["flags.3"], unless: ["flags.0"]),
      Codec.Field("in", Codec.Scalar(.uint16, scale: 0.1), if: ["flags.0", "flags.3"]),
    ])
    let metric: Value = .record([.number(80), nil, nil, .number(1.75), nil])
    #expect(try codec.decode([0x08, 0x80, 0x3E, 0xD6, 0x06]) == metric)
    #expect(try codec.encode(metric) == [0x08, 0x80, 0x3E, 0xD6, 0x06])
    let imperial: Value = .record([nil, .number(176.37), .integer(3), nil, .number(68.9)])
    #expect(try codec.decode([0x0D, 0xE5, 0x44, 0x03, 0xB1, 0x02]) == imperial)
    #expect(try codec.encode(imperial) == [0x0D, 0xE5, 0x44, 0x03, 0xB1, 0x02])
    // Metres can be combined only with kilograms.
    #expect(throws: CodecError.presence) {
      try codec.encode(.record([nil, .number(176.37), nil, .number(1.75), nil]))
    }
  }
}

@Suite struct RecordCodecTests {
  @Test func fieldsFollowOneAnother() throws {
    let codec = try Codec.record([
      Codec.Field("x", .int16), Codec.Field("y", .int16), Codec.Field("z", .int16),
    ])
    let bytes: [UInt8] = [0xF0, 0xFF, 0x04, 0x00, 0x04, 0xFC]
    let value: Value = .record([.integer(-16), .integer(4), .integer(-1020)])
    #expect(codec.fields == ["x", "y", "z"])
    #expect(try codec.decode(bytes) == value)
    #expect(try codec.encode(value) == bytes)
    for count in [0, 1, 5] {
      let short = Array(bytes.prefix(count))
      let needed = 2 * (count / 2 + 1)
      #expect(throws: CodecError.tooShort(needed: needed, bytes: short)) { try codec.decode(short) }
    }
    #expect(throws: CodecError.length(expected: 6, bytes: bytes + [0])) { try codec.decode(bytes + [0]) }
  }

  @Test func hiddenBytesAreSkippedAndWrittenAsZeros() throws {
    let codec = try Codec.record([
      Codec.Field("reserved", .uint16, isHidden: true), Codec.Field("value", .uint8),
      Codec.Field("rest", .bytes, isHidden: true),
    ])
    #expect(codec.fields == ["value"])
    #expect(try codec.decode([1, 2, 3, 4, 5, 6]) == .record([.integer(3)]))
    #expect(try codec.decode([1, 2, 3]) == .record([.integer(3)]))
    #expect(try codec.encode(.record([.integer(3)])) == [0, 0, 3])
  }

  /// A hidden uint64 may be anything.
  @Test func hiddenFieldIsNotDecoded() throws {
    let codec = try Codec.record([
      Codec.Field("id", .uint64, isHidden: true), Codec.Field("name", .utf8),
    ])
    let bytes = [UInt8](repeating: 0xFF, count: 8) + Array("a".utf8)
    #expect(try codec.decode(bytes) == .record([.text("a")]))
  }

  @Test func invalidUTF8ErrorNamesTheField() throws {
    let codec = try Codec.record([Codec.Field("number", .uint8), Codec.Field("name", .utf8)])
    #expect(try codec.decode([1]) == .record([.integer(1), .text("")]))
    #expect(try codec.decode([1, 0x61]) == .record([.integer(1), .text("a")]))
    #expect(throws: CodecError.field("name", .notUTF8([0xFF]))) { try codec.decode([1, 0xFF]) }
  }

  @Test func fieldsHaveTheirOwnWordsAndByteOrder() throws {
    let codec = try Codec.record([
      Codec.Field("state", Codec.Scalar(.uint8, values: [0: "off", 1: "on"])),
      Codec.Field("level", Codec.Scalar(.uint16, endian: .big)), Codec.Field("ok", .bool),
    ])
    #expect(codec.words == [:])
    #expect(try codec.decode([1, 1, 2, 0]) == .record([.text("on"), .integer(0x102), .bool(false)]))
    #expect(try codec.decode([5, 1, 2, 9]) == .record([.integer(5), .integer(0x102), .bool(true)]))
    #expect(throws: CodecError.field("state", .word("up", known: ["off", "on"]))) {
      try codec.encode(.record([.text("up"), .integer(1), .bool(true)]))
    }
  }

  @Test func visibleFlagsMustMatchTheFields() throws {
    let codec = try Codec.record([
      Codec.Field("flags", Codec.Scalar(.uint16, endian: .big)), Codec.Field("a", .uint8, if: ["flags.15"]),
    ])
    #expect(try codec.decode([0x80, 0, 7]) == .record([.integer(0x8000), .integer(7)]))
    #expect(try codec.encode(.record([.integer(0x8001), .integer(7)])) == [0x80, 1, 7])
    #expect(try codec.encode(.record([.integer(1), nil])) == [0, 1])
    #expect(throws: CodecError.presence) { try codec.encode(.record([.integer(0x8000), nil])) }
    #expect(throws: CodecError.presence) { try codec.encode(.record([.integer(0), .integer(7)])) }
    #expect(throws: CodecError.field("flags", .missingField)) {
      try codec.encode(.record([nil, .integer(7)]))
    }
  }

  /// Also one that is signed and scaled, and the highest bit of 64.
  @Test func everyIntegerCanHoldFlags() throws {
    let signed = try Codec.record([
      Codec.Field("flags", Codec.Scalar(.int8, scale: 0.5), isHidden: true),
      Codec.Field("a", .uint8, if: ["flags.7"]),
    ])
    #expect(try signed.encode(.record([.integer(1)])) == [0x80, 1])
    #expect(try signed.decode([0x80, 1]) == .record([.integer(1)]))
    let wide = try Codec.record([
      Codec.Field("flags", .uint64, isHidden: true), Codec.Field("a", .uint8, if: ["flags.63"]),
    ])
    #expect(try wide.decode([0, 0, 0, 0, 0, 0, 0, 0x80, 1]) == .record([.integer(1)]))
    #expect(try wide.encode(.record([nil])) == [UInt8](repeating: 0, count: 8))
  }

  /// One flag makes several fields wider: the first alternative of one may rule out that of another.
  @Test func compatibleAlternativesAreFound() throws {
    let codec = try Codec.record([
      Codec.Field("flags", .uint8, isHidden: true),
      Codec.Field("a", .uint8, unless: ["flags.0"]), Codec.Field("a", .uint16, if: ["flags.0"]),
      Codec.Field("b", .uint8, unless: ["flags.0"]), Codec.Field("b", .uint16, if: ["flags.0"]),
    ])
    #expect(try codec.encode(.record([.integer(5), .integer(6)])) == [0, 5, 6])
    #expect(try codec.encode(.record([.integer(5), .integer(300)])) == [1, 5, 0, 0x2C, 1])
    #expect(throws: CodecError.presence) { try codec.encode(.record([.integer(5), nil])) }
    #expect(throws: CodecError.field("b", .range(value: 70000, allowed: 0...65535))) {
      try codec.encode(.record([.integer(5), .integer(70000)]))
    }
  }

  /// Two bits must not both be set; clearing the first is ruled out by another field.
  @Test func absentFieldsAlsoDetermineTheFlags() throws {
    let codec = try Codec.record([
      Codec.Field("flags", .uint8, isHidden: true),
      Codec.Field("both", .uint8, if: ["flags.0", "flags.1"]),
      Codec.Field("first", .uint8, unless: ["flags.0"]), Codec.Field("last", .uint8),
    ])
    let value: Value = .record([nil, nil, .integer(9)])
    #expect(try codec.encode(value) == [1, 9])
    #expect(try codec.decode([1, 9]) == value)
  }

  /// Thirty flags without a solution.
  @Test func manyImpossibleAlternativesAreRefused() throws {
    var fields = [Codec.Field("flags", .uint32, isHidden: true)]
    for bit in 0..<30 {
      let flag = Codec.Flag(field: "flags", bit: bit)
      fields.append(Codec.Field("f\(bit)", .uint8, unless: [flag]))
      fields.append(Codec.Field("f\(bit)", .uint16, if: [flag]))
    }
    fields.append(Codec.Field("yes", .uint8, if: ["flags.31"]))
    fields.append(Codec.Field("no", .uint8, unless: ["flags.31"]))
    let codec = try Codec.record(fields)
    let numbers = [Value?](repeating: .integer(1), count: 30)
    #expect(throws: CodecError.presence) { try codec.encode(.record(numbers + [nil, nil])) }
    #expect(try codec.encode(.record(numbers + [.integer(1), nil])).count == 35)
  }

  @Test func otherShapesAreRefused() throws {
    let codec = try Codec.record([Codec.Field("x", .int16)])
    #expect(throws: CodecError.kind(expected: "a record", found: "a number")) {
      try codec.encode(.integer(1))
    }
    #expect(throws: CodecError.kind(expected: "a record of 1 fields", found: "one of 2")) {
      try codec.encode(.record([.integer(1), .integer(2)]))
    }
    #expect(throws: CodecError.field("x", .missingField)) { try codec.encode(.record([nil])) }
  }
}

@Suite struct ListCodecTests {
  /// As in the micro:bit's event service.
  @Test func listOfRecordsIsDecodedAndEncoded() throws {
    let codec = try Codec(
      .list(of: .record([Codec.Field("type", .uint16), Codec.Field("value", .uint16)])))
    let bytes: [UInt8] = [1, 0, 3, 0, 0x0D, 0, 11, 0]
    let value: Value = .list([
      .record([.integer(1), .integer(3)]), .record([.integer(13), .integer(11)]),
    ])
    #expect(codec.fields == ["type", "value"])
    #expect(try codec.decode(bytes) == value)
    #expect(try codec.encode(value) == bytes)
    #expect(try codec.decode([]) == .list([]))
    #expect(try codec.encode(.list([])) == [])
    #expect(throws: CodecError.tooShort(needed: 8, bytes: Array(bytes.prefix(7)))) {
      try codec.decode(Array(bytes.prefix(7)))
    }
    #expect(throws: CodecError.kind(expected: "a list", found: "a record")) {
      try codec.encode(.record([.integer(1), .integer(3)]))
    }
  }

  /// Flags belong to their own element.
  @Test func eachRecordHasItsOwnFlags() throws {
    let codec = try Codec(
      .list(
        of: .record([
          Codec.Field("flags", .uint8, isHidden: true), Codec.Field("a", .uint8, if: ["flags.0"]),
          Codec.Field("b", .uint8),
        ])))
    let value: Value = .list([.record([nil, .integer(7)]), .record([.integer(8), .integer(9)])])
    #expect(try codec.decode([0, 7, 1, 8, 9]) == value)
    #expect(try codec.encode(value) == [0, 7, 1, 8, 9])
    #expect(throws: CodecError.tooShort(needed: 5, bytes: [0, 7, 1, 8])) { try codec.decode([0, 7, 1, 8]) }
  }

  @Test func listOfScalarsIsDecodedAndEncoded() throws {
    let codec = try Codec(.list(of: .scalar(Codec.Scalar(.int16, scale: 0.1))))
    #expect(codec.fields == nil)
    #expect(try codec.decode([1, 0, 0xFF, 0xFF]) == .list([.number(0.1), .number(-0.1)]))
    #expect(try codec.encode(.list([.number(0.1), .integer(-1)])) == [1, 0, 0xF6, 0xFF])
    #expect(try codec.decode([]) == .list([]))
    #expect(throws: CodecError.tooShort(needed: 4, bytes: [1, 2, 3])) { try codec.decode([1, 2, 3]) }
    let long = Value.list([Value](repeating: .integer(0), count: 257))
    #expect(throws: CodecError.tooLong(count: 514, most: 512)) { try codec.encode(long) }
  }

  @Test func aListOfRecordsHasAWholeNumberOfThem() throws {
    let fields = [Codec.Field("a", .uint8), Codec.Field("b", .uint16)]
    let codec = try Codec(.list(of: .record(fields)))
    #expect([0, 3, 6].allSatisfy(codec.fits) && ![1, 2, 4, 5].contains(where: codec.fits))
  }
}
