/// A number as text, as many programs send it: `21.50`, ` 23.45`, `-7`.
enum DecimalText {
  /// The longest number that is read or written, in bytes.
  static let longest = 32
  /// Each whole number of the range has a `Double`, and is described without an exponent.
  static let range = -1e15...1e15

  /// The number in `bytes`: digits, with a sign before them and one point; nil: they are anything else. Blanks, line ends and
  /// zeros around it are no part of it: programs send numbers of a fixed width, and the end of a string.
  static func number(_ bytes: ArraySlice<UInt8>) -> Double? {
    guard let end = bytes.lastIndex(where: { !isAround($0) }) else { return nil }
    let text = bytes[...end].drop(while: isAround)
    guard text.count <= longest else { return nil }
    var (hasDigit, hasPoint) = (false, false)
    for (index, byte) in zip(text.indices, text) {
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): hasDigit = true
      case UInt8(ascii: "+") where index == text.startIndex, UInt8(ascii: "-") where index == text.startIndex:
        break
      case UInt8(ascii: ".") where hasDigit && !hasPoint: hasPoint = true
      case _: return nil
      }
    }
    // A sum with 0 is never -0, which `-0.00` is.
    return hasDigit ? Double(String(decoding: text, as: UTF8.self)).map { $0 + 0 } : nil
  }

  private static func isAround(_ byte: UInt8) -> Bool {
    switch byte {
    case 0, UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\n"), UInt8(ascii: "\r"): true
    case _: false
    }
  }

  /// The number within ``range``, with as few digits as it needs.
  static func text(_ number: Double) -> String {
    let text = "\(number + 0)"
    if text.hasSuffix(".0") { return String(text.dropLast(2)) }
    // Only numbers near 0 have an exponent: 1.25e-07.
    guard let mark = text.firstIndex(of: "e"), let exponent = Int(text[text.index(after: mark)...]) else {
      return text
    }
    return (number < 0 ? "-0." : "0.") + String(repeating: "0", count: -exponent - 1)
      + text[..<mark].filter(\.isNumber)
  }
}
