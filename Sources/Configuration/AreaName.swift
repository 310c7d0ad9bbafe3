/// The name of an area, as it is compared: lower case, and every run of anything but letters and digits is one `-`,
/// so that `Living room`, `living_room` and `living-room` are the same one. Topics can then do without spaces.
package struct AreaName: Hashable, Sendable, CustomStringConvertible {
  /// The name in the form that is compared: `living-room`.
  package let description: String

  /// Nil for a name without letters and digits.
  package init?(_ name: String) {
    var isInWord = false
    // By scalars, not characters: an accent that begins a word would be one character with the `-` before it.
    let words = name.lowercased().unicodeScalars.split { scalar in
      let properties = scalar.properties
      isInWord =
        properties.isAlphabetic || properties.numericType != nil || isInWord && properties.isGraphemeExtend
      return !isInWord
    }
    guard !words.isEmpty else { return nil }
    description = words.map { String($0) }.joined(separator: "-")
  }
}
