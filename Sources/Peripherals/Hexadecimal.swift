/// `value` in upper-case hexadecimal with leading zeros.
package func hex(_ value: Int, digits: Int) -> String {
  let text = String(value, radix: 16, uppercase: true)
  return String(repeating: "0", count: max(0, digits - text.count)) + text
}

/// The bytes of `00ff`; nil when it is not hexadecimal.
package func bytes(hexadecimal text: String) -> [UInt8]? {
  let digits = text.compactMap(\.hexDigitValue)
  guard digits.count == text.count, digits.count.isMultiple(of: 2) else { return nil }
  return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
}

/// `00ff`: the bytes in lower-case hexadecimal.
package func hexadecimal(_ bytes: [UInt8]) -> String {
  bytes.map { hex(Int($0), digits: 2).lowercased() }.joined()
}
