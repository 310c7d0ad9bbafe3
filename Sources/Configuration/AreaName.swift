/// The name of an area, as it is compared: `Living room`, `living_room` and `living-room` are the same one. Topics can
/// then do without spaces.
package struct AreaName: Hashable, Sendable, CustomStringConvertible {
  /// The name in the form that is compared: `living-room`.
  package let description: String

  /// Reads a name; nil if it has no letters and digits.
  package init?(_ name: String) {
    description = TopicWord.word(name)
    if description.isEmpty { return nil }
  }
}
