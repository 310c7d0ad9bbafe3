import GATT

extension Codec {
  /// A scalar, as a profile describes it.
  static func scalar(
    _ type: ScalarType, scale: Double? = nil, offset: Double? = nil, endian: Endian = .little,
    values: [Int: String] = [:]
  ) throws -> Codec {
    try Codec(.scalar(Scalar(type, scale: scale, offset: offset, endian: endian, values: values)))
  }

  static func record(_ fields: [Field]) throws -> Codec { try Codec(.record(fields)) }
}

extension Codec.Flag: ExpressibleByStringLiteral {
  /// `flags.0`.
  public init(stringLiteral text: String) {
    guard let flag = Codec.Flag(text) else { preconditionFailure("not a flag: \(text)") }
    self = flag
  }
}

/// The error that `body` throws; nil if it throws none or one of another type.
func error<Problem: Error, R>(of type: Problem.Type, _ body: () throws -> R) -> Problem? {
  do {
    _ = try body()
    return nil
  } catch {
    return error as? Problem
  }
}
