/// A name from an advertisement, which anybody can send: on one line, visible characters only, and not too long.
enum DisplayName {
  /// The most Unicode scalars: as long as a configured name may be.
  static let longest = 128

  /// Cleans a name; nil when no visible character is left.
  static func clean(_ text: String) -> String? {
    var name = String.UnicodeScalarView()
    var length = 0
    var isGap = false
    characters: for scalar in text.unicodeScalars {
      switch scalar.properties.generalCategory {
      // Terminal control, direction of the text, or no glyph.
      case .control, .format, .surrogate, .privateUse, .unassigned: continue
      case .spaceSeparator, .lineSeparator, .paragraphSeparator: isGap = true
      case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .otherLetter,
        .nonspacingMark, .spacingMark, .enclosingMark, .decimalNumber, .letterNumber, .otherNumber,
        .connectorPunctuation, .dashPunctuation, .openPunctuation, .closePunctuation, .initialPunctuation,
        .finalPunctuation, .otherPunctuation, .mathSymbol, .currencySymbol, .modifierSymbol, .otherSymbol:
        isGap = isGap && length > 0
        length += isGap ? 2 : 1
        guard length <= longest else { break characters }
        if isGap { name.append(" ") }
        isGap = false
        name.append(scalar)
      @unknown default: continue
      }
    }
    return name.isEmpty ? nil : String(name)
  }
}
