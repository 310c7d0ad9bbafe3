/// The name of an area, as it is compared: lower case, and every run of anything but letters and digits is one `-`,
/// so that `Living room`, `living_room` and `living-room` are the same one. Topics can then do without spaces.
package struct AreaName: Hashable, Sendable, CustomStringConvertible {
  /// The name in the form that is compared: `living-room`.
  package let description: String

  /// Nil for a name without letters and digits.
  package init?(_ name: String) {
    let words = name.lowercased().split { !$0.isLetter && !$0.isNumber }
    guard !words.isEmpty else { return nil }
    description = words.joined(separator: "-")
  }
}
