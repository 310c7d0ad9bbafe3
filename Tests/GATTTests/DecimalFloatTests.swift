import GATT
import JSON
import Testing

/// IEEE 11073 numbers: examples of the Bluetooth SIG's formats, and special values.
@Suite struct DecimalFloatTests {
  struct Example: Sendable {
    let type: Codec.ScalarType
    let value: Double
    let bytes: [UInt8]
  }

  /// Health Thermometer's 36.4 °C as in the Personal Health Devices Transcoding White Paper, and the limits.
  static let examples = [
    Example(type: .float, value: 36.4, bytes: [0x6C, 0x01, 0x00, 0xFF]),
    Example(type: .float, value: -36.4, bytes: [0x94, 0xFE, 0xFF, 0xFF]),
    Example(type: .float, value: 8_388_605e127, bytes: [0xFD, 0xFF, 0x7F, 0x7F]),
    Example(type: .float, value: .infinity, bytes: [0xFE, 0xFF, 0x7F, 0x00]),
    Example(type: .float, value: -.infinity, bytes: [0x02, 0x00, 0x80, 0x00]),
    Example(type: .sfloat, value: 114, bytes: [0x72, 0x00]),
    Example(type: .sfloat, value: 11.4, bytes: [0x72, 0xF0]),
    Example(type: .sfloat, value: -0.5, bytes: [0xFB, 0xFF]),
    Example(type: .sfloat, value: 1e-8, bytes: [0x01, 0x80]),
    Example(type: .sfloat, value: 2045e7, bytes: [0xFD, 0x77]),
    Example(type: .sfloat, value: .infinity, bytes: [0xFE, 0x07]),
    Example(type: .sfloat, value: -.infinity, bytes: [0x02, 0x08]),
  ]

  @Test(arguments: examples)
  func exampleIsDecodedAndEncoded(example: Example) throws {
    let codec = try Codec.scalar(example.type)
    #expect(try codec.decode(example.bytes) == .number(example.value))
    #expect(try codec.encode(.number(example.value)) == example.bytes)
  }

  /// NaN, NRes (not at this resolution), reserved.
  @Test(arguments: [
    [0xFF, 0x07], [0x00, 0x08], [0x01, 0x08], [0xFF, 0xFF, 0x7F, 0], [0, 0, 0x80, 0], [1, 0, 0x80, 0],
  ])
  func specialValuesBecomeNaN(bytes: [UInt8]) throws {
    let codec = try Codec.scalar(bytes.count == 2 ? .sfloat : .float)
    guard case .number(let number) = try codec.decode(bytes) else { return #expect(Bool(false)) }
    #expect(number.isNaN)
  }

  @Test func anyExponentIsDecodedAndEncodingRounds() throws {
    // 3640 × 10⁻² is 364 × 10⁻¹.
    #expect(try Codec.scalar(.float).decode([0x38, 0x0E, 0x00, 0xFE]) == .number(36.4))
    #expect(
      try Codec.scalar(.sfloat).decode(Codec.scalar(.sfloat).encode(.number(123_456))) == .number(123_500))
    #expect(try Codec.scalar(.sfloat).encode(.number(.nan)) == [0xFF, 0x07])
    #expect(throws: CodecError.range(value: 3e10, allowed: -2045e7...2045e7)) {
      try Codec.scalar(.sfloat).encode(.number(3e10))
    }
  }
}

/// The micro:bit's LEDs as a text.
@Suite struct BitPictureTests {
  private let codec = try? Codec(.scalar(.bits(rows: 5, columns: 5)))

  @Test func rowsAreLinesOfCharacters() throws {
    let codec = try #require(codec)
    let bytes: [UInt8] = [0b01010, 0b11111, 0b11111, 0b01110, 0b00100]
    let text = ".#.#./#####/#####/.###./..#.."
    #expect(try codec.decode(bytes) == .text(text))
    #expect(try codec.encode(.text(text)) == bytes)
    #expect(try codec.encode(.text("01010\n11111\n#####\n .###. 00100 ")) == bytes)
    #expect(try codec.encode(.text("#....")) == [0b10000, 0, 0, 0, 0], "the other rows are off")
    #expect(
      try codec.decode([0xFF]) == .text("#####/...../...../...../....."),
      "bits beyond the columns are ignored")
  }

  @Test(arguments: ["", "#", "######", "#x...", ".../...", "...../...../...../...../...../....."])
  func otherTextsAreRefused(text: String) throws {
    let codec = try #require(codec)
    #expect(throws: CodecError.self) { try codec.encode(.text(text)) }
  }

  @Test(arguments: [[], [1, 2, 3, 4, 5, 6]])
  func otherLengthsAreRefused(bytes: [UInt8]) throws {
    let codec = try #require(codec)
    #expect(throws: CodecError.length(expected: 5, bytes: bytes)) { try codec.decode(bytes) }
  }

  private static let wrong: [(Codec.Scalar, String)] = [
    (Codec.Scalar(.bits), "rows"), (Codec.Scalar(.bits, rows: 5), "columns"),
    (.bits(rows: 513, columns: 5), "rows"), (.bits(rows: 5, columns: 9), "columns"),
    (Codec.Scalar(.uint8, rows: 1), "rows"), (Codec.Scalar(.uint8, columns: 1), "columns"),
  ]

  @Test(arguments: wrong)
  func descriptionsAreChecked(scalar: Codec.Scalar, key: String) {
    #expect(error(of: ProfileError.self) { try Codec(.scalar(scalar)) }?.path == [.key(key)])
  }
}
