import GATT
import JSON
import Testing

/// Numbers of some bits, and bits that are a bool.
@Suite struct BitsCodecTests {
  private static func number(
    _ type: Codec.ScalarType, _ bits: Range<Int>, scale: Double? = nil, offset: Double? = nil,
    endian: Codec.Endian = .little, values: [Int: String] = [:], unknown: [Int] = [],
    valid: ClosedRange<Double>? = nil
  ) throws -> Codec {
    try Codec(
      .scalar(
        Codec.Scalar(
          type, scale: scale, offset: offset, endian: endian, values: values, unknown: unknown, valid: valid,
          bits: bits)))
  }

  private static func bit(_ bit: Int) -> Codec.Scalar { Codec.Scalar(.bool, bits: bit..<bit + 1) }

  @Test func theOtherBitsAreNoPartOfTheNumber() throws {
    let level = try Self.number(.uint8, 0..<7)
    #expect(try level.decode([0xE4]) == .integer(100))
    #expect(level.range == 0...127 && level.step == 1 && level.width == 1)
    #expect(try level.encode(.integer(100)) == [100])
    #expect(throws: CodecError.range(value: 128, allowed: 0...127)) { try level.encode(.integer(128)) }
    // Bits 14 and 15 of a number of two bytes.
    #expect(try Self.number(.uint16, 14..<16).decode([0xB6, 0xC3]) == .integer(3))
    #expect(try Self.number(.uint16, 0..<14).decode([0xB6, 0xC3]) == .integer(950))
    #expect(try Self.number(.uint16, 0..<14, endian: .big).decode([0xC3, 0xB6]) == .integer(950))
    #expect(try Self.number(.uint16, 14..<16, endian: .big).encode(.integer(2)) == [0x80, 0])
    #expect(throws: CodecError.length(expected: 2, bytes: [1])) {
      try Self.number(.uint16, 0..<14).decode([1])
    }
  }

  @Test func theyAreScaledNamedAndChecked() throws {
    #expect(try Self.number(.uint8, 0..<7, offset: -40).decode([0xC3]) == .integer(27))
    #expect(try Self.number(.uint8, 0..<7, scale: 0.03125).decode([0xF2]) == .number(3.5625))
    #expect(try Self.number(.uint8, 0..<7, offset: -40).range == -40...87)
    let words = try Self.number(.uint8, 4..<6, values: [0: "bad", 3: "good"])
    #expect(try words.decode([0x3F]) == .text("good") && words.decode([0x1F]) == .integer(1))
    #expect(try Self.number(.uint8, 0..<7, unknown: [127]).decode([0xFF]) == .unknown)
    #expect(throws: CodecError.range(value: 101, allowed: 0...100)) {
      try Self.number(.uint8, 0..<7, valid: 0...100).decode([0xE5])
    }
  }

  @Test func aBitIsTrueOrFalse() throws {
    let codec = try Codec(.scalar(Self.bit(4)))
    #expect(try codec.decode([0x10]) == .bool(true) && codec.decode([0xEF]) == .bool(false))
    #expect(try codec.encode(.bool(true)) == [0x10] && codec.encode(.bool(false)) == [0])
    #expect(codec.content == .bool && codec.width == 1)
    let inverted = try Codec(.scalar(Codec.Scalar(.bool, bits: 4..<5, isInverted: true)))
    #expect(try inverted.decode([0x10]) == .bool(false) && inverted.decode([0xEF]) == .bool(true))
    #expect(try inverted.encode(.bool(true)) == [0] && inverted.encode(.bool(false)) == [0x10])
    #expect(throws: ProfileError(["inverted"], "only a bool is inverted")) {
      try Codec(.scalar(Codec.Scalar(.uint8, isInverted: true)))
    }
  }

  @Test func allBitsOfTheLargestNumber() throws {
    #expect(try Self.number(.uint64, 0..<64).decode([1, 0, 0, 0, 0, 0, 0, 0]) == .integer(1))
    let most = UInt64.max
    #expect(throws: CodecError.tooLarge(most)) {
      try Self.number(.uint64, 0..<64).decode([UInt8](repeating: 0xFF, count: 8))
    }
    let upper = try Self.number(.uint64, 1..<64)
    #expect(try upper.decode([UInt8](repeating: 0xFF, count: 8)) == .integer(.max))
    #expect(try upper.encode(.integer(.max)) == [0xFE] + [UInt8](repeating: 0xFF, count: 7))
  }

  @Test(arguments: [
    (Codec.Scalar(.uint8, bits: 0..<9), "bits", "there are no bits 0 to 8: the bits are 0 to 7"),
    (Codec.Scalar(.uint16, bits: 10..<17), "bits", "there are no bits 10 to 16: the bits are 0 to 15"),
    (Codec.Scalar(.uint8, bits: 3..<3), "bits", "0 bits have no number"),
    (Codec.Scalar(.int8, bits: 0..<4), "bits", "only unsigned integers have bits, not int8"),
    (Codec.Scalar(.decimal, bits: 0..<4), "bits", "only unsigned integers have bits, not decimal"),
    (bit(8), "bit", "there is no bit 8: the bits are 0 to 7"),
    (Codec.Scalar(.uint8, values: [4: "x"], bits: 0..<2), "values", "4 does not fit into 2 bits"),
    (Codec.Scalar(.uint8, unknown: [128], bits: 0..<7), "unknown", "128 does not fit into 7 bits"),
  ])
  func otherBitsAreRefused(scalar: Codec.Scalar, key: String, problem: String) {
    let error = error(of: ProfileError.self) { try Codec(.scalar(scalar)) }
    #expect(error?.path == [.key(key)])
    #expect(error?.description.hasPrefix(problem) == true, "\(error?.description ?? "")")
  }

  // MARK: Fields

  private static let flags = Codec.Field("flags", .uint16, isHidden: true)

  private static func part(_ name: String, _ scalar: Codec.Scalar, if set: [Codec.Flag] = []) -> Codec.Field {
    Codec.Field(name, scalar, of: "flags", if: set)
  }

  @Test func fieldsShareTheBytesOfAHiddenOne() throws {
    let codec = try Codec.record([
      Self.flags, Self.part("open", Self.bit(9)),
      Self.part("quality", Codec.Scalar(.uint8, bits: 4..<6)),
      Codec.Field("level", .uint8, unless: ["flags.0"]), Codec.Field("level", .uint16, if: ["flags.0"]),
      Self.part("contact", Self.bit(1), if: ["flags.2"]),
    ])
    #expect(codec.fields == ["open", "quality", "level", "contact"])
    #expect(codec.content(of: "open") == .bool && codec.content(of: "quality") == .number(step: 1))
    #expect(codec.fits(2) && codec.fits(5) && !codec.fits(1) && !codec.fits(6))
    let decoded = try codec.decode([0x26, 0x02, 7])
    #expect(decoded == .record([.bool(true), .integer(2), .integer(7), .bool(true)]))
    #expect(try codec.encode(decoded) == [0x26, 0x02, 7])
    let long = try codec.decode([0x31, 0, 1, 2])
    #expect(long == .record([.bool(false), .integer(3), .integer(0x201), nil]))
    #expect(try codec.encode(long) == [0x31, 0, 1, 2])
    #expect(throws: CodecError.tooShort(needed: 2, bytes: [1])) { try codec.decode([1]) }
    // What has conditions may come before.
    let list = try Codec(
      .list(of: .record([Codec.Field("flags", .uint8, isHidden: true), Self.part("on", Self.bit(7))])))
    #expect(try list.decode([0x80, 0x7F]) == .list([.record([.bool(true)]), .record([.bool(false)])]))
  }

  @Test func aBitThatAFieldNeedsIsNotAnotherValue() throws {
    let codec = try Codec.record([
      Self.flags, Self.part("large", Self.bit(0)), Codec.Field("level", .uint8, unless: ["flags.0"]),
      Codec.Field("level", .uint16, if: ["flags.0"]),
    ])
    #expect(try codec.encode(.record([.bool(true), .integer(3)])) == [1, 0, 3, 0])
    #expect(throws: CodecError.presence) { try codec.encode(.record([.bool(false), .integer(300)])) }
  }

  @Test(arguments: [
    [Codec.Field("a", bit(0), of: "flags")],
    [Codec.Field("flags", .uint8), Codec.Field("a", bit(0), of: "flags")],
    [Codec.Field("flags", .utf8, isHidden: true), Codec.Field("a", bit(0), of: "flags")],
    [
      Codec.Field("n", .uint8), Codec.Field("flags", .uint8, isHidden: true, if: ["n.0"]),
      Codec.Field("a", bit(0), of: "flags"),
    ],
    [
      Codec.Field("n", .uint8), Codec.Field("b", .uint8, if: ["n.0"]),
      Codec.Field("flags", .uint8, isHidden: true),
      Codec.Field("a", bit(0), of: "flags"),
    ],
  ])
  func otherContainersAreRefused(fields: [Codec.Field]) {
    let error = error(of: ProfileError.self) { try Codec.record(fields) }
    let expected = ProfileError(
      ["fields", .index(fields.count - 1), "of"],
      "there is no hidden field flags before this one that is an integer, always present, "
        + "behind no field that is not")
    #expect(error == expected)
  }

  @Test func wrongPartsAreRefused() {
    func expect(
      _ field: Codec.Field, after other: Codec.Field = Self.flags, _ key: JSONStep,
      _ description: String
    ) {
      #expect(throws: ProfileError(["fields", .index(1), key], description)) {
        try Codec.record([other, field])
      }
    }
    expect(
      Codec.Field("a", Codec.Scalar(.uint8), of: "flags"), "of",
      "a part of another field needs \"bit\" or \"bits\"")
    expect(
      Codec.Field("a", Self.bit(0), of: "flags", isRepeated: true), "repeat",
      ProfileError.notRepeatable.description)
    expect(Self.part("a", Self.bit(16)), "bit", "there is no bit 16: the bits are 0 to 15")
    // Its bits are no flags of others.
    expect(
      Codec.Field("a", .uint8, if: ["part.0"]),
      after: Codec.Field("part", Codec.Scalar(.uint8, bits: 0..<4)), "if",
      "part.0: part must be an integer that is always present, behind no field that is not")
  }

  @Test func bitsAreOnlyReceived() throws {
    func error(_ description: Codec.Description) throws -> ProfileError? {
      let property = Property(
        name: "level", service: BluetoothUUID(short: 1), characteristic: BluetoothUUID(short: 2),
        access: [.read, .write], codec: try Codec(description))
      return GATTTests.error(of: ProfileError.self) { try Profile(name: "a", properties: [property]) }
    }
    let scalar = Codec.Scalar(.uint8, bits: 0..<7)
    #expect(try error(.scalar(scalar))?.path == ["properties", "level", "bits"])
    #expect(try error(.list(of: .scalar(Self.bit(0))))?.path == ["properties", "level", "bit"])
    #expect(
      try error(.record([Codec.Field("a", .uint8), Codec.Field("b", scalar)]))?.path
        == ["properties", "level", "fields", .index(1), "bits"])
    // What no field names is written as zeros, as any hidden bits.
    #expect(try error(.record([Self.flags, Self.part("a", scalar)])) == nil)
  }
}
