// Why a description of a codec is refused.
extension ProfileError {
  package static func field(index: Int, _ error: ProfileError) -> Self {
    error.inside(["fields", .index(index)])
  }
  package static let containerWithoutBits = Self(["of"], "a part of another field needs \"bit\" or \"bits\"")
  package static func container(_ name: String) -> Self {
    Self(
      ["of"],
      "there is no hidden field \(name) before this one that is an integer, always present, behind no field that is not"
    )
  }
  package static let noVisibleFields = Self(["fields"], "there is no field that is not hidden")
  package static func fieldName(_ name: String) -> Self {
    Self(["name"], "\"\(name)\" is not a name: use a-z, 0-9 and _, beginning with a letter")
  }
  /// A field of this name may be present together with an earlier one.
  package static func duplicateField(_ name: String) -> Self {
    Self(
      ["name"],
      "there is another \(name) that may be present at the same time: give both the same flag, one as \"if\" and one "
        + "as \"unless\"")
  }
  package static func unreachable(after name: String) -> Self {
    Self(["name"], "\(name) before it takes all the bytes that remain")
  }

  // MARK: Conditions: `key` is "if" or "unless"

  package static func unknownFlags(_ flag: Codec.Flag, in key: String) -> Self {
    Self([.key(key)], "\(flag): there is no field \(flag.field) before this one")
  }
  package static func unusableFlags(_ flag: Codec.Flag, in key: String) -> Self {
    Self(
      [.key(key)],
      "\(flag): \(flag.field) must be an integer that is always present, behind no field that is not")
  }
  package static func bit(_ flag: Codec.Flag, count: Int, in key: String) -> Self {
    Self([.key(key)], "\(flag): \(flag.field) has the bits 0 to \(count - 1)")
  }
  package static func contradiction(_ flag: Codec.Flag, in key: String) -> Self {
    Self([.key(key)], "\(flag) cannot be both set and clear")
  }
  package static func severalFlags(_ first: String, _ second: String, in key: String) -> Self {
    Self([.key(key)], "the flags are in two fields, \(first) and \(second): only one is supported")
  }

  // MARK: Sizes

  /// A `repeat` of elements without a fixed size: text, bytes, a field with `repeat`, another list.
  package static let notRepeatable = Self(
    ["repeat"], "only values of a fixed size can be repeated, and only once")
  package static func tooLong(_ count: Int) -> Self {
    Self(["fields"], "\(count) bytes are more than the \(Codec.longestValue) that a characteristic can have")
  }

  // MARK: Values

  /// The scale is not a finite number, 0, or so large that values become infinite.
  package static func scale(_ scale: Double) -> Self { Self(["scale"], "\(scale) is not a usable scale") }
  /// The offset is not a finite number, or so large that values become infinite.
  package static func offset(_ offset: Double) -> Self {
    Self(["offset"], "\(offset) is not a usable offset")
  }
  package static func notAnInteger(key: String, type: Codec.ScalarType) -> Self {
    Self([.key(key)], "\(key) needs an integer type, not \(type.rawValue)")
  }
  package static let scaledEnumeration = Self(["values"], "an enumeration has no scale and no offset")
  /// The type or its bits cannot hold this number, which `key` gives.
  package static func number(
    _ number: Int, most: ClosedRange<Int>? = nil, type: Codec.ScalarType, in key: String = "values"
  ) -> Self {
    let bits = most.flatMap {
      $0 == type.integers ? nil : $0.upperBound.bitWidth - $0.upperBound.leadingZeroBitCount
    }
    return Self([.key(key)], "\(number) does not fit into \(bits.map { "\($0) bits" } ?? type.rawValue)")
  }
  /// The bits are not within the `count` bits of the number.
  package static func bits(_ bits: Range<Int>, of count: Int, _ type: Codec.ScalarType) -> Self {
    type == .bool
      ? Self(["bit"], "there is no bit \(bits.lowerBound): the bits are 0 to \(count - 1)")
      : Self(
        ["bits"],
        bits.isEmpty
          ? "0 bits have no number: the second number is how many there are"
          : "there are no bits \(bits.lowerBound) to \(bits.upperBound - 1): the bits are 0 to \(count - 1), and the second "
            + "number is how many there are")
  }
  package static let inverted = Self(["inverted"], "only a bool is inverted")
  package static func noBits(of type: Codec.ScalarType) -> Self {
    Self(["bits"], "only unsigned integers have bits, not \(type.rawValue)")
  }
  /// A write would clear the bits that are not the value.
  package static func writtenBits(_ place: [Step]) -> Self {
    Self(
      place,
      "a write would clear the other bits: leave \"write\" out of access, or describe them all, each \"of\" a hidden field"
    )
  }
  package static func notANumber(key: String) -> Self { Self([.key(key)], "only numbers have \(key)") }
  package static func flag(_ bit: Int, type: Codec.ScalarType) -> Self {
    Self(["flags"], "\(type.rawValue) has no bit \(bit)")
  }
  package static func flagName(_ name: String) -> Self {
    Self(["flags"], name.isEmpty ? "a name is empty" : "\"\(name)\" stands for two bits")
  }
  /// The rows or columns of a picture are missing or too many, or they are given for another type.
  package static func picture(key: String, isPicture: Bool) -> Self {
    Self(
      [.key(key)],
      isPicture
        ? "bits need \(key): 1 to \(key == "rows" ? Codec.longestValue : 8)" : "only bits have \(key)")
  }
  package static func size(_ size: Int, type: Codec.ScalarType) -> Self {
    Self(
      ["size"],
      [.utf8, .bytes].contains(type)
        ? "\(size) is no size: 1 to \(Codec.longestValue)"
        : "only utf8 and bytes have a size, not \(type.rawValue)")
  }
  package static func word(_ word: String) -> Self {
    Self(["values"], word.isEmpty ? "a word is empty" : "\"\(word)\" stands for two numbers")
  }
}
