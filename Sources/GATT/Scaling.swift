import Glibc

/// `raw × scale + offset`, computed so that a decimal scale gives an exact decimal number: 2153 × 0.01 is 21.53, not
/// 21.530000000000001.
struct Scaling: Sendable {
  // (raw × factor + addend) ÷ divisor; where scale and offset are decimal fractions, only the division rounds.
  private let factor: Double
  private let addend: Double
  private let divisor: Double
  /// Whether all values are whole numbers, as scale and offset are.
  private let isWhole: Bool

  /// - Parameter integers: the numbers that are scaled; nil: those with a fraction.
  init(scale: Double, offset: Double, of integers: ClosedRange<Int>?) throws(ProfileError) {
    let largest = integers.map { max(Double($0.lowerBound.magnitude), Double($0.upperBound)) } ?? 1
    try require(
      scale.isFinite && scale != 0 && (largest * scale).isFinite, ["scale"],
      "\(scale) is not a usable scale")
    try require(
      offset.isFinite && (largest * abs(scale) + abs(offset)).isFinite, ["offset"],
      "\(offset) is not a usable offset")
    isWhole = scale == scale.rounded() && offset == offset.rounded()
    var power = 1.0
    for _ in 0...15 {
      let factor = (scale * power).rounded()
      let addend = (offset * power).rounded()
      guard largest * abs(factor) + abs(addend) <= 0x1p53 else { break }
      if factor / power == scale, addend / power == offset {
        self.factor = factor
        self.addend = addend
        self.divisor = power
        return
      }
      power *= 10
    }
    factor = scale
    addend = offset
    divisor = 1
  }

  @inline(__always)
  func value(_ raw: Int) -> Value {
    let number = number(Double(raw))
    if isWhole, let whole = Int(exactly: number) { return .integer(whole) }
    return .number(number)
  }

  /// The value of a number with a fraction, without the noise of binary ones.
  func value(_ raw: Double) -> Value {
    .number(number(raw).withoutNoise(largest: max(abs(raw * factor), abs(addend)) / divisor))
  }

  @inline(__always)
  private func number(_ raw: Double) -> Double { (raw * factor + addend) / divisor }

  /// The number whose scaled value is `value`.
  func raw(_ value: Double) -> Double { (value * divisor - addend) / factor }

  /// The difference of the values of two successive integers.
  var step: Double { abs(factor) / divisor }

  func range(of raw: ClosedRange<Double>) -> ClosedRange<Double> {
    let most = Double.greatestFiniteMagnitude
    let ends = [raw.lowerBound, raw.upperBound].map { max(-most, min(number($0), most)) }
    return min(ends[0], ends[1])...max(ends[0], ends[1])
  }
}

extension Double {
  /// The result of a calculation without the noise of binary fractions: with 14 digits, from the first one of `largest`, the
  /// largest number that was added. Below 1e-9 it is kept, as higher powers of ten are not exact.
  func withoutNoise(largest: Double) -> Double {
    let power = pow(10, 13 - log10(abs(largest)).rounded(.down))
    return (1...1e22).contains(power) ? (self * power).rounded() / power : self
  }
}
