import GATT
import JSON

/// The keys of the encoding of one value: of a property, or of a field.
struct ScalarKeys: ConfigurationSection {
  var type: Codec.ScalarType?
  var scale: Double?
  var offset: Double?
  var endian: Codec.Endian?
  var values: [Int: String]?
  var unknown: [Int]?
  var valid: ClosedRange<Double>?
  var bits: Range<Int>?
  var bit: Int?
  var isInverted: Bool?
  var size: Int?
  var rows: Int?
  var columns: Int?

  /// The keys but `type`, which a field must have and a property may do without.
  static let keys: [ConfigurationKey<Self>] = [
    ConfigurationKey("scale", \.scale, .optional(.number())),
    ConfigurationKey("offset", \.offset, .optional(.number())),
    ConfigurationKey("endian", \.endian, .optional(.choice)),
    ConfigurationKey("values", \.values, .optional(.words)),
    ConfigurationKey("unknown", \.unknown, .optional(.oneOrMore(.integer(-0x8000_0000...0xFFFF_FFFF)))),
    ConfigurationKey("valid", \.valid, .optional(.numberRange)),
    ConfigurationKey("bits", \.bits, .optional(.bits)),
    ConfigurationKey("bit", \.bit, .optional(.integer(0...63))),
    ConfigurationKey("inverted", \.isInverted, .optional(.bool)),
    ConfigurationKey("size", \.size, .optional(.integer(1...Codec.longestValue))),
    ConfigurationKey("rows", \.rows, .optional(.integer(1...Codec.longestValue))),
    ConfigurationKey("columns", \.columns, .optional(.integer(1...8))),
  ]

  /// The first of ``keys`` that is given.
  var given: String? { Self.keys.first { $0.write(self) != nil }?.name }

  /// The scalar; nil without a type.
  var scalar: Codec.Scalar? {
    type.map {
      Codec.Scalar(
        $0, scale: scale, offset: offset, endian: endian ?? .little, values: values ?? [:],
        unknown: unknown ?? [], valid: valid, bits: bits ?? bit.map { $0..<$0 + 1 },
        isInverted: isInverted ?? false, size: size ?? 0, rows: rows ?? 0, columns: columns ?? 0)
    }
  }

  /// The key for bits that the type does not have.
  func problems(at path: ConfigurationPath) -> [ConfigurationError] {
    let isBool = type == .bool
    if bits != nil, isBool { return [path.key("bits").error("a bool is one bit", hint: "give it \"bit\"")] }
    guard bit != nil, type != nil, !isBool else { return [] }
    return [path.key("bit").error("only a bool is one bit", hint: "give a number \"bits\": [lowest, count]")]
  }

  init() {}

  init(_ scalar: Codec.Scalar) {
    type = scalar.type
    scale = scalar.scale
    offset = scalar.offset
    endian = scalar.endian == .little ? nil : scalar.endian
    values = scalar.values.isEmpty ? nil : scalar.values
    unknown = scalar.unknown.isEmpty ? nil : scalar.unknown
    valid = scalar.valid
    if scalar.type == .bool { bit = scalar.bits?.lowerBound } else { bits = scalar.bits }
    isInverted = scalar.isInverted ? true : nil
    size = scalar.size == 0 ? nil : scalar.size
    rows = scalar.rows == 0 ? nil : scalar.rows
    columns = scalar.columns == 0 ? nil : scalar.columns
  }
}

extension ConfigurationRule<Codec.ScalarType> {
  /// The encoding of a value. Signed types have two spellings, of which each size has one.
  static var scalarType: Self {
    let others = [
      "int24": "sint24", "sint8": "int8", "sint16": "int16", "sint32": "int32", "sint64": "int64",
      "double": "float64", "string": "utf8", "text": "utf8",
    ]
    return .choice(instead: others.mapValues { "did you mean \($0)?" })
  }
}

extension ConfigurationRule<[Int: String]> {
  /// The words of an enumeration by their numbers: `{"0": "none"}`.
  static var words: Self {
    ConfigurationRule<[Named<String>]>.members(of: .text(longest: 64)) { name in
      // Each number has one spelling, so that no two keys are the same number.
      Int(name).map(String.init) == name
        ? nil : ConfigurationProblem("not a whole number", hint: #"example: {"0": "open", "1": "closed"}"#)
    }
    .map(
      { named in
        Dictionary(named.compactMap { word in Int(word.name).map { ($0, word.value) } }) { first, _ in first }
      }, back: { words in words.sorted { $0.key < $1.key }.map { Named("\($0.key)", $0.value) } })
  }
}

/// A part of a record.
struct FieldKeys: ConfigurationSection {
  var name: String?
  var scalar = ScalarKeys()
  var container: String?
  var unit: String?
  var isHidden: Bool?
  var isRepeated: Bool?
  var requiresSet: [Codec.Flag]?
  var requiresClear: [Codec.Flag]?

  static let keys: [ConfigurationKey<Self>] =
    [
      ConfigurationKey(required: "name", \.name, .text(longest: 64)),
      ConfigurationKey(required: "type", \.scalar.type, .scalarType),
    ] + ScalarKeys.keys.map { ConfigurationKey($0, in: \.scalar) } + [
      ConfigurationKey("of", \.container, .optional(.text(longest: 64))),
      ConfigurationKey("unit", \.unit, .optional(.text(longest: 32))),
      ConfigurationKey("hidden", \.isHidden, .optional(.bool)),
      ConfigurationKey("if", \.requiresSet, .optional(.oneOrMore(.flag))),
      ConfigurationKey("unless", \.requiresClear, .optional(.oneOrMore(.flag))),
      ConfigurationKey("repeat", \.isRepeated, .optional(.bool)),
    ]

  func problems(at path: ConfigurationPath) -> [ConfigurationError] { scalar.problems(at: path) }

  /// The field; nil while name or type is missing.
  var field: Codec.Field? {
    guard let name, let scalar = scalar.scalar else { return nil }
    return Codec.Field(
      name, scalar, unit: unit, of: container, isHidden: isHidden ?? false, isRepeated: isRepeated ?? false,
      if: requiresSet ?? [], unless: requiresClear ?? [])
  }

  init() {}

  init(_ field: Codec.Field) {
    name = field.name
    scalar = ScalarKeys(field.scalar)
    container = field.container
    unit = field.unit
    isHidden = field.isHidden ? true : nil
    isRepeated = field.isRepeated ? true : nil
    requiresSet = field.requiresSet.isEmpty ? nil : field.requiresSet
    requiresClear = field.requiresClear.isEmpty ? nil : field.requiresClear
  }
}

extension ConfigurationRule<Codec.Flag> {
  /// A bit of an earlier field: `flags.0`.
  fileprivate static var flag: Self {
    .text(
      1...67, Codec.Flag.init, "a bit of a field", hint: "example: flags.0, the lowest bit of flags")
  }
}

extension ConfigurationRule<String> {
  /// What ends a frame: any characters, line ends above all.
  static var delimiter: Self {
    ConfigurationRule(
      shape: .text(1...16),
      parse: { json throws(ConfigurationProblem) in
        guard case .string(let text) = json else { return nil }
        guard (1...16).contains(text.unicodeScalars.count) else {
          throw ConfigurationProblem("must have 1 to 16 characters", hint: #"example: "\n", a line"#)
        }
        return text
      },
      write: { .string($0) })
  }
}
