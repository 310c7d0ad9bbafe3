import JSON

/// How text of unknown origin is written.
enum LogEscaping {
  case text
  /// Text between double quotes.
  case quotedText
  /// Text between double quotes, in JSON.
  case json

  func piece(_ scalar: Unicode.Scalar) -> String {
    switch scalar {
    case _ where self == .json: scalar.inJSON
    case "\n": "\\n"
    case "\r": "\\r"
    case "\t": "\\t"
    case "\"" where self != .text, "\\" where self != .text: "\\\(scalar)"
    case _ where scalar.isInvisible: "\\u{\(String(scalar.value, radix: 16))}"
    case _: String(Character(scalar))
    }
  }
}

extension [UInt8] {
  /// Appends `value`, in quotes if it needs them.
  mutating func append(value: String) {
    let isQuoted = value.isEmpty || value.unicodeScalars.contains(where: \.needsQuotes)
    if isQuoted { append(UInt8(ascii: "\"")) }
    append(value, limit: LogLine.valueLimit, as: isQuoted ? .quotedText : .text)
    if isQuoted { append(UInt8(ascii: "\"")) }
  }

  /// Appends `text`, and escapes invisible characters.
  mutating func append(_ text: String, limit: Int, as escaping: LogEscaping) {
    // Printable ASCII, the usual case, is appended unchanged.
    let isPlain = text.utf8.allSatisfy { byte in
      (0x20..<0x7F).contains(byte)
        && (escaping == .text || (byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")))
    }
    if isPlain, text.utf8.count <= limit {
      self += text.utf8
      return
    }
    var room = limit
    for scalar in text.unicodeScalars {
      let piece = escaping.piece(scalar)
      room -= piece.utf8.count
      guard room >= 0 else {
        self += "…".utf8
        return
      }
      self += piece.utf8
    }
  }

  /// Truncates a line that is too long.
  mutating func cut(to limit: Int) {
    guard count > limit else { return }
    let mark = "…"
    var end = limit - mark.utf8.count
    // Back to the first byte of a character: following bytes are 10xxxxxx.
    while self[end] & 0xC0 == 0x80 { end -= 1 }
    removeSubrange(end...)
    self += mark.utf8
  }
}

extension Unicode.Scalar {
  fileprivate var needsQuotes: Bool {
    (isASCII ? self == " " : properties.isWhitespace) || self == "\"" || self == "\\" || self == "="
      || isInvisible
  }
}
