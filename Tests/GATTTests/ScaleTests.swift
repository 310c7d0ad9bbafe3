import GATT
import Testing

@Suite struct ScaleTests {
  /// A plain floating-point multiplication would give each of these spurious digits at its end.
  @Test(
    arguments: [
      (Codec.ScalarType.int16, 0.01, nil, 2153, 21.53), (.int16, 0.01, nil, -27315, -273.15),
      (.uint16, 0.01, nil, 5507, 55.07), (.uint32, 0.1, nil, 1_013_253, 101_325.3),
      (.uint16, 0.1, -40, 613, 21.3), (.uint8, 0.3, nil, 3, 0.9), (.uint16, 0.02, -273.15, 14727, 21.39),
      (.uint16, 0.0009765625, nil, 1024, 1), (.uint16, 0.0009765625, nil, 1, 0.0009765625),
      (.uint24, 1e-3, nil, 1_234_567, 1234.567), (.int8, 0.5, nil, -128, -64),
      (.int32, 1e-7, nil, 521_234_567, 52.1234567),
    ] as [(Codec.ScalarType, Double?, Double?, Int, Double)])
  func scaledValueIsAnExactDecimal(
    type: Codec.ScalarType, scale: Double?, offset: Double?, raw: Int, value: Double
  ) throws {
    let plain = try Codec.scalar(type)
    let codec = try Codec.scalar(type, scale: scale, offset: offset)
    let bytes = try plain.encode(.integer(raw))
    #expect(try codec.decode(bytes) == .number(value))
    #expect(try codec.encode(.number(value)) == bytes)
  }

  /// JSON readers and Home Assistant expect 1000, not 1000.0.
  @Test(
    arguments: [
      (Codec.ScalarType.uint8, 500, nil, 2, 1000), (.int8, -1, nil, 5, -5), (.uint8, 5, 100, 3, 115),
      (.uint8, nil, -40, 255, 215), (.uint64, 2, nil, 500, 1000), (.uint8, 1e10, nil, 255, 2_550_000_000_000),
    ] as [(Codec.ScalarType, Double?, Double?, Int, Int)])
  func wholeScaleKeepsNumbersWhole(
    type: Codec.ScalarType, scale: Double?, offset: Double?, raw: Int, value: Int
  ) throws {
    let codec = try Codec.scalar(type, scale: scale, offset: offset)
    let bytes = try Codec.scalar(type).encode(.integer(raw))
    #expect(try codec.decode(bytes) == .integer(value))
    #expect(try codec.encode(.integer(value)) == bytes)
  }

  /// Glucose in kg/L as mg/dL, Fahrenheit, mV.
  @Test(
    arguments: [
      (Codec.ScalarType.sfloat, 100_000, nil, 0.00091, 91), (.float, 0.1, nil, -36.5, -3.65),
      (.float32, 1.8, 32, 21.3, 70.34), (.float64, nil, -273.15, 300, 26.85),
      (.decimal, 0.001, nil, 2953, 2.953), (.float32, 1e-12, nil, 1.5, 1.5e-12),
      (.float, 0.001, nil, 4.56e-6, 4.56e-9), (.float64, 0.5, nil, 0, 0),
      (.float32, 100, nil, 1e30, 1e32), (.sfloat, 100, nil, .infinity, .infinity),
    ] as [(Codec.ScalarType, Double?, Double?, Double, Double)])
  func numbersWithAFractionAreScaled(
    type: Codec.ScalarType, scale: Double?, offset: Double?, raw: Double, value: Double
  ) throws {
    let codec = try Codec.scalar(type, scale: scale, offset: offset)
    let bytes = try Codec.scalar(type).encode(.number(raw))
    #expect(try codec.decode(bytes) == .number(value))
    #expect(try codec.encode(.number(value)) == bytes)
    #expect(codec.step == nil)
  }

  @Test func theRangeOfScaledFractionsHasAnEnd() throws {
    let most = Double.greatestFiniteMagnitude
    #expect(try Codec.scalar(.float64, scale: 100).range == -most...most)
    #expect(
      try Codec.scalar(.decimal, scale: -0.001, offset: 5).range == -999_999_999_995...1_000_000_000_005)
    let codec = try Codec.scalar(.float32, scale: 0.1)
    let problem = error(of: CodecError.self) { try codec.encode(.number(3.5e37)) }
    #expect(problem?.description.hasPrefix("3.5e+37 is outside -3.40") == true)
    let limited = try Codec(.scalar(Codec.Scalar(.float32, scale: 100, valid: 0...100)))
    #expect(throws: CodecError.range(value: 150, allowed: 0...100)) {
      try limited.decode([0, 0, 0xC0, 0x3F])
    }
  }

  @Test func encodesTheNearestRepresentableValue() throws {
    let codec = try Codec.scalar(.uint8, scale: 0.5)
    #expect(try codec.encode(.number(10.2)) == [20])
    #expect(try codec.encode(.number(10.3)) == [21])
    #expect(try codec.encode(.integer(10)) == [20])
    #expect(codec.range == 0...127.5)
    for value in [-0.3, 128, 1e300, -1e300, .infinity] {
      #expect(throws: CodecError.range(value: value, allowed: 0...127.5)) {
        try codec.encode(.number(value))
      }
    }
    #expect(error(of: CodecError.self) { try codec.encode(.number(.nan)) } != nil)
  }

  @Test func negativeScaleReversesTheRange() throws {
    #expect(try Codec.scalar(.uint8, scale: -2, offset: 1).range == -509...1)
  }

  /// A third is no decimal fraction.
  @Test func anyScaleWorks() throws {
    let codec = try Codec.scalar(.int16, scale: 1.0 / 3, offset: 0.1)
    let plain = try Codec.scalar(.int16)
    for raw in [-32768, -1, 0, 1, 3, 32767] {
      let bytes = try plain.encode(.integer(raw))
      #expect(try codec.decode(bytes) == .number(Double(raw) * (1.0 / 3) + 0.1))
      #expect(try codec.encode(try codec.decode(bytes)) == bytes)
    }
  }
}
