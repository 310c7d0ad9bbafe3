import GATT
import Testing

@Suite struct CodecTests {
  @Test(arguments: [(0, 0x00), (21, 0x15), (127, 0x7F), (-1, 0xFF), (-128, 0x80)])
  func int8IsTwosComplement(value: Int, byte: UInt8) throws {
    #expect(try Codec.int8.decode([byte]) == .integer(value))
    #expect(try Codec.int8.encode(.integer(value)) == [byte])
  }

  @Test(arguments: [
    (0, [0, 0]), (1, [1, 0]), (1000, [0xE8, 0x03]), (0x1234, [0x34, 0x12]), (0xFFFF, [0xFF, 0xFF]),
  ])
  func uint16IsLittleEndian(value: Int, bytes: [UInt8]) throws {
    #expect(try Codec.uint16.decode(bytes) == .integer(value))
    #expect(try Codec.uint16.encode(.integer(value)) == bytes)
  }

  @Test(arguments: [0, 2, 20])
  func int8RefusesOtherLengthsAndKeepsTheBytes(count: Int) {
    let bytes = [UInt8](repeating: 7, count: count)
    #expect(throws: CodecError.length(expected: 1, bytes: bytes)) { try Codec.int8.decode(bytes) }
  }

  @Test(arguments: [0x10000, -1, Int.max, Int.min])
  func uint16RefusesWhatHasNoBytes(value: Int) {
    #expect(throws: CodecError.range(value: Double(value), allowed: 0...0xFFFF)) {
      try Codec.uint16.encode(.integer(value))
    }
  }

  @Test func errorsShowTheBytesUpToALimit() {
    func text(_ expected: Int, _ bytes: [UInt8]) -> String {
      CodecError.length(expected: expected, bytes: bytes).description
    }
    #expect(text(1, []) == "expected 1 byte, got 0")
    #expect(text(2, [0x0A, 0xFF, 0x00]) == "expected 2 bytes, got 3: 0a ff 00")
    let long = text(1, [UInt8](repeating: 0xAB, count: 512))
    #expect(long.hasPrefix("expected 1 byte, got 512: ab ab"))
    #expect(long.hasSuffix("ab …"))
    #expect(long.utf8.count < 100)
    #expect(CodecError.range(value: -1, allowed: 0...65535).description == "-1 is outside 0…65535")
  }
}
