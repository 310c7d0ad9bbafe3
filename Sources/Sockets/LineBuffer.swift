/// The bytes received, to be taken line by line.
package struct LineBuffer {
  private let longestLine: Int
  private var bytes: [UInt8] = []

  package init(longestLine: Int) { self.longestLine = longestLine }

  /// Whether the line that is incomplete is longer than allowed.
  package var isTooLong: Bool { bytes.count > longestLine }

  package mutating func append(_ received: some Sequence<UInt8>) { bytes += received }

  /// The next complete line, without its end.
  package mutating func next() -> [UInt8]? {
    guard let end = bytes.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
    defer { bytes.removeSubrange(...end) }
    return Array(bytes[..<end])
  }
}
