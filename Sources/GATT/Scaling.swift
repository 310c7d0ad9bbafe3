/// `raw × scale + offset`, computed so that a decimal scale gives an exact decimal number: 2153 × 0.01 is 21.53, not
/// 21.530000000000001.
struct Scaling: Sendable {
  // (raw × factor + addend) ÷ divisor; where scale and offset are decimal fractions, only the division rounds.
  private let factor: Double
  private let addend: Double
  private let divisor: Double
  /// Whether all values are whole numbers, as scale and offset are.
  private let isWhole: Bool

  init(scale: Double, offset: Double, of integers: ClosedRange<Int>) throws(ProfileError) {
    let largest = max(Double(integers.lowerBound.magnitude), Double(integers.upperBound))
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
    let number = number(raw)
    if isWhole, let whole = Int(exactly: number) { return .integer(whole) }
    return .number(number)
  }

  @inline(__always)
  private func number(_ raw: Int) -> Double { (Double(raw) * factor + addend) / divisor }

  /// The raw number whose scaled value is nearest to `value`.
  func raw(_ value: Double) -> Double { ((value * divisor - addend) / factor).rounded() }

  /// The difference of the values of two successive integers.
  var step: Double { abs(factor) / divisor }

  func range(of integers: ClosedRange<Int>) -> ClosedRange<Double> {
    let ends = [number(integers.lowerBound), number(integers.upperBound)]
    return min(ends[0], ends[1])...max(ends[0], ends[1])
  }
}
