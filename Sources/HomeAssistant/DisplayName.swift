import JSON

/// A name from an advertisement, which anybody can send: on one line, visible characters only, and not too long.
enum DisplayName {
  /// The most Unicode scalars: as long as a configured name may be.
  static let longest = 128

  /// Cleans a text; nil when no visible character is left.
  static func clean(_ text: String) -> String? { clean(text) { _ in 1 } }

  /// Cleans the name of a device. Home Assistant makes entity ids of it, of 255 letters at most: without room for their ends, the
  /// entities would all have the same.
  static func ofDevice(_ name: String) -> String? { clean(name, letters(of:)) }

  /// - Parameter length: of a scalar, as it counts for ``longest``.
  private static func clean(_ text: String, _ length: (Unicode.Scalar) -> Int) -> String? {
    var name = String.UnicodeScalarView()
    var total = 0
    var isGap = false
    characters: for scalar in text.unicodeScalars {
      switch scalar.properties.generalCategory {
      case .spaceSeparator, .lineSeparator, .paragraphSeparator: isGap = true
      case _ where scalar.isInvisible: continue
      default:
        isGap = isGap && total > 0
        total += (isGap ? 1 : 0) + length(scalar)
        guard total <= longest else { break characters }
        if isGap { name.append(" ") }
        isGap = false
        name.append(scalar)
      }
    }
    return name.isEmpty ? nil : String(name)
  }

  /// About how many letters Home Assistant writes for it: those of Chinese have up to six, and a `_`.
  private static func letters(of scalar: Unicode.Scalar) -> Int {
    switch scalar.value {
    case ..<0x250: 1
    case ..<0x2E80, 0x3040...0x30FF: 3
    default: 7
    }
  }
}
