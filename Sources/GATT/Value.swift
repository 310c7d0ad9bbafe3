/// The decoded value of a characteristic.
public enum Value: Sendable, Hashable {
  /// A whole number. A uint64 above `Int.max` cannot be held: decoding it is an error.
  case integer(Int)
  /// A floating-point number, or an integer with `scale` or `offset`. It may be NaN or infinite. NaN is not equal to
  /// itself, so compare encoded bytes to detect a change.
  case number(Double)
  case bool(Bool)
  /// UTF-8 text, or the word of an enumeration.
  case text(String)
  case bytes([UInt8])
  /// One element for each name of ``Codec/fields``, in that order; nil: the field is absent (`if`, `unless`).
  case record([Value?])
  /// The elements of a `repeat`: scalars or records.
  case list([Value])
  /// The peripheral says that it does not know the value.
  case unknown
}

extension Value {
  /// The value of an integer or number; nil for everything else. Above 2^53 an integer is rounded.
  public var doubleValue: Double? {
    switch self {
    case .integer(let value): Double(value)
    case .number(let value): value
    case .bool, .text, .bytes, .record, .list, .unknown: nil
    }
  }

  /// Whether a number in it is another one than in `other`, a value with the same bytes: one of the two was rounded. What a
  /// float of 32 bits cannot tell apart is the same.
  public func isRounded(from other: Value) -> Bool {
    switch (self, other) {
    case (.record(let own), .record(let others)):
      return zip(own, others).contains { own, other in
        other.flatMap { other in own.map { $0.isRounded(from: other) } } ?? false
      }
    case (.list(let own), .list(let others)):
      return zip(own, others).contains { own, other in own.isRounded(from: other) }
    case (_, _):
      guard let own = doubleValue, let other = other.doubleValue else { return false }
      return abs(own - other) > max(abs(own), abs(other)) * 0x1p-23
    }
  }

  /// A number with `offset` added, without the noise of binary fractions. A whole number stays one if the offset is
  /// one, so that all values of a property are alike. Without an offset, and what is no number: the same value.
  public func adding(_ offset: Double?) -> Value {
    guard let offset else { return self }
    if case .integer(let number) = self, let whole = Int(exactly: offset) {
      let (sum, isTooLarge) = number.addingReportingOverflow(whole)
      if !isTooLarge { return .integer(sum) }
    }
    guard let number = doubleValue, number.isFinite else { return self }
    return .number((number + offset).withoutNoise(largest: max(abs(number), abs(offset))))
  }

  /// The kind in words, for error messages: `a number`, `text` …
  var kind: String {
    switch self {
    case .integer, .number: "a number"
    case .bool: "true or false"
    case .text: "text"
    case .bytes: "bytes"
    case .record: "a record"
    case .list: "a list"
    case .unknown: "unknown"
    }
  }
}

extension Value: CustomStringConvertible {
  /// The text for logs and error messages; a record without the names of its fields.
  public var description: String {
    switch self {
    case .integer(let number): "\(number)"
    case .number(let number): "\(number)"
    case .bool(let bool): "\(bool)"
    case .text(let text): text
    case .bytes(let bytes): Hexadecimal.text(bytes)
    case .record(let values): values.map { $0?.description ?? "-" }.joined(separator: " ")
    case .list(let values): values.map(\.description).joined(separator: ",")
    case .unknown: "unknown"
    }
  }
}
