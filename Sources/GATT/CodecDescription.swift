extension Codec {
  /// A profile's description of the bytes of a characteristic. Named after the profile's JSON keys.
  public indirect enum Description: Sendable, Hashable {
    /// One value: `"type"`.
    case scalar(Scalar)
    /// Several values, one after the other: `"fields"`.
    case record([Field])
    /// The bits of an unsigned number, by their numbers from the least significant, 0: `"type"` and `"flags"`. The value
    /// is the list of the names of those that are set.
    case flags(ScalarType, [Int: String])
    /// Any number of elements until the bytes end: `"repeat": true`. The element is a scalar or a record, without text,
    /// bytes or repeated fields.
    case list(of: Description)
    /// A value in advertisements: `"format"`. The number selects one of several objects of BTHome with the same name.
    case advertised(AdvertisedFormat, Int)
  }

  /// The encoding of one value. The raw values are those of `"type"` in a profile.
  public enum ScalarType: String, Sendable, Hashable, CaseIterable {
    case uint8, uint16, uint24, uint32, uint64
    /// Two's complement. `sint24` is the Bluetooth SIG's name.
    case int8, int16, sint24, int32, int64
    /// IEEE 754.
    case float32, float64
    /// IEEE 11073-20601, decimal: a mantissa of 12 or 24 bits times a power of ten, as in health devices. NaN, NRes
    /// (not at this resolution) and reserved values are NaN.
    case sfloat, float
    /// A number as text, to the end of the characteristic's value: see ``DecimalText``.
    case decimal
    /// One byte: 0 is false, 1 is written for true, and every other value is read as true.
    case bool
    /// Text, to the end of the characteristic's value, where no terminating zero is added or removed, or of a fixed size.
    case utf8
    /// Any bytes, to the end of the characteristic's value, or of a fixed number.
    case bytes
    /// A picture of dots that are on or off, one byte for each row: see ``Codec/Scalar/bits(rows:columns:)``.
    case bits
  }

  /// The byte order of a number.
  public enum Endian: String, Sendable, Hashable, CaseIterable {
    /// The least significant byte first, as everywhere in the Bluetooth SIG's formats.
    case little
    case big
  }

  /// One value. With `scale` or `offset` a number is `raw × scale + offset`.
  public struct Scalar: Sendable, Hashable {
    /// The encoding.
    public var type: ScalarType
    /// The factor, which is not 0; nil: 1.
    public var scale: Double?
    /// The number that is added; nil: 0.
    public var offset: Double?
    /// The byte order; it has no effect on single bytes, text and bytes.
    public var endian: Endian
    /// The words of an enumeration by their numbers; empty for everything else.
    public var values: [Int: String]
    /// The integers that stand for a value that the peripheral does not know.
    public var unknown: [Int]
    /// The numbers that can be received; others are refused as malformed. Nil: all.
    public var valid: ClosedRange<Double>?
    /// The bits of an unsigned number, or the one of a bool, that are the value, 0 is the lowest; nil: all. What else is in the
    /// bytes is no part of it, and is written as zeros.
    public var bits: Range<Int>?
    /// Whether a bool is true if its bits are clear.
    public var isInverted: Bool
    /// The number of bytes of a text or of bytes, else 0; 0: to the end of the characteristic's value. A text is followed by zeros.
    public var size: Int
    /// The rows of a picture (``Codec/ScalarType/bits``), else 0.
    public var rows: Int
    /// The picture uses this many of the lowest bits of each row; the highest of them is at the left.
    public var columns: Int

    /// The defaults: no scale, offset or words; little-endian.
    public init(
      _ type: ScalarType, scale: Double? = nil, offset: Double? = nil, endian: Endian = .little,
      values: [Int: String] = [:], unknown: [Int] = [], valid: ClosedRange<Double>? = nil,
      bits: Range<Int>? = nil, isInverted: Bool = false, size: Int = 0, rows: Int = 0, columns: Int = 0
    ) {
      self.bits = bits
      self.isInverted = isInverted
      self.size = size
      self.rows = rows
      self.columns = columns
      self.type = type
      self.scale = scale
      self.offset = offset
      self.endian = endian
      self.values = values
      self.unknown = unknown
      self.valid = valid
    }

    /// A picture: its value is a text with a line for each row, from the top, `#` for on and `.` for off, and `/`
    /// between the rows: `.#.#./#####/#####/.###./..#..`.
    public static func bits(rows: Int, columns: Int) -> Scalar {
      Scalar(.bits, rows: rows, columns: columns)
    }
  }

  /// A bit of an earlier field that decides whether another field is present: `flags.0` in a profile.
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
      guard let dot = text.lastIndex(of: "."), isPropertyName(String(text[..<dot])) else { return nil }
      let digits = text[text.index(after: dot)...]
      guard (1...2).contains(digits.utf8.count), digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
        let bit = Int(digits)
      else { return nil }
      self.init(field: String(text[..<dot]), bit: bit)
    }
  }

  /// A part of a record.
  public struct Field: Sendable, Hashable {
    /// `[a-z][a-z0-9_]{0,63}`. Several fields may have the same name if their flags exclude each other, such as bpm in one
    /// byte or two.
    public var name: String
    /// The encoding and meaning of its bytes.
    public var scalar: Scalar
    /// The unit of its numbers; nil: that of the property.
    public var unit: String?
    /// Whether the field is no part of the value: flags or reserved bytes. Flags are encoded according to the fields that are
    /// present, all other bits as zero.
    public var isHidden: Bool
    /// The name of an earlier, hidden field whose bits it has; nil: it has bytes of its own.
    public var container: String?
    /// Repeated to the end of the characteristic's value; the field's value is a list.
    public var isRepeated: Bool
    /// The field is present only if all these bits are set: `if`.
    public var requiresSet: [Flag]
    /// The field is present only if none of these bits is set: `unless`.
    public var requiresClear: [Flag]

    /// The defaults: visible, always present, not repeated.
    public init(
      _ name: String, _ scalar: Scalar, unit: String? = nil, of container: String? = nil,
      isHidden: Bool = false, isRepeated: Bool = false, if set: [Flag] = [], unless clear: [Flag] = []
    ) {
      self.name = name
      self.scalar = scalar
      self.unit = unit
      self.container = container
      self.isHidden = isHidden
      self.isRepeated = isRepeated
      requiresSet = set
      requiresClear = clear
    }

    /// A field of a type without further options.
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
  /// The number of bytes; nil: all remaining bytes.
  var width: Int? {
    switch self {
    case .uint8, .int8, .bool: 1
    case .uint16, .int16, .sfloat: 2
    case .uint24, .sint24: 3
    case .uint32, .int32, .float32, .float: 4
    case .uint64, .int64, .float64: 8
    case .decimal, .utf8, .bytes, .bits: nil
    }
  }

  /// The range of an integer type, as far as ``Value/integer(_:)`` can hold it; nil for other types.
  package var integers: ClosedRange<Int>? {
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
    case .float32, .float64, .sfloat, .float, .decimal, .bool, .utf8, .bytes, .bits: nil
    }
  }
}

extension Codec.Flag: CustomStringConvertible {
  /// `flags.0`.
  public var description: String { "\(field).\(bit)" }
}
