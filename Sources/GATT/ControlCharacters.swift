extension Unicode.Scalar {
  /// Whether it is one of Unicode's category of control characters, of which a tab is one.
  package var isControl: Bool {
    switch value {
    case 0..<0x20, 0x7F..<0xA0: true
    case _: false
    }
  }
}

extension String {
  /// Whether the text has control characters other than tabs: they could control a terminal that shows it. Such a text from the
  /// air is no value.
  package var hasControlCharacters: Bool { unicodeScalars.contains { $0.isControl && $0 != "\t" } }
}
