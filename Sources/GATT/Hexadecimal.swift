/// Numbers and bytes in hexadecimal digits.
package enum Hexadecimal {
  /// The value of 1 to 16 digits; nil for anything else.
  static func number(_ digits: some Collection<UInt8>) -> UInt64? {
    // `UInt64` takes a sign, too.
    guard (1...16).contains(digits.count), digits.allSatisfy({ $0 >= UInt8(ascii: "0") }) else { return nil }
    return UInt64(String(decoding: digits, as: UTF8.self), radix: 16)
  }

  /// The bytes of `00ff`; nil if it is not two digits for each.
  package static func bytes(_ text: String) -> [UInt8]? {
    let digits = Array(text.utf8)
    guard digits.count.isMultiple(of: 2) else { return nil }
    var bytes: [UInt8] = []
    for start in stride(from: 0, to: digits.count, by: 2) {
      guard let byte = number(digits[start...start + 1]) else { return nil }
      bytes.append(UInt8(byte))
    }
    return bytes
  }

  /// The lowest `bytes` bytes of `number`, two lower-case digits for each.
  package static func text(_ number: some FixedWidthInteger, bytes: Int) -> String {
    let count = 2 * bytes
    return String(unsafeUninitializedCapacity: count) { text in
      for index in 0..<count {
        let digit = UInt8(truncatingIfNeeded: number >> (4 * (count - 1 - index))) & 0xF
        text[index] = digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10
      }
      return count
    }
  }

  /// `00ff`: two lower-case digits for each byte.
  package static func text(_ bytes: some Sequence<UInt8>) -> String {
    bytes.map { text($0, bytes: 1) }.joined()
  }
}
