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
    /// IEEE 11073-20601, decimal: a mantissa of 12 or 24 bits times a power of ten, as in health devices. NaN, NRes (not
    /// at this resolution) and reserved values are NaN.
    case sfloat, float
    /// One byte: 0 is false, 1 is written for true, and every other value is read as true.
    case bool
    /// Text, to the end of the characteristic's value. No terminating zero is added or removed.
    case utf8
    /// Any bytes, to the end of the characteristic's value.
    case bytes
    /// A picture of on and off, one byte for each row: see ``Codec/Scalar/bits(rows:columns:)``.
    case bits
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
    /// Of ``Codec/ScalarType/bits``, else 0.
    public let rows: Int
    /// The lowest bits of each row, the highest of them at the left.
    public let columns: Int

    /// Without scale, offset and words, and little-endian, unless they are given.
    public init(
      _ type: ScalarType, scale: Double? = nil, offset: Double? = nil, endian: Endian = .little,
      values: [Int: String] = [:], rows: Int = 0, columns: Int = 0
    ) {
      self.rows = rows
      self.columns = columns
      self.type = type
      self.scale = scale
      self.offset = offset
      self.endian = endian
      self.values = values
    }

    /// A picture: its value is a text with a line for each row, from the top, `#` for on and `.` for off, and `/` between
    /// the rows: `.#.#./#####/#####/.###./..#..`.
    public static func bits(rows: Int, columns: Int) -> Scalar {
      Scalar(.bits, rows: rows, columns: columns)
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
    case .uint16, .int16, .sfloat: 2
    case .uint24, .sint24: 3
    case .uint32, .int32, .float32, .float: 4
    case .uint64, .int64, .float64: 8
    case .utf8, .bytes, .bits: nil
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
    case .float32, .float64, .sfloat, .float, .bool, .utf8, .bytes, .bits: nil
    }
  }
}

extension Codec.Flag: CustomStringConvertible {
  /// `flags.0`.
  public var description: String { "\(field).\(bit)" }
}
