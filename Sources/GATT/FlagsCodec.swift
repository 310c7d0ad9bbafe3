/// A compiled ``Codec/Description/flags(_:_:)``: the set bits of a number, as a list of their names.
struct FlagsCodec: Sendable {
  private let number: ScalarCodec
  private let names: [Int: String]
  private let bits: [String: Int]

  var width: Int { number.width }

  init(_ type: Codec.ScalarType, _ names: [Int: String]) throws(ProfileError) {
    guard let integers = type.integers, integers.lowerBound == 0, let width = type.width else {
      throw .notAnInteger(key: "flags", type: type)
    }
    number = try ScalarCodec(Codec.Scalar(type))
    self.names = names
    var bits: [String: Int] = [:]
    for (bit, name) in names.sorted(by: { $0.key < $1.key }) {
      try require((0..<width * 8).contains(bit), ["flags"], "\(type.rawValue) has no bit \(bit)")
      try require(!name.isEmpty, ["flags"], "a name is empty")
      try require(
        bits.updateValue(bit, forKey: name) == nil, ["flags"], "\"\(name)\" stands for two bits")
    }
    self.bits = bits
  }

  /// A bit without a name is its number.
  func decode(_ bytes: [UInt8]) -> Value {
    let value = number.bits(bytes, at: 0)
    return .list(
      (0..<width * 8).filter { value >> UInt64($0) & 1 == 1 }.map {
        names[$0].map(Value.text) ?? .integer($0)
      })
  }

  /// A bit is set by its name, or by its number.
  func encode(_ value: Value, to bytes: inout [UInt8]) throws(CodecError) {
    guard case .list(let list) = value else { throw .kind(expected: "a list", found: value.kind) }
    var value: UInt64 = 0
    for element in list {
      switch element {
      case .integer(let bit):
        guard (0..<width * 8).contains(bit) else {
          throw .range(value: Double(bit), allowed: 0...Double(width * 8 - 1))
        }
        value |= 1 << UInt64(bit)
      case .text(let name):
        guard let bit = bits[name] else { throw .word(name, known: names.inOrder) }
        value |= 1 << UInt64(bit)
      case _: throw .kind(expected: "a name", found: element.kind)
      }
    }
    number.append(value, to: &bytes)
  }
}
