import GATT
import Testing

@Suite struct FlagsCodecTests {
  private func codec(_ names: [Int: String], _ type: Codec.ScalarType = .uint32) throws -> Codec {
    try Codec(.flags(type, names))
  }

  @Test func theNamesOfTheSetBitsAreTheValue() throws {
    let codec = try codec([0: "P0", 1: "P1", 17: "P19"])
    #expect(try codec.decode([0x01, 0, 0x02, 0]) == .list([.text("P0"), .text("P19")]))
    #expect(try codec.decode([0, 0, 0, 0]) == .list([]))
    #expect(try codec.encode(.list([.text("P19"), .text("P0"), .text("P0")])) == [0x01, 0, 0x02, 0])
    // A bit without a name.
    #expect(try codec.decode([0x05, 0, 0, 0]) == .list([.text("P0"), .integer(2)]))
    #expect(try codec.encode(.list([.text("P0"), .integer(2)])) == [0x05, 0, 0, 0])
  }

  @Test func otherValuesAreRefused() throws {
    let codec = try codec([0: "P0", 1: "P1"])
    #expect(throws: CodecError.word("P2", known: ["P0", "P1"])) { try codec.encode(.list([.text("P2")])) }
    #expect(throws: CodecError.kind(expected: "a list", found: "a number")) {
      try codec.encode(.integer(1))
    }
    #expect(throws: CodecError.range(value: 32, allowed: 0...31)) { try codec.encode(.list([.integer(32)])) }
    #expect(throws: CodecError.kind(expected: "a name", found: "true or false")) {
      try codec.encode(.list([.bool(true)]))
    }
    #expect(throws: CodecError.length(expected: 4, bytes: [1])) { try codec.decode([1]) }
  }

  @Test func wrongDescriptionsAreRefused() {
    #expect(throws: ProfileError(["flags"], "uint8 has no bit 8")) { try codec([8: "a"], .uint8) }
    #expect(throws: ProfileError(["flags"], "\"a\" stands for two bits")) { try codec([0: "a", 1: "a"]) }
    #expect(throws: ProfileError.notAnInteger(key: "flags", type: .int8)) {
      try codec([0: "a"], .int8)
    }
  }
}
