/// Cells of a spreadsheet (RFC 4180).
package enum CSV {
  /// A text of unknown origin: the spreadsheet calculates nothing, and nothing in it is invisible.
  package static func cell(_ text: String) -> String {
    let shown = (isFormula(text) ? "'" : "") + Excerpt.harmless(text)
    guard shown.utf8.contains(where: { $0 == UInt8(ascii: ",") || $0 == UInt8(ascii: "\"") }) else {
      return shown
    }
    return "\"" + shown.unicodeScalars.map { $0 == "\"" ? "\"\"" : String($0) }.joined() + "\""
  }

  private static func isFormula(_ text: String) -> Bool {
    guard let first = text.unicodeScalars.first, ["=", "+", "-", "@"].contains(first) else { return false }
    return Double(text) == nil
  }
}
