/// What a program sends by UART, and the values in it: a line of Tests/Field/lines.tsv.
public struct FieldLine: Sendable, CustomStringConvertible {
  /// As the file has it.
  public let description: String
  /// What the micro:bit notifies, 0.1 s apart.
  public let notifications: [[UInt8]]
  /// A JSON object by names in topics.
  public let values: String

  /// All of the file; none if it cannot be read.
  public static let all: [FieldLine] = {
    guard let file = try? shipped("Tests/Field/lines.tsv") else { return [] }
    return String(decoding: file, as: UTF8.self).split(separator: "\n").filter { !$0.hasPrefix("# ") }.map {
      let columns = $0.split(separator: "\t")
      return FieldLine(
        description: String(columns[0]),
        notifications: columns[0].split(separator: " | ", omittingEmptySubsequences: false).map(unescaped),
        values: String(columns[1]))
    }
  }()
}

/// The bytes of a text in which `\r`, `\n` and `\xNN` stand for bytes.
public func unescaped(_ text: Substring) -> [UInt8] {
  var bytes: [UInt8] = []
  var rest = text.utf8[...]
  while let byte = rest.popFirst() {
    guard byte == UInt8(ascii: "\\"), let kind = rest.popFirst() else {
      bytes.append(byte)
      continue
    }
    switch kind {
    case UInt8(ascii: "r"): bytes.append(13)
    case UInt8(ascii: "n"): bytes.append(10)
    case _:
      bytes.append(UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16) ?? 0)
      rest = rest.dropFirst(2)
    }
  }
  return bytes
}
