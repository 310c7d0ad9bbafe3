/// Makes frames of what a peripheral sends in pieces: lines of text over a UART.
struct FrameAssembler: Sendable {
  /// A frame that grows longer ends here.
  static let longest = 1024

  private let delimiter: [UInt8]
  private var buffer: [UInt8] = []

  init(delimiter: String) { self.delimiter = Array(delimiter.utf8) }

  /// Whether the beginning of a frame is here, whose end has not come.
  var isIncomplete: Bool { !buffer.isEmpty }

  /// - Returns: the frames that are complete now, without their delimiters, nor a carriage return before a line feed.
  mutating func append(_ bytes: [UInt8]) -> [[UInt8]] {
    var frames: [[UInt8]] = []
    for byte in bytes {
      buffer.append(byte)
      if buffer.count >= delimiter.count, buffer.suffix(delimiter.count).elementsEqual(delimiter) {
        buffer.removeLast(delimiter.count)
        if delimiter.first == UInt8(ascii: "\n"), buffer.last == UInt8(ascii: "\r") { buffer.removeLast() }
        frames.append(flush())
      } else if buffer.count == Self.longest {
        frames.append(flush())
      }
    }
    return frames
  }

  /// What has come of a frame whose end is not awaited any longer.
  mutating func flush() -> [UInt8] {
    defer { buffer = [] }
    return buffer
  }
}
