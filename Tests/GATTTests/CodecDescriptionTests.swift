import GATT
import Testing

@Suite struct CodecDescriptionTests {
  static let scalars: [(Codec.Scalar, ProfileError)] = [
    (Codec.Scalar(.uint8, scale: 0), scale("0.0")),
    (Codec.Scalar(.uint8, scale: .infinity), scale("inf")),
    (Codec.Scalar(.uint16, scale: 1e308), scale("1e+308")),
    (Codec.Scalar(.uint8, offset: .infinity), ProfileError(["offset"], "inf is not a usable offset")),
    (Codec.Scalar(.float32, scale: 0), scale("0.0")),
    (Codec.Scalar(.sfloat, offset: .infinity), ProfileError(["offset"], "inf is not a usable offset")),
    (Codec.Scalar(.bool, offset: 1), ProfileError(["offset"], "only numbers have offset")),
    (Codec.Scalar(.bytes, scale: 2, size: 2), ProfileError(["scale"], "only numbers have scale")),
    (Codec.Scalar(.utf8, values: [0: "a"]), .notAnInteger(key: "values", type: .utf8)),
    (
      Codec.Scalar(.uint8, scale: 2, values: [0: "a"]),
      ProfileError(["values"], "an enumeration has no scale and no offset")
    ),
    (Codec.Scalar(.uint8, values: [256: "a"]), .number(256, type: .uint8)),
    (Codec.Scalar(.int8, values: [-129: "a"]), .number(-129, type: .int8)),
    (Codec.Scalar(.uint8, values: [0: ""]), ProfileError(["values"], "a word is empty")),
    (Codec.Scalar(.uint8, size: 2), size("only utf8 and bytes have a size, not uint8")),
    (Codec.Scalar(.decimal, size: 2), size("only utf8 and bytes have a size, not decimal")),
    (Codec.Scalar(.bytes, size: 513), size("513 is no size: 1 to 512")),
    (
      Codec.Scalar(.uint8, values: [0: "a", 1: "a"]),
      ProfileError(["values"], "\"a\" stands for two numbers")
    ),
  ]

  static func scale(_ scale: String) -> ProfileError {
    ProfileError(["scale"], "\(scale) is not a usable scale")
  }

  static func size(_ description: String) -> ProfileError { ProfileError(["size"], description) }

  @Test(arguments: scalars)
  func refusesInvalidScalars(scalar: Codec.Scalar, expected: ProfileError) {
    #expect(throws: expected) { try Codec(.scalar(scalar)) }
    #expect(throws: expected.inside(["fields", .index(1)])) {
      try Codec(.record([Codec.Field("a", .uint8), Codec.Field("b", scalar)]))
    }
    #expect(!expected.description.isEmpty)
  }

  @Test func nanScaleOrOffsetIsRefused() {
    for scalar in [Codec.Scalar(.uint8, scale: .nan), Codec.Scalar(.uint8, offset: .nan)] {
      #expect(error(of: ProfileError.self) { try Codec(.scalar(scalar)) } != nil)
    }
  }

  static let flags = Codec.Field("flags", .uint8, isHidden: true)

  static func name(_ description: String) -> ProfileError { ProfileError(["name"], description) }

  static func condition(_ description: String, in key: String = "if") -> ProfileError {
    ProfileError([.key(key)], description)
  }

  static let duplicate = name(
    "there is another a that may be present at the same time: give both the same flag, "
      + "one as \"if\" and one as \"unless\"")

  static let unusable = condition(
    "f.0: f must be an integer that is always present, behind no field that is not")

  /// The last field is the invalid one.
  static let records: [([Codec.Field], ProfileError)] = [
    ([Codec.Field("", .uint8)], name("\"\" is not a name: use a-z, 0-9 and _, beginning with a letter")),
    (
      [Codec.Field("heartRate", .uint8)],
      name("\"heartRate\" is not a name: use a-z, 0-9 and _, beginning with a letter")
    ),
    (
      [Codec.Field("1st", .uint8)], name("\"1st\" is not a name: use a-z, 0-9 and _, beginning with a letter")
    ),
    ([Codec.Field("a", .uint8), Codec.Field("a", .uint16)], duplicate),
    ([flags, Codec.Field("a", .uint8, if: ["flags.0"]), Codec.Field("a", .uint8)], duplicate),
    (
      [flags, Codec.Field("a", .uint8, if: ["flags.0"]), Codec.Field("a", .uint8, unless: ["flags.1"])],
      duplicate
    ),
    (
      [Codec.Field("a", .utf8), Codec.Field("b", .uint8)], name("a before it takes all the bytes that remain")
    ),
    (
      [Codec.Field("a", .uint8, isRepeated: true), Codec.Field("b", .uint8)],
      name("a before it takes all the bytes that remain")
    ),
    ([Codec.Field("a", .bytes, isRepeated: true)], .notRepeatable),
    (
      [Codec.Field("a", .uint8, if: ["flags.0"])],
      condition("flags.0: there is no field flags before this one")
    ),
    (
      [flags, Codec.Field("a", .uint8, if: ["flag.0"])],
      condition("flag.0: there is no field flag before this one")
    ),
    (
      [flags, Codec.Field("a", .uint8, unless: ["flags.8"])],
      condition("flags.8: flags has the bits 0 to 7", in: "unless")
    ),
    ([Codec.Field("f", .bool), Codec.Field("a", .uint8, if: ["f.0"])], unusable),
    ([Codec.Field("f", .float32), Codec.Field("a", .uint8, if: ["f.0"])], unusable),
    (
      [flags, Codec.Field("f", .uint8, if: ["flags.0"]), Codec.Field("a", .uint8, if: ["f.0"])],
      unusable
    ),
    (
      [
        flags, Codec.Field("b", .uint8, if: ["flags.0"]), Codec.Field("f", .uint8),
        Codec.Field("a", .uint8, if: ["f.0"]),
      ],
      unusable
    ),
    (
      [flags, Codec.Field("a", .uint8, if: ["flags.0"], unless: ["flags.0"])],
      condition("flags.0 cannot be both set and clear", in: "unless")
    ),
    (
      [flags, Codec.Field("more", .uint8), Codec.Field("a", .uint8, if: ["flags.0"], unless: ["more.1"])],
      condition("the flags are in two fields, flags and more: only one is supported", in: "unless")
    ),
  ]

  @Test(arguments: records)
  func refusesInvalidFields(fields: [Codec.Field], expected: ProfileError) {
    let error = expected.inside(["fields", .index(fields.count - 1)])
    #expect(throws: error) { try Codec(.record(fields)) }
    #expect(error.description == expected.description && !expected.path.isEmpty)
    #expect(error.path == ["fields", .index(fields.count - 1)] + expected.path)
  }

  @Test func refusesRecordsWithoutVisibleFields() {
    let expected = ProfileError(["fields"], "there is no field that is not hidden")
    #expect(throws: expected) { try Codec(.record([])) }
    #expect(throws: expected) { try Codec(.record([Self.flags])) }
  }

  @Test func refusesRecordsLongerThanACharacteristic() throws {
    let fields = (0..<65).map { Codec.Field("f\($0)", .uint64) }
    let expected = ProfileError(
      ["fields"], "520 bytes are more than the 512 that a characteristic can have")
    #expect(throws: expected) { try Codec(.record(fields)) }
    #expect(throws: Never.self) { try Codec(.record(Array(fields.dropLast()))) }
  }

  @Test(
    arguments: [
      .scalar(Codec.Scalar(.utf8)), .scalar(Codec.Scalar(.bytes)), .scalar(Codec.Scalar(.decimal)),
      .list(of: .scalar(Codec.Scalar(.uint8))), .record([Codec.Field("a", .utf8)]),
      .record([Codec.Field("a", .uint8, isRepeated: true)]),
    ] as [Codec.Description])
  func refusesListsOfVariableLengthElements(element: Codec.Description) {
    #expect(throws: ProfileError.notRepeatable) { try Codec(.list(of: element)) }
  }

  /// Both take all remaining bytes, but only one of them is present.
  @Test func alternativesMayBothTakeRemainingBytes() throws {
    let codec = try Codec.record([
      Self.flags, Codec.Field("rr", .uint8, isRepeated: true, unless: ["flags.0"]),
      Codec.Field("rr", .uint16, isRepeated: true, if: ["flags.0"]),
    ])
    #expect(try codec.decode([0, 1, 2]) == .record([.list([.integer(1), .integer(2)])]))
    #expect(try codec.decode([1, 1, 2]) == .record([.list([.integer(0x201)])]))
  }

  @Test func codecsWithEqualDescriptionsAreEqual() throws {
    #expect(try Codec.scalar(.int8) == .int8)
    #expect(try Codec.scalar(.int8, scale: 1) != .int8)
    #expect(try Codec.scalar(.utf8) == .utf8)
    #expect(try Codec.scalar(.utf8) != .bytes)
  }

  @Test(arguments: [
    ("flags.0", "flags", 0), ("flags.15", "flags", 15), ("a_1.63", "a_1", 63),
  ])
  func flagsAreParsed(text: String, field: String, bit: Int) {
    let flag = Codec.Flag(text)
    #expect(flag == Codec.Flag(field: field, bit: bit))
    #expect(flag?.description == text)
  }

  @Test(arguments: [
    "", ".", "flags", "flags.", ".0", "flags.-1", "flags.+1", "flags.x", "flags.100", "flags.٣",
    "a.b.2", "f·.0",
  ])
  func invalidFlagsAreRefused(text: String) {
    #expect(Codec.Flag(text) == nil)
  }
}
