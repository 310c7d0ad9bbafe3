import Cryptography
import Testing

@Suite struct AESCCMTests {
  private static let key: [UInt8] = Array(0x40...0x4F)
  private static let nonce: [UInt8] = Array(0x10...0x1B)
  /// Example 3 of NIST SP 800-38C without its associated data, by Python's cryptography 50.0.2.
  private static let text: [UInt8] = Array(0x20...0x37)
  private static let ciphertext: [UInt8] = [
    0xe3, 0xb2, 0x01, 0xa9, 0xf5, 0xb7, 0x1a, 0x7a, 0x9b, 0x1c, 0xea, 0xec,
    0xcd, 0x97, 0xe7, 0x0b, 0x61, 0x76, 0xaa, 0xd9, 0xa4, 0x42, 0x8a, 0xa5,
  ]
  private static let tag: [UInt8] = [0xff, 0x8f, 0xa0, 0x60]

  @Test func aTextIsOpened() {
    #expect(AESCCM.open(Self.ciphertext, tag: Self.tag, nonce: Self.nonce, key: Self.key) == Self.text)
  }

  @Test func whatWasChangedIsRefused() {
    for index in Self.ciphertext.indices {
      var changed = Self.ciphertext
      changed[index] ^= 1
      #expect(AESCCM.open(changed, tag: Self.tag, nonce: Self.nonce, key: Self.key) == nil)
    }
    for index in Self.tag.indices {
      var changed = Self.tag
      changed[index] ^= 0x80
      #expect(AESCCM.open(Self.ciphertext, tag: changed, nonce: Self.nonce, key: Self.key) == nil)
    }
  }

  @Test func anotherKeyIsRefused() {
    #expect(AESCCM.open(Self.ciphertext, tag: Self.tag, nonce: Self.nonce, key: Self.key.reversed()) == nil)
    #expect(AESCCM.open(Self.ciphertext, tag: Self.tag, nonce: Self.nonce, key: [1, 2]) == nil)
  }
}
