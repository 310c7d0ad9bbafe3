/// A text from outside as it may stand in a sentence: in quotes, cut, without control characters.
struct Excerpt: CustomStringConvertible {
  /// In characters.
  static let longest = 40

  let description: String

  init(_ text: String) {
    var shown = "\""
    for scalar in text.unicodeScalars.prefix(Self.longest) {
      shown +=
        scalar.isASCII && (scalar.value < 0x20 || scalar.value == 0x7F) ? "·" : String(Character(scalar))
    }
    description = shown + (text.unicodeScalars.count > Self.longest ? "…\"" : "\"")
  }

  init(_ bytes: some Collection<UInt8>) {
    // Four bytes for a character at most, and one character more, so that the cut shows.
    self.init(String(decoding: bytes.prefix((Self.longest + 1) * 4), as: UTF8.self))
  }
}
