/// One line of the log as text, whatever its parts contain.
///
/// Names from the air and payloads from the broker end up in fields: no byte of theirs may begin a line of
/// its own, look like another field, or reach the terminal as a control sequence.
struct LogLine {
  let level: LogLevel
  /// `level component: message key=value …` in UTF-8, without prefix and end of line.
  private(set) var bytes: [UInt8] = []

  /// Where a line is cut, in bytes: what fits a pipe at once (PIPE_BUF) with room for the prefix, and what
  /// people still read.
  static let limit = 2048
  /// Where a single value is cut, so that one does not push the others out of the line.
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

  /// Appends `text` with everything escaped that is not to be seen as itself.
  private mutating func append(_ text: String, limit: Int, quoted: Bool) {
    // Most text shows nothing but itself, and need not be looked at letter by letter.
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

  /// Whether the scalar steers the terminal or the direction of the text, or shows nothing at all.
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

  /// Leaves the beginning of the line where it is too long.
  private mutating func cut() {
    guard bytes.count > LogLine.limit else { return }
    let mark = "…"
    var end = LogLine.limit - mark.utf8.count
    // Back to the first byte of a character: those after it are 10xxxxxx.
    while bytes[end] & 0xC0 == 0x80 { end -= 1 }
    bytes.removeSubrange(end...)
    bytes += mark.utf8
  }
}
