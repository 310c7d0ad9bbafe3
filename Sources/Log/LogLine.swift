/// A line of the log as text.
///
/// Fields contain advertised names and payloads from the broker: these must not begin a new line, look like another
/// field, or send control sequences to the terminal.
struct LogLine {
  let level: LogLevel
  /// `level component: message key=value …` in UTF-8, without prefix and line end.
  private(set) var bytes: [UInt8] = []

  /// The maximum length in bytes: with the prefix below PIPE_BUF, so that it is written to a pipe at once.
  static let limit = 2048
  /// The maximum length of a value, so that one does not displace the others.
  static let valueLimit = 512

  init(level: LogLevel, component: String, message: String, _ fields: LogFields) {
    self.level = level
    bytes.reserveCapacity(256)
    bytes += level.name.utf8
    bytes.append(UInt8(ascii: " "))
    bytes += component.utf8
    bytes += ": ".utf8
    append(message, limit: LogLine.limit, quoted: false)
    for (key, value) in fields {
      bytes.append(UInt8(ascii: " "))
      bytes += key.utf8
      bytes.append(UInt8(ascii: "="))
      append(value: value.description)
    }
    cut()
  }

  private mutating func append(value: String) {
    let quoted = value.isEmpty || value.unicodeScalars.contains(where: LogLine.needsQuotes)
    if quoted { bytes.append(UInt8(ascii: "\"")) }
    append(value, limit: LogLine.valueLimit, quoted: quoted)
    if quoted { bytes.append(UInt8(ascii: "\"")) }
  }

  /// Appends `text`, and escapes invisible characters.
  private mutating func append(_ text: String, limit: Int, quoted: Bool) {
    // Printable ASCII, the usual case, is appended unchanged.
    let isPlain = text.utf8.allSatisfy { byte in
      (0x20..<0x7F).contains(byte) && !(quoted && (byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")))
    }
    if isPlain, text.utf8.count <= limit {
      bytes += text.utf8
      return
    }
    var room = limit
    for scalar in text.unicodeScalars {
      let piece: String
      switch scalar {
      case "\n": piece = "\\n"
      case "\r": piece = "\\r"
      case "\t": piece = "\\t"
      case "\"" where quoted, "\\" where quoted: piece = "\\\(scalar)"
      case _ where LogLine.isInvisible(scalar): piece = "\\u{\(String(scalar.value, radix: 16))}"
      case _: piece = String(Character(scalar))
      }
      room -= piece.utf8.count
      guard room >= 0 else {
        bytes += "…".utf8
        return
      }
      bytes += piece.utf8
    }
  }

  private static func needsQuotes(_ scalar: Unicode.Scalar) -> Bool {
    (scalar.isASCII ? scalar == " " : scalar.properties.isWhitespace) || scalar == "\"" || scalar == "\\"
      || scalar == "=" || isInvisible(scalar)
  }

  /// Whether the scalar controls the terminal or the text direction, or is not displayed.
  private static func isInvisible(_ scalar: Unicode.Scalar) -> Bool {
    if scalar.isASCII { return scalar.value < 0x20 || scalar.value == 0x7F }
    switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned:
      return true
    case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .otherLetter, .nonspacingMark,
      .spacingMark, .enclosingMark, .decimalNumber, .letterNumber, .otherNumber, .connectorPunctuation,
      .dashPunctuation, .openPunctuation, .closePunctuation, .initialPunctuation, .finalPunctuation,
      .otherPunctuation, .mathSymbol, .currencySymbol, .modifierSymbol, .otherSymbol, .spaceSeparator:
      return false
    @unknown default:
      return true
    }
  }

  /// Truncates a line that is too long.
  private mutating func cut() {
    guard bytes.count > LogLine.limit else { return }
    let mark = "…"
    var end = LogLine.limit - mark.utf8.count
    // Back to the first byte of a character: following bytes are 10xxxxxx.
    while bytes[end] & 0xC0 == 0x80 { end -= 1 }
    bytes.removeSubrange(end...)
    bytes += mark.utf8
  }
}
