extension String {
  /// Whether the text has control characters other than tabs: they could control a terminal that shows it. Such a text from the
  /// air is no value.
  package var hasControlCharacters: Bool {
    unicodeScalars.contains { scalar in
      switch scalar.value {
      case 0x09: false
      case 0..<0x20, 0x7F..<0xA0: true
      case _: false
      }
    }
  }
}
