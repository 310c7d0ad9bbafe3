/// How the bytes of a characteristic and the value they stand for become one another.
///
/// A further shape of data is a further case here: every property, whatever its shape, passes through
/// ``decode(_:)`` and ``encode(_:)``. Numbers are little-endian, as everywhere in GATT.
public enum Codec: Sendable, Hashable {
  /// One byte, two's complement.
  case int8
  /// Two bytes, little-endian.
  case uint16

  /// The number of bytes of every value. Exact: shorter and longer ones are refused.
  public var length: Int {
    switch self {
    case .int8: 1
    case .uint16: 2
    }
  }

  /// The values that the bytes can hold.
  public var range: ClosedRange<Int> {
    switch self {
    case .int8: -0x80...0x7F
    case .uint16: 0...0xFFFF
    }
  }

  /// The value that `bytes` stand for.
  public func decode(_ bytes: [UInt8]) throws(CodecError) -> Int {
    guard bytes.count == length else { throw .length(expected: length, bytes: bytes) }
    switch self {
    case .int8: return Int(Int8(bitPattern: bytes[0]))
    case .uint16: return Int(bytes[0]) | Int(bytes[1]) << 8
    }
  }

  /// The bytes that stand for `value`.
  public func encode(_ value: Int) throws(CodecError) -> [UInt8] {
    guard range.contains(value) else { throw .range(value: value, allowed: range) }
    switch self {
    case .int8: return [UInt8(truncatingIfNeeded: value)]
    case .uint16: return [UInt8(truncatingIfNeeded: value), UInt8(truncatingIfNeeded: value >> 8)]
    }
  }
}

/// Bytes that are no value, or a value that has no bytes.
public enum CodecError: Error, Sendable, Hashable {
  /// The characteristic gave another number of bytes than its values have.
  case length(expected: Int, bytes: [UInt8])
  /// The value does not fit.
  case range(value: Int, allowed: ClosedRange<Int>)
}

extension CodecError: CustomStringConvertible {
  /// How many bytes are shown: as many as a notification carries at the smallest MTU.
  private static let shown = 20

  /// For the log: sizes, and in hexadecimal the bytes, which may be anything.
  public var description: String {
    switch self {
    case .length(let expected, let bytes):
      let unit = expected == 1 ? "byte" : "bytes"
      let sizes = "expected \(expected) \(unit), got \(bytes.count)"
      guard !bytes.isEmpty else { return sizes }
      let digits = bytes.prefix(Self.shown).map { paddedHexadecimal($0, bytes: 1) }
      return "\(sizes): \(digits.joined(separator: " "))\(bytes.count > Self.shown ? " …" : "")"
    case .range(let value, let allowed):
      return "\(value) is outside \(allowed.lowerBound)…\(allowed.upperBound)"
    }
  }
}
