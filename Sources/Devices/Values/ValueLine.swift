import Configuration
import GATT

/// A line `name:value` of a micro:bit's program, as MakeCode's `bluetooth uart write value` sends it.
struct ValueLine: Equatable, Sendable {
  /// As the program writes it.
  let name: String
  /// The name in topics: see ``key(of:)``.
  let key: ValueKey
  /// A number, or a text.
  let value: Value

  /// In bytes: a longer text is not a value. Home Assistant shows no longer one.
  private static let longestText = 255
  /// Of one send of a micro:bit. A V1 drops the rest of a longer one, with its line end, so that the next line follows
  /// at once (lancaster-university/codal-microbit-v2#105).
  static let sendSize = 20

  /// Nil if it is another kind of line. It is split at the last colon.
  init?(_ line: String) {
    let bytes = Array(line.utf8)
    guard let colon = bytes.lastIndex(of: UInt8(ascii: ":")) else { return nil }
    var name = bytes[..<colon]
    // Behind lines that were cut.
    while name.contains(UInt8(ascii: ":")) {
      guard name.count > Self.sendSize else { return nil }
      name = name.dropFirst(Self.sendSize)
    }
    guard let written = String(validating: name, as: UTF8.self),
      let rest = String(validating: bytes[(colon + 1)...], as: UTF8.self)
    else { return nil }
    self.name = written.trimmed
    guard let key = Self.key(of: self.name) else { return nil }
    self.key = key
    if let number = Self.number(rest.trimmed) {
      value = number
    } else {
      // A sentence has spaces there.
      guard !rest.isEmpty, rest.utf8.count <= Self.longestText, !self.name.contains(" "), !rest.hasPrefix(" ")
      else { return nil }
      value = .text(rest)
    }
  }

  /// A name as it stands in topics: in lower case, with one `_` for other characters than letters and digits of ASCII.
  /// Nil if nothing is left, or too much.
  static func key(of name: String) -> ValueKey? {
    var key: [UInt8] = []
    for byte in name.utf8.prefix(1024) {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): key.append(byte)
      case UInt8(ascii: "A")...UInt8(ascii: "Z"): key.append(byte | 0x20)
      case _: if let last = key.last, last != UInt8(ascii: "_") { key.append(UInt8(ascii: "_")) }
      }
    }
    if key.last == UInt8(ascii: "_") { key.removeLast() }
    return ValueKey(String(decoding: key, as: UTF8.self))
  }

  /// A number as JavaScript writes it: `21`, `-0.5`, `1e-7`, `NaN`, `Infinity`.
  static func number(_ text: String) -> Value? {
    switch text {
    case "NaN": return .number(.nan)
    case "Infinity": return .number(.infinity)
    case "-Infinity": return .number(-.infinity)
    case _: break
    }
    // Otherwise `Double` also takes hexadecimal digits, and "inf".
    guard let first = text.utf8.first(where: { $0 != UInt8(ascii: "-") }), let last = text.utf8.last,
      isDigit(first), isDigit(last), text.utf8.allSatisfy({ isDigit($0) || "+-.eE".utf8.contains($0) })
    else { return nil }
    return Int(text).map(Value.integer) ?? Double(text).map(Value.number)
  }

  private static func isDigit(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
  }
}

extension String {
  fileprivate var trimmed: String {
    var text = self[...]
    while text.last == " " { text.removeLast() }
    return String(text.drop { $0 == " " })
  }
}
