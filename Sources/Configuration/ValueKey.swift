/// What a value that a program names itself is called in topics and JSON: one level of a topic, so that a name from the
/// air, from another gateway or from the disk becomes a topic only after it was checked here.
package struct ValueKey: Hashable, Comparable, Sendable, CustomStringConvertible {
  package let description: String

  /// The length of the longest key in characters.
  package static let longest = 32

  /// Reads a key: letters in lower case and digits, with single `_` between them; nil for anything else.
  package init?(_ text: some StringProtocol) {
    guard (1...Self.longest).contains(text.unicodeScalars.count),
      TopicWord.word(text, separator: "_").unicodeScalars.elementsEqual(text.unicodeScalars)
    else { return nil }
    description = String(text)
  }

  /// Makes the key of a name; nil if nothing is left of it, or too much.
  package init?(name: some StringProtocol) {
    description = TopicWord.word(name, separator: "_")
    guard (1...Self.longest).contains(description.unicodeScalars.count) else { return nil }
  }

  package static func < (a: ValueKey, b: ValueKey) -> Bool { a.description < b.description }
}
