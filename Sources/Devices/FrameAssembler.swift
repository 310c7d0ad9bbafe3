/// Joins the pieces that a peripheral sends into frames, for example lines of text over a UART.
struct FrameAssembler: Sendable {
  /// The maximum length; a longer frame is split.
  static let longest = 1024

  private let delimiter: [UInt8]
  private var buffer: [UInt8] = []

  init(delimiter: String) { self.delimiter = Array(delimiter.utf8) }

  /// Whether a frame has begun whose delimiter has not arrived.
  var isIncomplete: Bool { !buffer.isEmpty }

  /// - Returns: the frames that are complete now, without their delimiters; `\r\n` counts as `\n`.
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

  /// Ends the incomplete frame, and returns it.
  mutating func flush() -> [UInt8] {
    defer { buffer = [] }
    return buffer
  }
}
