import Testing

@testable import GATT

@Suite struct PresentationFormatTests {
  @Test(
    arguments: [
      ([0x0E, 0xFE, 0x2F, 0x27, 1, 0, 0], "sint16 × 10^-2, degree Celsius"),
      ([0x04, 0x00, 0xAD, 0x27, 1, 0, 0], "uint8, percent"), ([0x19, 0, 0, 0x27, 1, 0, 0], "utf8s"),
      ([0xFF, 0x01, 0xFF, 0xFF, 1, 0, 0], "format 255 × 10^1, unit 0xffff"),
    ] as [([UInt8], String)])
  func typeAndUnitInWords(bytes: [UInt8], text: String) {
    #expect(PresentationFormat(bytes)?.description == text)
  }

  @Test(arguments: [[], [0x0E, 0, 0x2F, 0x27, 1, 0], Array(repeating: 0, count: 8)] as [[UInt8]])
  func otherLengthIsNone(bytes: [UInt8]) { #expect(PresentationFormat(bytes) == nil) }
}
