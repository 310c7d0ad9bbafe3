import GATT
import JSON

/// The keys of the encoding of one value: of a property, or of a field.
extension Codec.Scalar {
  /// The keys but `type`, which a field must have and a property may do without.
  static let keys: [ConfigurationKey<Self>] = [
    ConfigurationKey("scale", \.scale, .optional(.number())),
    ConfigurationKey("offset", \.offset, .optional(.number())),
    ConfigurationKey("endian", \.endian, .choice.leftOut(at: .little)),
    ConfigurationKey("values", \.values, .words.leftOut(at: [:])),
    ConfigurationKey(
      "unknown", \.unknown, .oneOrMore(.integer(-0x8000_0000...0xFFFF_FFFF)).leftOut(at: [])),
    ConfigurationKey("valid", \.valid, .optional(.numberRange)),
    ConfigurationKey("bits", \.bitsOfNumber, .optional(.bits)),
    ConfigurationKey("bit", \.bitOfBool, .optional(.integer(0...63))),
    ConfigurationKey("inverted", \.isInverted, .bool.leftOut(at: false)),
    ConfigurationKey("size", \.size, .integer(1...Codec.longestValue).leftOut(at: 0)),
    ConfigurationKey("rows", \.rows, .integer(1...Codec.longestValue).leftOut(at: 0)),
    ConfigurationKey("columns", \.columns, .integer(1...8).leftOut(at: 0)),
  ]

  // Both keys are ``bits``. They are set before the type may be known, as the order of keys is free: `problems` refuses the wrong one.
  private var bitsOfNumber: Range<Int>? {
    get { type == .bool ? nil : bits }
    set { bits = newValue }
  }

  private var bitOfBool: Int? {
    get { type == .bool ? bits?.lowerBound : nil }
    set { bits = newValue.map { $0..<$0 + 1 } }
  }

  /// The first of ``keys`` that is given.
  static func firstKey(among given: Set<String>) -> String? { keys.map(\.name).first(where: given.contains) }

  /// The key for bits that a type does not have.
  static func problems(
    of type: Codec.ScalarType, at path: ConfigurationPath, given: Set<String>
  ) -> [ConfigurationError] {
    if type == .bool {
      return given.contains("bits")
        ? [path.key("bits").error("a bool is one bit", hint: "give it \"bit\"")] : []
    }
    return given.contains("bit")
      ? [path.key("bit").error("only a bool is one bit", hint: "give a number \"bits\": [lowest, count]")]
      : []
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

/// The keys of a part of a record.
extension Codec.Field: ConfigurationSection {
  package init() { self.init("", .uint8) }

  package static let keys: [ConfigurationKey<Self>] =
    [
      ConfigurationKey(required: "name", \.name, .text(longest: 64)),
      ConfigurationKey(required: "type", \.scalar.type, .scalarType),
    ] + Codec.Scalar.keys.map { ConfigurationKey($0, in: \.scalar) } + [
      ConfigurationKey("of", \.container, .optional(.text(longest: 64))),
      ConfigurationKey("unit", \.unit, .optional(.text(longest: 32))),
      ConfigurationKey("hidden", \.isHidden, .bool.leftOut(at: false)),
      ConfigurationKey("if", \.requiresSet, .oneOrMore(.flag).leftOut(at: [])),
      ConfigurationKey("unless", \.requiresClear, .oneOrMore(.flag).leftOut(at: [])),
      ConfigurationKey("repeat", \.isRepeated, .bool.leftOut(at: false)),
    ]

  package func problems(at path: ConfigurationPath, given: Set<String>) -> [ConfigurationError] {
    Codec.Scalar.problems(of: scalar.type, at: path, given: given)
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
