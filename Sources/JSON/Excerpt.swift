/// An untrusted text to be quoted in a message: in quotes, truncated, with a mark for each invisible character.
package struct Excerpt: CustomStringConvertible {
  /// The most characters that are shown.
  static let longest = 40

  package let description: String

  /// The beginning of a text.
  package init(_ text: String) {
    var shown = "\""
    for scalar in text.unicodeScalars.prefix(Self.longest) {
      shown += scalar.isInvisible ? "·" : String(Character(scalar))
    }
    description = shown + (text.unicodeScalars.count > Self.longest ? "…\"" : "\"")
  }

  /// The beginning of a text in UTF-8; invalid bytes are replaced by U+FFFD.
  package init(_ bytes: some Collection<UInt8>) {
    // A character has at most four bytes; one more character shows that the text is truncated.
    self.init(String(decoding: bytes.prefix((Self.longest + 1) * 4), as: UTF8.self))
  }

  /// The beginning of a payload, not escaped: for a field of the log.
  package static func beginning(of payload: [UInt8]) -> String {
    let shown = String(decoding: payload.prefix(mostBytes), as: UTF8.self)
    return payload.count > mostBytes ? shown + "…" : shown
  }
  private static let mostBytes = 100

  /// The whole text, with a mark for each invisible character but `kept`.
  package static func harmless(_ text: String, keeping kept: Unicode.Scalar? = nil) -> String {
    String(String.UnicodeScalarView(text.unicodeScalars.map { $0.isInvisible && $0 != kept ? "·" : $0 }))
  }
}
