import JSON

extension JSONValue: ExpressibleByIntegerLiteral {
  /// This whole number.
  public init(integerLiteral number: Int) { self = .integer(number) }
}
