/// Converts between the bytes of ``Codec/ScalarType/bits``, one for each row, and their text.
struct BitPicture: Sendable {
  let rows: Int
  let columns: Int

  /// `#` for on, `.` for off, `/` between the rows. Rows that are missing at the end are off.
  func text(_ bytes: ArraySlice<UInt8>) -> String {
    (bytes + Array(repeating: 0, count: rows - bytes.count)).map { row in
      String((0..<columns).map { row >> UInt8(columns - 1 - $0) & 1 == 1 ? "#" : "." })
    }.joined(separator: "/")
  }

  /// Rows are separated by `/`, spaces or line ends; `1` and `0` are accepted for on and off. Rows that are
  /// missing at the end are off. Nil for anything else.
  func bytes(_ text: String) -> [UInt8]? {
    let lines = text.split { $0 == "/" || $0.isWhitespace }
    guard (1...rows).contains(lines.count) else { return nil }
    var bytes: [UInt8] = []
    for line in lines {
      guard line.utf8.count == columns else { return nil }
      var row: UInt8 = 0
      for character in line {
        switch character {
        case "#", "1": row = row << 1 | 1
        case ".", "0": row <<= 1
        case _: return nil
        }
      }
      bytes.append(row)
    }
    return bytes + Array(repeating: 0, count: rows - bytes.count)
  }

  var example: String {
    Array(repeating: String(repeating: "#", count: columns), count: rows).joined(separator: "/")
  }
}
