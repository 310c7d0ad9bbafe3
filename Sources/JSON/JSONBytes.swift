extension UInt8 {
  /// Whether the byte is white space in JSON.
  var isWhiteSpace: Bool { self == 0x20 || self == 0x09 || self == 0x0A || self == 0x0D }

  var isDigit: Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self) }
}

extension [UInt8] {
  /// The offset of the first invalid byte; nil if all is valid UTF-8.
  var firstInvalidUTF8: Int? {
    if String(validating: self, as: UTF8.self) != nil { return nil }
    var parser = Unicode.UTF8.ForwardParser()
    var iterator = makeIterator()
    var valid = 0
    while case .valid(let scalar) = parser.parseScalar(from: &iterator) { valid += scalar.count }
    return valid
  }
}

extension ArraySlice<UInt8> {
  /// The first character, for an error text: `"x"`, `a tab`, `the end`.
  var firstCharacterDescription: String {
    guard let byte = first else { return "the end" }
    switch byte {
    case 0x0A, 0x0D: return "the end of the line"
    case 0x09: return "a tab"
    case 0..<0x20: return "a control character"
    case _:
      let scalars = String(decoding: prefix(4), as: UTF8.self).unicodeScalars
      return "\(Excerpt(String(scalars.prefix(1))))"
    }
  }
}
