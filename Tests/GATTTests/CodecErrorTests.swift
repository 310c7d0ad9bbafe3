import GATT
import Testing

@Suite struct CodecErrorTests {
  @Test func showsTheBytesUpToALimit() {
    func text(_ expected: Int, _ bytes: [UInt8]) -> String {
      CodecError.length(expected: expected, bytes: bytes).description
    }
    #expect(text(1, []) == "expected 1 byte, got 0")
    #expect(text(2, [0x0A, 0xFF, 0x00]) == "expected 2 bytes, got 3: 0a ff 00")
    let long = text(1, [UInt8](repeating: 0xAB, count: 512))
    #expect(long.hasPrefix("expected 1 byte, got 512: ab ab"))
    #expect(long.hasSuffix("ab …"))
    #expect(long.utf8.count < 100)
  }

  @Test(arguments: [
    (CodecError.range(value: -1, allowed: 0...65535), "-1 is outside 0…65535"),
    (.range(value: 128, allowed: 0...127.5), "128 is outside 0…127.5"),
    (.tooShort(needed: 3, bytes: [1, 2]), "expected at least 3 bytes, got 2: 01 02"),
    (.notUTF8([0xFF]), "not UTF-8: ff"),
    (.notEddystoneURL([0xEB, 9]), "not an address of Eddystone-URL: eb 09"),
    (.tooLarge(.max), "18446744073709551615 is above 9223372036854775807"),
    (.kind(expected: "a number", found: "text"), "expected a number, got text"),
    (.word("ajar", known: ["closed", "open"]), #""ajar" is not one of closed, open"#),
    (.tooLong(count: 21, most: 20), "21 bytes are more than 20"),
    (.field("bpm", .missingField), "bpm: missing"),
    (.presence, "these fields cannot be present and missing together"),
  ])
  func errorDescriptionIsAPlainSentence(error: CodecError, text: String) {
    #expect(error.description == text)
  }
}
