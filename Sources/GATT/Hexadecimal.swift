/// The value of 1 to 16 hexadecimal digits; nil for anything else.
func hexadecimal(_ digits: some Collection<UInt8>) -> UInt64? {
  guard (1...16).contains(digits.count) else { return nil }
  var number: UInt64 = 0
  for digit in digits {
    let value: UInt8
    switch digit {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): value = digit - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): value = digit - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): value = digit - UInt8(ascii: "A") + 10
    default: return nil
    }
    number = number << 4 | UInt64(value)
  }
  return number
}

/// The lowest `bytes` bytes of `number` as hexadecimal digits, two in lower case for each.
func paddedHexadecimal(_ number: some FixedWidthInteger, bytes: Int) -> String {
  var text = ""
  for shift in stride(from: (bytes - 1) * 8, through: 0, by: -8) {
    let byte = UInt8(truncatingIfNeeded: number >> shift)
    if byte < 0x10 { text.append("0") }
    text += String(byte, radix: 16)
  }
  return text
}
