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

/// A random number generator that repeats its numbers for the same seed (SplitMix64).
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
    return mixed ^ mixed >> 31
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
