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
        description: String(columns[0]), notifications: notifications(columns[0]), values: String(columns[1]))
    }
  }()

  private static func notifications(_ text: Substring) -> [[UInt8]] {
    var pieces: [[UInt8]] = [[]]
    var rest = text.utf8[...]
    while let byte = rest.first {
      if rest.starts(with: " | ".utf8) {
        pieces.append([])
        rest = rest.dropFirst(3)
      } else if byte == UInt8(ascii: "\\"), let kind = rest.dropFirst().first {
        rest = rest.dropFirst(2)
        switch kind {
        case UInt8(ascii: "r"): pieces[pieces.count - 1].append(13)
        case UInt8(ascii: "n"): pieces[pieces.count - 1].append(10)
        case _:
          pieces[pieces.count - 1].append(
            UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16) ?? 0)
          rest = rest.dropFirst(2)
        }
      } else {
        pieces[pieces.count - 1].append(byte)
        rest = rest.dropFirst()
      }
    }
    return pieces
  }
}
