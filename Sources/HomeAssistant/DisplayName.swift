/// A name from an advertisement, which anybody can send: on one line, visible characters only, and not too long.
enum DisplayName {
  /// The longest name, in letters of the entity ids that Home Assistant makes of it: as long as a configured name may be. An
  /// entity id has 255 at most, and without room for its end the entities of a device would all have the same.
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
        length += (isGap ? 1 : 0) + letters(of: scalar)
        guard length <= longest else { break characters }
        if isGap { name.append(" ") }
        isGap = false
        name.append(scalar)
      @unknown default: continue
      }
    }
    return name.isEmpty ? nil : String(name)
  }

  /// How many Latin letters stand for it at most, or nearly: the longest syllables of Chinese have six, and a `_`.
  private static func letters(of scalar: Unicode.Scalar) -> Int {
    switch scalar.value {
    case ..<0x250: 1
    case ..<0x2E80: 3
    default: 7
    }
  }
}
