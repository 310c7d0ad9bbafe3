/// Cells of a spreadsheet (RFC 4180).
package enum CSV {
  /// A text of unknown origin: the spreadsheet calculates nothing, and nothing in it is invisible.
  package static func cell(_ text: String) -> String {
    // Where a comma separates decimals, spreadsheets take semicolons for the ends of cells.
    let parts = text.split(separator: ";", omittingEmptySubsequences: false)
    let isSafe = !parts.contains(where: isFormula)
    let shown = Excerpt.harmless(
      isSafe ? text : parts.map { isFormula($0) ? "'\($0)" : "\($0)" }.joined(separator: ";"))
    guard shown.utf8.contains(where: { $0 == UInt8(ascii: ",") || $0 == UInt8(ascii: "\"") }) else {
      return shown
    }
    return "\"" + shown.unicodeScalars.map { $0 == "\"" ? "\"\"" : String($0) }.joined() + "\""
  }

  /// The last four are what Chinese and Japanese spreadsheets take for the first.
  private static let beginnings: Set<Unicode.Scalar> = ["=", "+", "-", "@", "＝", "＋", "－", "＠"]

  private static func isFormula(_ text: Substring) -> Bool {
    // A quotation mark is not part of a cell.
    let content = text.drop { $0 == " " || $0 == "\"" }
    guard let first = content.unicodeScalars.first, beginnings.contains(first) else { return false }
    return Double(content) == nil
  }
}
