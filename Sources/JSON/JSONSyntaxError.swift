/// Where and why a text is not a JSON document.
package struct JSONSyntaxError: Error, Sendable, Equatable, CustomStringConvertible {
  /// Where the error was noticed.
  package let position: TextPosition
  /// What is wrong there, for a sentence: "expected a value, found the end".
  package let problem: String
  /// What to do about it, for the person who edits the text; nil where that is not known.
  package let hint: String?

  /// Without the hint: for the sender of a message.
  package var description: String { "line \(position.line), column \(position.column): \(problem)" }

  /// - Parameter offset: that of the byte where the error is, or one beyond the last.
  init(_ problem: String, at offset: Int, in bytes: [UInt8]) {
    let before = bytes[..<min(offset, bytes.count)]
    var position = TextPosition()
    position.advance(over: before)
    self.position = position
    self.problem = problem
    hint = Self.hint(before: before, rest: bytes[before.endIndex...])
  }

  /// Names what other kinds of JSON allow, and RFC 8259 does not.
  private static func hint(before: ArraySlice<UInt8>, rest: ArraySlice<UInt8>) -> String? {
    if ["//", "/*", "#"].contains(where: { rest.starts(with: $0.utf8) }) {
      return "JSON has no comments: remove it"
    }
    let isEnd = rest.first == UInt8(ascii: "}") || rest.first == UInt8(ascii: "]")
    let isAfterComma = before.last { !$0.isWhiteSpace } == UInt8(ascii: ",")
    return isEnd && isAfterComma ? "trailing comma: remove the comma before it" : nil
  }
}
