/// Decodes the bytes of a characteristic to a value, and encodes a value to bytes.
///
/// Compiled once from a description in a profile. Decoding a scalar allocates no memory, decoding a record one array.
public struct Codec: Sendable {
  /// The description that it was compiled from.
  public let description: Description
  private let layout: Layout

  /// Indirect, as it is copied for every reading.
  private indirect enum Layout: Sendable {
    case scalar(ScalarCodec)
    case scalars(ScalarCodec)
    case flags(FlagsCodec)
    case record(RecordCodec)
    case records(RecordCodec)
    case advertised(AdvertisedFormat, Int)
  }

  /// No characteristic has more bytes (Bluetooth Core Specification, volume 3, part F, section 3.2.9).
  public static let longestValue = 512

  /// Checks and compiles the description.
  public init(_ description: Description) throws(ProfileError) {
    self.description = description
    switch description {
    case .scalar(let scalar):
      layout = .scalar(try ScalarCodec(scalar))
    case .flags(let type, let names):
      layout = .flags(try FlagsCodec(type, names))
    case .record(let fields):
      layout = .record(try RecordCodec(fields))
    case .list(of: .scalar(let scalar)):
      let codec = try ScalarCodec(scalar)
      guard codec.width > 0 else { throw .notRepeatable }
      layout = .scalars(codec)
    case .list(of: .record(let fields)):
      let codec = try RecordCodec(fields)
      guard codec.isSelfDelimiting else { throw .notRepeatable }
      layout = .records(codec)
    case .advertised(let format, let index):
      layout = .advertised(format, index)
    case .list(of: .list), .list(of: .flags), .list(of: .advertised):
      throw .notRepeatable
    }
  }

  /// Makes a codec of a constant description of this module, which is valid.
  init(builtIn description: Description) { self = constant(try Codec(description)) }

  /// One byte, two's complement.
  public static let int8 = Codec(builtIn: .scalar(Scalar(.int8)))
  /// One byte.
  public static let uint8 = Codec(builtIn: .scalar(Scalar(.uint8)))
  /// Two bytes, little-endian.
  public static let uint16 = Codec(builtIn: .scalar(Scalar(.uint16)))
  /// One byte, 0 or 1.
  public static let bool = Codec(builtIn: .scalar(Scalar(.bool)))
  /// UTF-8 text of any length.
  public static let utf8 = Codec(builtIn: .scalar(Scalar(.utf8)))
  /// Any bytes.
  public static let bytes = Codec(builtIn: .scalar(Scalar(.bytes)))

  /// The names of the visible fields of a record, or of a list's records; nil for scalars and lists of scalars.
  public var fields: [String]? {
    switch layout {
    case .scalar, .scalars, .flags: nil
    case .record(let record), .records(let record): record.names
    case .advertised(let format, _): format.fields
    }
  }

  /// The words of an enumeration by their numbers; empty for everything else.
  public var words: [Int: String] {
    switch layout {
    case .scalar(let scalar), .scalars(let scalar): scalar.words
    case .flags, .record, .records: [:]
    case .advertised(let format, _): format.words
    }
  }

  private var scalar: ScalarCodec? { if case .scalar(let scalar) = layout { scalar } else { nil } }

  /// The numbers that a scalar can encode; nil if it is not a number, or is an enumeration.
  public var range: ClosedRange<Double>? { scalar?.range }

  /// The difference of two successive numbers that a scalar can encode; nil for floating-point numbers and for what is
  /// not a number.
  public var step: Double? { scalar?.step }

  /// The number of bytes of a single value that always has as many; nil for everything else.
  public var width: Int? {
    switch layout {
    case .scalar(let scalar): scalar.width == 0 ? nil : scalar.width
    case .flags(let flags): flags.width
    case .scalars, .record, .records, .advertised: nil
    }
  }

  /// Whether a value can have so many bytes, as far as that is known without its bytes.
  public func fits(_ count: Int) -> Bool {
    switch layout {
    case .scalar(let scalar): scalar.width == 0 || count == scalar.width
    case .scalars(let scalar): count.isMultiple(of: scalar.width)
    case .flags(let flags): count == flags.width
    case .record(let record): record.lengths.contains(count)
    // With conditions, records vary in length.
    case .records(let record):
      record.lengths.count > 1 || count.isMultiple(of: record.lengths.lowerBound)
    case .advertised: true
    }
  }

  /// What the values of a codec, or of a field of its records, are.
  public enum Content: Sendable, Hashable {
    /// A number. The difference of two successive ones is nil where it is not known.
    case number(step: Double?)
    case bool
    /// A word of an enumeration, in the order of their numbers, or a number that has none.
    case words([String])
    /// A text, bytes, or a picture.
    case text
    /// A record, a list, or the names of bits.
    case several

    /// Whether they are numbers.
    public var isNumber: Bool { if case .number = self { true } else { false } }
  }

  /// What the values are.
  public var content: Content {
    switch layout {
    case .scalar(let scalar): scalar.content
    case .scalars, .flags, .record, .records: .several
    case .advertised(let format, _): format.values
    }
  }

  /// What the values of a visible field of a record are; nil: there is none of this name.
  public func content(of field: String) -> Content? {
    switch layout {
    case .scalar, .scalars, .flags, .records: nil
    case .record(let record): record.content(of: field)
    case .advertised(let format, _): format.values(of: field)
    }
  }

  /// The units of fields of a record, or of a list's records, that have one of their own, by the fields' names.
  public var units: [String: String] {
    switch description {
    case .record(let fields), .list(of: .record(let fields)):
      Dictionary(fields.compactMap { field in field.unit.map { (field.name, $0) } }) { first, _ in first }
    case .scalar, .flags, .list, .advertised: [:]
    }
  }

  /// Decodes `bytes`. Bytes that are left over are an error.
  public func decode(_ bytes: [UInt8]) throws(CodecError) -> Value {
    switch layout {
    case .scalar(let scalar):
      guard scalar.width == 0 || bytes.count == scalar.width else {
        throw .length(expected: scalar.width, bytes: bytes)
      }
      return try scalar.decode(bytes, from: 0, to: bytes.count)
    case .scalars(let scalar):
      return try scalar.decodeList(bytes, from: 0)
    case .flags(let flags):
      guard bytes.count == flags.width else { throw .length(expected: flags.width, bytes: bytes) }
      return flags.decode(bytes)
    case .record(let record):
      var position = 0
      let value = try record.decode(bytes, &position)
      guard position == bytes.count else { throw .length(expected: position, bytes: bytes) }
      return value
    case .records(let record):
      var list: [Value] = []
      var position = 0
      while position < bytes.count { list.append(try record.decode(bytes, &position)) }
      return .list(list)
    case .advertised(let format, let index): return try format.decode(bytes, at: index)
    }
  }

  /// Encodes `value`. Accepts a whole number as ``Value/number(_:)``, a number as ``Value/integer(_:)``, and the number
  /// of an enumeration's word. A number with a scale is rounded to the nearest one that the bytes can hold.
  public func encode(_ value: Value) throws(CodecError) -> [UInt8] {
    let bytes = try encodeAnyLength(value)
    guard bytes.count <= Self.longestValue else {
      throw .tooLong(count: bytes.count, most: Self.longestValue)
    }
    return bytes
  }

  /// Encodes `value`, perhaps to more bytes than a characteristic has.
  func encodeAnyLength(_ value: Value) throws(CodecError) -> [UInt8] {
    var bytes: [UInt8] = []
    switch layout {
    case .scalar(let scalar): try scalar.encode(value, to: &bytes)
    case .scalars(let scalar): try scalar.encodeList(value, to: &bytes)
    case .flags(let flags): try flags.encode(value, to: &bytes)
    case .record(let record): try record.encode(value, to: &bytes)
    case .records(let record):
      guard case .list(let list) = value else { throw .kind(expected: "a list", found: value.kind) }
      for element in list { try record.encode(element, to: &bytes) }
    case .advertised: throw .kind(expected: "nothing: it is only received", found: value.kind)
    }
    return bytes
  }
}

/// A codec or profile of this module, which is valid.
func constant<T>(_ make: @autoclosure () throws -> T) -> T {
  do {
    return try make()
  } catch {
    preconditionFailure("\(error)")
  }
}

extension Codec: Equatable {
  /// Compares the descriptions.
  public static func == (one: Codec, other: Codec) -> Bool { one.description == other.description }
}

extension [Int: String] {
  /// The words of an enumeration, or the names of bits, in the order of their numbers.
  public var inOrder: [String] { sorted { $0.key < $1.key }.map(\.value) }
}
