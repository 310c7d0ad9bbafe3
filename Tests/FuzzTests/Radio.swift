import GATT
import Radio

/// What a receiver prints, in pieces, each as long as its first byte says.
@Sendable func checkRadio(_ bytes: [UInt8]) {
  var input = Input(bytes)
  var (pieces, whole) = (RadioLines(), RadioLines())
  var (text, packets): ([UInt8], [RadioPacket]) = ([], [])
  while !input.isEmpty {
    let piece = input.bytes()
    text += piece
    packets += pieces.append(piece)
  }
  expect(packets == whole.append(text), "other packets than those of the whole text")
  expect(pieces.malformed == whole.malformed, "counted otherwise than in the whole text")
  for packet in packets {
    expect(
      (1...RadioLines.longest).contains(packet.message.count),
      "a message that is too long, or empty: \(packet)")
    expect(String(validating: packet.message, as: UTF8.self) != nil, "a message that is not UTF-8: \(packet)")
    expect(
      !packet.message.contains { $0 < 0x20 && $0 != 9 || $0 == 0x7F }, "control characters: \(packet)")
    if case .name(let name) = packet.sender {
      expect(MicrobitName(name.description) == name, "another name: \(name)")
    }
  }
}
