extension Codec {
  /// What a profile says about the bytes of a characteristic. The names are those of a profile's JSON keys.
  public indirect enum Description: Sendable, Hashable {
    /// One value: `"type"`.
    case scalar(Scalar)
    /// Several values, one after the other: `"fields"`.
    case record([Field])
    /// The same again and again until the bytes end, none at all included: `"repeat": true`. Of a scalar or a record
    /// without text, bytes and repeated fields.
    case list(of: Description)
  }

  /// How one value is held in bytes. The raw values are the words of a profile's `"type"`.
  public enum ScalarType: String, Sendable, Hashable, CaseIterable {
    case uint8, uint16, uint24, uint32, uint64
    /// Two's complement. `sint24` has the name that the Bluetooth SIG gives it.
    case int8, int16, sint24, int32, int64
    /// IEEE 754.
    case float32, float64
    /// One byte: 0 is false, 1 is written for true, and every other value is read as true.
    case bool
    /// Text, to the end of the characteristic's value. No terminating zero is added or removed.
    case utf8
    /// Any bytes, to the end of the characteristic's value.
    case bytes
  }

  /// The order of a number's bytes.
  public enum Endian: String, Sendable, Hashable, CaseIterable {
    /// The least significant byte first, as everywhere in the Bluetooth SIG's formats.
    case little
    case big
  }

  /// One value. With `scale` or `offset`, which need an integer type, it is `raw × scale + offset`.
  public struct Scalar: Sendable, Hashable {
    /// How it is held in bytes.
    public let type: ScalarType
    /// Not 0; nil: 1.
    public let scale: Double?
    /// Nil: 0.
    public let offset: Double?
    /// Without meaning for one byte, text and bytes.
    public let endian: Endian
    /// The words of an enumeration by their numbers; empty for everything else.
    public let values: [Int: String]

    /// Without scale, offset and words, and little-endian, unless they are given.
    public init(
      _ type: ScalarType, scale: Double? = nil, offset: Double? = nil, endian: Endian = .little,
      values: [Int: String] = [:]
    ) {
      self.type = type
      self.scale = scale
      self.offset = offset
      self.endian = endian
      self.values = values
    }
  }

  /// A bit of an earlier field, which says whether another field is present: `flags.0` in a profile.
  public struct Flag: Sendable, Hashable {
    /// The name of an integer field that is always present, at a fixed place.
    public let field: String
    /// 0 is the least significant.
    public let bit: Int

    /// `bit` of the field of this name.
    public init(field: String, bit: Int) {
      self.field = field
      self.bit = bit
    }

    /// Reads `flags.0`; nil for anything else.
    public init?(_ text: String) {
      guard let dot = text.lastIndex(of: "."), dot > text.startIndex else { return nil }
      let digits = text[text.index(after: dot)...]
      guard (1...2).contains(digits.utf8.count), digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
        let bit = Int(digits)
      else { return nil }
      self.init(field: String(text[..<dot]), bit: bit)
    }
  }

  /// A part of a record.
  public struct Field: Sendable, Hashable {
    /// `[a-z][a-z0-9_]*`. Several fields may have one name where flags exclude one another: bpm in one or two bytes.
    public let name: String
    /// What it holds.
    public let scalar: Scalar
    /// No part of the value: flags, reserved bytes. What is written there are flags that tell which fields follow, and
    /// zeros.
    public let isHidden: Bool
    /// Repeated to the end of the characteristic's value: a list.
    public let isRepeated: Bool
    /// It is present if all these bits are set …
    public let requiresSet: [Flag]
    /// … and none of these: `unless`.
    public let requiresClear: [Flag]

    /// A visible field that is always present, once, unless something else is given.
    public init(
      _ name: String, _ scalar: Scalar, isHidden: Bool = false, isRepeated: Bool = false, if set: [Flag] = [],
      unless clear: [Flag] = []
    ) {
      self.name = name
      self.scalar = scalar
      self.isHidden = isHidden
      self.isRepeated = isRepeated
      requiresSet = set
      requiresClear = clear
    }

    /// The same for a type that needs nothing more.
    public init(
      _ name: String, _ type: ScalarType, isHidden: Bool = false, isRepeated: Bool = false,
      if set: [Flag] = [], unless clear: [Flag] = []
    ) {
      self.init(
        name, Scalar(type), isHidden: isHidden, isRepeated: isRepeated, if: set, unless: clear)
    }
  }
}

extension Codec.ScalarType {
  /// The number of bytes; nil: all that remain.
  var width: Int? {
    switch self {
    case .uint8, .int8, .bool: 1
    case .uint16, .int16: 2
    case .uint24, .sint24: 3
    case .uint32, .int32, .float32: 4
    case .uint64, .int64, .float64: 8
    case .utf8, .bytes: nil
    }
  }

  /// Whole numbers that ``Value/integer(_:)`` can hold; nil for types that are no integers.
  var integers: ClosedRange<Int>? {
    switch self {
    case .uint8: 0...0xFF
    case .uint16: 0...0xFFFF
    case .uint24: 0...0xFF_FFFF
    case .uint32: 0...0xFFFF_FFFF
    case .uint64: 0...Int.max
    case .int8: -0x80...0x7F
    case .int16: -0x8000...0x7FFF
    case .sint24: -0x80_0000...0x7F_FFFF
    case .int32: -0x8000_0000...0x7FFF_FFFF
    case .int64: Int.min...Int.max
    case .float32, .float64, .bool, .utf8, .bytes: nil
    }
  }
}

/// Why a description of a codec is refused.
public enum CodecDescriptionError: Error, Sendable, Hashable {
  /// The field at this place of `fields` is wrong.
  indirect case field(index: Int, name: String, CodecDescriptionError)
  /// A record without a field that can be seen.
  case noVisibleFields
  /// Not `[a-z][a-z0-9_]*`.
  case fieldName(String)
  /// A field of this name may be present together with an earlier one.
  case duplicateField(String)
  /// It follows a field that takes all the bytes that remain.
  case unreachable(after: String)
  /// No earlier field has this name.
  case unknownFlags(Codec.Flag)
  /// The field has no bits to be tested: no integer, not always there, or not always at the same place.
  case unusableFlags(Codec.Flag)
  /// The field is not that wide.
  case bit(Codec.Flag, count: Int)
  /// The same bit is to be set and clear.
  case contradiction(Codec.Flag)
  /// The bits are those of more than one field.
  case severalFlags(String, String)
  /// A `repeat` of something that has no fixed size: text, bytes, a field with `repeat`, another list.
  case notRepeatable
  /// More bytes than a characteristic holds.
  case tooLong(Int)
  /// Not a finite number, 0, or so large that values become infinite.
  case scale(Double)
  /// Not a finite number, or so large that values become infinite.
  case offset(Double)
  /// The type is not an integer's.
  case notAnInteger(key: String, type: Codec.ScalarType)
  /// An enumeration has words instead of numbers.
  case scaledEnumeration
  /// The type does not hold this number.
  case number(Int, type: Codec.ScalarType)
  /// A word of the enumeration that is empty, or stands for two numbers.
  case word(String)
}

extension CodecDescriptionError {
  /// The key of the profile's JSON that is wrong, inside the field if it is one that is.
  public var key: String {
    switch self {
    case .field(_, _, let error): error.key
    case .noVisibleFields, .tooLong: "fields"
    case .fieldName, .duplicateField, .unreachable: "name"
    case .unknownFlags(_), .unusableFlags(_), .bit(_, _), .severalFlags(_, _): "if"
    case .contradiction: "unless"
    case .notRepeatable: "repeat"
    case .scale: "scale"
    case .offset: "offset"
    case .notAnInteger(let key, _): key
    case .scaledEnumeration, .number, .word: "values"
    }
  }
}

extension CodecDescriptionError: CustomStringConvertible {
  /// A sentence for the author of a profile.
  public var description: String {
    switch self {
    case .field(_, let name, let error): "field \(name): \(error)"
    case .noVisibleFields: "there is no field that is not hidden"
    case .fieldName(let name): "\"\(name)\" is not a name: use a-z, 0-9 and _, beginning with a letter"
    case .duplicateField(let name):
      "there is another \(name) that may be present at the same time: give both the same flag, one as \"if\" and one "
        + "as \"unless\""
    case .unreachable(let name): "\(name) before it takes all the bytes that remain"
    case .unknownFlags(let flag): "\(flag): there is no field \(flag.field) before this one"
    case .unusableFlags(let flag):
      "\(flag): \(flag.field) must be an integer that is always present, behind no field that is not"
    case .bit(let flag, let count): "\(flag): \(flag.field) has the bits 0 to \(count - 1)"
    case .contradiction(let flag): "\(flag) cannot be both set and clear"
    case .severalFlags(let first, let second):
      "the flags are in two fields, \(first) and \(second): only one is supported"
    case .notRepeatable: "only values of a fixed size can be repeated, and only once"
    case .tooLong(let count):
      "\(count) bytes are more than the \(Codec.longestValue) that a characteristic can have"
    case .scale(let scale): "\(scale) is not a usable scale"
    case .offset(let offset): "\(offset) is not a usable offset"
    case .notAnInteger(let key, let type): "\(key) needs an integer type, not \(type.rawValue)"
    case .scaledEnumeration: "an enumeration has no scale and no offset"
    case .number(let number, let type): "\(number) does not fit into \(type.rawValue)"
    case .word(let word): word.isEmpty ? "a word is empty" : "\"\(word)\" stands for two numbers"
    }
  }
}

extension Codec.Flag: CustomStringConvertible {
  /// `flags.0`.
  public var description: String { "\(field).\(bit)" }
}
