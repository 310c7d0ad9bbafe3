/// What a value that a program names itself is called in topics and JSON: one level of a topic, so that a name from the
/// air, from another gateway or from the disk becomes a topic only after it was checked here.
package struct ValueKey: Hashable, Comparable, Sendable, CustomStringConvertible {
  /// The key itself.
  package let description: String

  /// In characters.
  package static let longest = 32

  /// Nil for anything but a key: `[a-z0-9_]{1,32}`.
  package init?(_ text: some StringProtocol) {
    let isKey =
      (1...Self.longest).contains(text.utf8.count)
      && text.utf8.allSatisfy("abcdefghijklmnopqrstuvwxyz0123456789_".utf8.contains)
    guard isKey else { return nil }
    description = String(text)
  }

  package static func < (a: ValueKey, b: ValueKey) -> Bool { a.description < b.description }
}
