/// Makes packets of the bytes that a receiver prints, in whatever pieces they arrive.
///
/// The first line after opening the port may be half an old one, and is left out. Where DAPLink has dropped bytes, also in the
/// middle of a line, it writes its mark and the end of a line: what stands before the mark, and the line after it, is left out.
package struct RadioLines: Sendable {
  /// The maximum length of a line, in bytes: MakeCode's have at most 100, padded 128.
  package static let longest = 256
  private static let overflow = Array("<DAPLink:Overflow>".utf8)

  /// How many lines could not be read, or were cut.
  package private(set) var malformed: UInt64 = 0
  /// The line so far; of one that is left out, its end.
  private var line: [UInt8] = []
  /// Whether the line is left out.
  private var isSkipping = true

  package init() {}

  package mutating func opened() { (line, isSkipping) = ([], true) }

  /// The port was opened again as nothing had come for a while: a line that was incomplete has no end.
  package mutating func resumed() {
    if !line.isEmpty { opened() }
  }

  /// - Returns: the packets whose lines are complete now.
  package mutating func append(_ bytes: some Sequence<UInt8>) -> [RadioPacket] {
    var packets: [RadioPacket] = []
    for byte in bytes {
      guard byte == UInt8(ascii: "\n") else {
        line.append(byte)
        if line.count > Self.longest { shorten() }
        continue
      }
      if let packet = endLine() { packets.append(packet) }
    }
    return packets
  }

  private mutating func shorten() {
    if !isSkipping { malformed += 1 }
    isSkipping = true
    line.removeFirst(line.count - Self.overflow.count)
  }

  private mutating func endLine() -> RadioPacket? {
    defer { line.removeAll(keepingCapacity: true) }
    guard !line.reversed().starts(with: Self.overflow.reversed()) else {
      malformed += 1
      isSkipping = true
      return nil
    }
    guard !isSkipping else {
      isSkipping = false
      return nil
    }
    if let packet = RadioPacket(line) { return packet }
    if line.contains(where: { $0 > 0x20 }) { malformed += 1 }
    return nil
  }
}
