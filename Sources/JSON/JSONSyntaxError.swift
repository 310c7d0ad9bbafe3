/// A syntax error in a JSON text.
package struct JSONSyntaxError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The position of the error.
  package let position: TextPosition
  /// The error: "expected a value, found the end".
  package let problem: String
  /// How to correct the problem, if known, for the author of the text.
  package let hint: String?

  /// The error without the hint, for the sender of a message.
  package var description: String { "line \(position.line), column \(position.column): \(problem)" }

  /// - Parameter offset: of the byte at which the error was detected; at the end, the number of bytes.
  init(_ problem: String, at offset: Int, in bytes: [UInt8]) {
    let before = bytes[..<min(offset, bytes.count)]
    var position = TextPosition()
    position.advance(over: before)
    self.position = position
    self.problem = problem
    hint = Self.hint(before: before, rest: bytes[before.endIndex...])
  }

  /// JSON's words as other languages write them.
  private static let words = [
    "True": "true", "TRUE": "true", "False": "false", "FALSE": "false", "None": "null", "NULL": "null",
  ]

  /// Hints for extensions of JSON that RFC 8259 does not allow.
  private static func hint(before: ArraySlice<UInt8>, rest: ArraySlice<UInt8>) -> String? {
    if ["//", "/*", "#"].contains(where: { rest.starts(with: $0.utf8) }) {
      return "JSON has no comments: remove it"
    }
    if ["“", "”", "„", "‘", "’", "«", "»", "'"].contains(where: { rest.starts(with: $0.utf8) }) {
      return #"write straight double quotes: ""#
    }
    if let word = words.first(where: { rest.starts(with: $0.key.utf8) }) { return "write \(word.value)" }
    if before.last == UInt8(ascii: "0"), rest.first == UInt8(ascii: "x") {
      return "write a hexadecimal number in quotes"
    }
    if before.last == UInt8(ascii: ","), before.dropLast().last?.isDigit == true, rest.first?.isDigit == true
    {
      return "a number has a decimal point: 2.5"
    }
    let isEnd = rest.first == UInt8(ascii: "}") || rest.first == UInt8(ascii: "]")
    let isAfterComma = before.last { !$0.isWhiteSpace } == UInt8(ascii: ",")
    return isEnd && isAfterComma ? "trailing comma: remove the comma before it" : nil
  }
}
