import GATT
import Testing

@Suite struct CodecDescriptionTests {
  static let scalars: [(Codec.Scalar, ProfileError)] = [
    (Codec.Scalar(.uint8, scale: 0), .scale(0)),
    (Codec.Scalar(.uint8, scale: .infinity), .scale(.infinity)),
    (Codec.Scalar(.uint16, scale: 1e308), .scale(1e308)),
    (Codec.Scalar(.uint8, offset: .infinity), .offset(.infinity)),
    (Codec.Scalar(.float32, scale: 0), .scale(0)),
    (Codec.Scalar(.sfloat, offset: .infinity), .offset(.infinity)),
    (Codec.Scalar(.bool, offset: 1), .notANumber(key: "offset")),
    (Codec.Scalar(.bytes, scale: 2, size: 2), .notANumber(key: "scale")),
    (Codec.Scalar(.utf8, values: [0: "a"]), .notAnInteger(key: "values", type: .utf8)),
    (Codec.Scalar(.uint8, scale: 2, values: [0: "a"]), .scaledEnumeration),
    (Codec.Scalar(.uint8, values: [256: "a"]), .number(256, type: .uint8)),
    (Codec.Scalar(.int8, values: [-129: "a"]), .number(-129, type: .int8)),
    (Codec.Scalar(.uint8, values: [0: ""]), .word("")),
    (Codec.Scalar(.uint8, size: 2), .size(2, type: .uint8)),
    (Codec.Scalar(.decimal, size: 2), .size(2, type: .decimal)),
    (Codec.Scalar(.bytes, size: 513), .size(513, type: .bytes)),
    (Codec.Scalar(.uint8, values: [0: "a", 1: "a"]), .word("a")),
  ]

  @Test(arguments: scalars)
  func refusesInvalidScalars(scalar: Codec.Scalar, expected: ProfileError) {
    #expect(throws: expected) { try Codec(.scalar(scalar)) }
    #expect(throws: ProfileError.field(index: 1, expected)) {
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

  /// The last field is the invalid one.
  static let records: [([Codec.Field], ProfileError)] = [
    ([Codec.Field("", .uint8)], .fieldName("")),
    ([Codec.Field("heartRate", .uint8)], .fieldName("heartRate")),
    ([Codec.Field("1st", .uint8)], .fieldName("1st")),
    ([Codec.Field("a", .uint8), Codec.Field("a", .uint16)], .duplicateField("a")),
    ([flags, Codec.Field("a", .uint8, if: ["flags.0"]), Codec.Field("a", .uint8)], .duplicateField("a")),
    (
      [flags, Codec.Field("a", .uint8, if: ["flags.0"]), Codec.Field("a", .uint8, unless: ["flags.1"])],
      .duplicateField("a")
    ),
    ([Codec.Field("a", .utf8), Codec.Field("b", .uint8)], .unreachable(after: "a")),
    ([Codec.Field("a", .uint8, isRepeated: true), Codec.Field("b", .uint8)], .unreachable(after: "a")),
    ([Codec.Field("a", .bytes, isRepeated: true)], .notRepeatable),
    ([Codec.Field("a", .uint8, if: ["flags.0"])], .unknownFlags("flags.0", in: "if")),
    ([flags, Codec.Field("a", .uint8, if: ["flag.0"])], .unknownFlags("flag.0", in: "if")),
    ([flags, Codec.Field("a", .uint8, unless: ["flags.8"])], .bit("flags.8", count: 8, in: "unless")),
    ([Codec.Field("f", .bool), Codec.Field("a", .uint8, if: ["f.0"])], .unusableFlags("f.0", in: "if")),
    ([Codec.Field("f", .float32), Codec.Field("a", .uint8, if: ["f.0"])], .unusableFlags("f.0", in: "if")),
    (
      [flags, Codec.Field("f", .uint8, if: ["flags.0"]), Codec.Field("a", .uint8, if: ["f.0"])],
      .unusableFlags("f.0", in: "if")
    ),
    (
      [
        flags, Codec.Field("b", .uint8, if: ["flags.0"]), Codec.Field("f", .uint8),
        Codec.Field("a", .uint8, if: ["f.0"]),
      ],
      .unusableFlags("f.0", in: "if")
    ),
    (
      [flags, Codec.Field("a", .uint8, if: ["flags.0"], unless: ["flags.0"])],
      .contradiction("flags.0", in: "unless")
    ),
    (
      [flags, Codec.Field("more", .uint8), Codec.Field("a", .uint8, if: ["flags.0"], unless: ["more.1"])],
      .severalFlags("flags", "more", in: "unless")
    ),
  ]

  @Test(arguments: records)
  func refusesInvalidFields(fields: [Codec.Field], expected: ProfileError) {
    let error = ProfileError.field(index: fields.count - 1, expected)
    #expect(throws: error) { try Codec(.record(fields)) }
    #expect(error.description == expected.description && !expected.path.isEmpty)
    #expect(error.path == ["fields", .index(fields.count - 1)] + expected.path)
  }

  @Test func refusesRecordsWithoutVisibleFields() {
    #expect(throws: ProfileError.noVisibleFields) { try Codec(.record([])) }
    #expect(throws: ProfileError.noVisibleFields) { try Codec(.record([Self.flags])) }
  }

  @Test func refusesRecordsLongerThanACharacteristic() throws {
    let fields = (0..<65).map { Codec.Field("f\($0)", .uint64) }
    #expect(throws: ProfileError.tooLong(520)) { try Codec(.record(fields)) }
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
    #expect(try Set([Codec.scalar(.utf8), .utf8, .bytes]).count == 2)
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
