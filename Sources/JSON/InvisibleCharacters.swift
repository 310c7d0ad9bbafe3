extension StringProtocol {
  /// Whether at most 30 combining characters follow each other, the limit of Unicode's stream-safe text (UAX #15, section 13). To
  /// compare or hash another text takes a time that grows with the square of their number.
  package var isStreamSafe: Bool { streamSafe.utf8.count == utf8.count }

  /// The text with a U+034F, which is not displayed, behind each 30 combining characters that another one follows.
  package var streamSafe: String {
    // U+0300 is the first combining character.
    guard utf8.contains(where: { $0 >= 0xCC }) else { return String(self) }
    var (safe, run) = (String.UnicodeScalarView(), 0)
    for scalar in unicodeScalars {
      run = scalar.properties.canonicalCombiningClass == .notReordered ? 0 : run + 1
      if run > 30 {
        safe.append("\u{34F}")
        run = 1
      }
      safe.append(scalar)
    }
    return String(safe)
  }
}

extension Unicode.Scalar {
  /// Whether the scalar controls the terminal or the text direction, or is not displayed. Text of unknown origin is
  /// shown, logged and written as JSON without such scalars.
  package var isInvisible: Bool {
    if isASCII { return value < 0x20 || value == 0x7F }
    switch properties.generalCategory {
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

  /// Whether nothing of the scalar is seen: a space, or an invisible one. A text of blanks alone looks empty.
  package var isBlank: Bool {
    // U+2800, a cell of Braille without dots, is a symbol for Unicode.
    isInvisible || properties.isWhitespace || properties.isDefaultIgnorableCodePoint || value == 0x2800
  }

  /// The scalar within a JSON string: escaped where JSON requires it, and if it is invisible.
  package var inJSON: String {
    switch self {
    case "\"": return "\\\""
    case "\\": return "\\\\"
    case "\n": return "\\n"
    case "\r": return "\\r"
    case "\t": return "\\t"
    case _ where !isInvisible: return String(Character(self))
    case _:
      return String(Character(self)).utf16.map { unit in
        let digits = String(unit, radix: 16)
        return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      }.joined()
    }
  }
}
