import GATT

extension Profile {
  /// The micro:bit's default properties: all of them are integers.
  static let microbitDefault = Profile.microbit.limited(to: Set(Profile.microbit.defaultProperties))

  /// Those of `values`, by the names of properties, that a command may ask for; of properties of other versions all.
  func settable(_ values: [String: Int]) -> [String: Int] {
    values.filter { property(named: $0.key)?.integers.contains($0.value) ?? true }
  }
}

extension Property {
  /// What a command may ask for, of a property that is an integer.
  var integers: ClosedRange<Int> {
    guard let range = range ?? codec.range else { return 0...0 }
    return (Int(exactly: range.lowerBound) ?? .min)...(Int(exactly: range.upperBound) ?? .max)
  }
}

extension Codec {
  func decodeInteger(_ bytes: [UInt8]) throws(CodecError) -> Int {
    let value = try decode(bytes)
    guard case .integer(let integer) = value else {
      throw .kind(expected: "a whole number", found: "\(value)")
    }
    return integer
  }
}
