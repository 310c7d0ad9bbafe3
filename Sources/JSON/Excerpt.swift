/// A text from outside as it may stand in a sentence: in quotes, cut, without what steers a terminal or the
/// direction of the text.
package struct Excerpt: CustomStringConvertible {
  /// In characters.
  static let longest = 40

  package let description: String

  /// The beginning of a text.
  package init(_ text: String) {
    var shown = "\""
    for scalar in text.unicodeScalars.prefix(Self.longest) {
      shown += Self.isSteering(scalar) ? "·" : String(Character(scalar))
    }
    description = shown + (text.unicodeScalars.count > Self.longest ? "…\"" : "\"")
  }

  /// The beginning of a text in UTF-8; what is not UTF-8 becomes U+FFFD.
  package init(_ bytes: some Collection<UInt8>) {
    // Four bytes for a character at most, and one character more, so that the cut shows.
    self.init(String(decoding: bytes.prefix((Self.longest + 1) * 4), as: UTF8.self))
  }

  /// The beginning of a payload, for a field of the log, which escapes it itself.
  package static func beginning(of payload: [UInt8]) -> String {
    let shown = String(decoding: payload.prefix(mostBytes), as: UTF8.self)
    return payload.count > mostBytes ? shown + "…" : shown
  }
  private static let mostBytes = 100

  /// The whole text, without what steers a terminal.
  package static func harmless(_ text: String) -> String {
    String(String.UnicodeScalarView(text.unicodeScalars.map { isSteering($0) ? "·" : $0 }))
  }

  private static func isSteering(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0..<0x20, 0x7F..<0xA0: true
    case ..<0xA0: false
    case _:
      [.format, .lineSeparator, .paragraphSeparator].contains(scalar.properties.generalCategory)
    }
  }
}
