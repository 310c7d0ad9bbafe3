/// The decimal floating-point numbers of IEEE 11073-20601: a signed mantissa below a signed exponent of ten.
struct DecimalFloat: Sendable {
  private let mantissaBits: Int
  private let exponentBits: Int

  /// 16 bits: an exponent of 4, a mantissa of 12 bits.
  static let sfloat = DecimalFloat(mantissaBits: 12, exponentBits: 4)
  /// 32 bits: an exponent of 8, a mantissa of 24 bits.
  static let float = DecimalFloat(mantissaBits: 24, exponentBits: 8)

  /// The largest mantissa that is a number: the five beyond it, and below its negative, have meanings of their own.
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
      guard abs(scaled) <= Double(largest) else { break }
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

  /// By way of its text: the binary number that is nearest to the decimal one.
  private static func number(_ mantissa: Int, _ exponent: Int) -> Double {
    Double("\(mantissa)e\(exponent)") ?? .nan
  }
}
