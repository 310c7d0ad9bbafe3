/// The decimal floating-point numbers of IEEE 11073-20601: a signed mantissa in the low bits, a signed exponent of ten
/// above it.
struct DecimalFloat: Sendable {
  private let mantissaBits: Int
  private let exponentBits: Int

  /// 16 bits: 4 of exponent, 12 of mantissa.
  static let sfloat = DecimalFloat(mantissaBits: 12, exponentBits: 4)
  /// 32 bits: 8 of exponent, 24 of mantissa.
  static let float = DecimalFloat(mantissaBits: 24, exponentBits: 8)

  /// The largest mantissa of a number: the five values beyond it and its negative mean NaN, infinity and so on.
  private var largest: Int { 1 << (mantissaBits - 1) - 3 }
  private var exponents: ClosedRange<Int> { -(1 << (exponentBits - 1))...(1 << (exponentBits - 1) - 1) }

  /// The largest number.
  var limit: Double { Self.number(largest, exponents.upperBound) }

  func decode(_ bits: UInt64) -> Double {
    let mantissa = Self.signed(bits, mantissaBits)
    let exponent = Self.signed(bits >> UInt64(mantissaBits), exponentBits)
    if abs(mantissa) <= largest || exponent != 0 { return Self.number(mantissa, exponent) }
    switch mantissa {
    case largest + 1: return .infinity
    case -largest - 1: return -.infinity
    // NaN, NRes, reserved.
    case _: return .nan
    }
  }

  /// The nearest number, with as few digits as it needs; nil: beyond ``limit``.
  func encode(_ number: Double) -> UInt64? {
    guard number.isFinite else {
      return bits(number.isNaN ? largest + 2 : number < 0 ? -largest - 1 : largest + 1, 0)
    }
    var nearest: UInt64?
    for exponent in exponents.reversed() {
      let scaled = (number / Self.number(1, exponent)).rounded()
      // The mantissas beyond `largest` have other meanings only at the exponent 0.
      let limits = exponent == 0 ? -largest...largest : -largest - 3...largest + 2
      guard (Double(limits.lowerBound)...Double(limits.upperBound)).contains(scaled) else { break }
      let mantissa = Int(scaled)
      nearest = bits(mantissa, exponent)
      if Self.number(mantissa, exponent) == number { break }
    }
    return nearest
  }

  private func bits(_ mantissa: Int, _ exponent: Int) -> UInt64 {
    let mask: (Int) -> UInt64 = { 1 << UInt64($0) - 1 }
    return UInt64(bitPattern: Int64(mantissa)) & mask(mantissaBits)
      | (UInt64(bitPattern: Int64(exponent)) & mask(exponentBits)) << UInt64(mantissaBits)
  }

  private static func signed(_ bits: UInt64, _ count: Int) -> Int {
    Int(Int64(bitPattern: bits << UInt64(64 - count)) >> Int64(64 - count))
  }

  /// Converted from decimal text, which gives the nearest binary number.
  private static func number(_ mantissa: Int, _ exponent: Int) -> Double {
    Double("\(mantissa)e\(exponent)") ?? .nan
  }
}
