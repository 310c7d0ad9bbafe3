/// A small generator that gives the same numbers for the same seed (Steele, Lea and Flood, "Fast Splittable
/// Pseudorandom Number Generators", 2014).
public struct SplitMix64: RandomNumberGenerator {
  private var state: UInt64

  /// - Parameter state: the seed.
  public init(state: UInt64) {
    self.state = state
  }

  /// The next 64 bits.
  public mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }
}
