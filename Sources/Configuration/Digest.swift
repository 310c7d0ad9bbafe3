/// A number that tells whether two contents are the same: FNV-1a of 64 bits (RFC 9923). It is the same in every run,
/// which `Hasher` is not.
package enum Digest {
  package static func of(_ bytes: [UInt8]) -> UInt64 {
    bytes.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
  }
}
