import GATT
import TestSupport
import Testing

@testable import Radio

@Suite struct RadioLinesTests {
  @Test func whatAGatewayHasSentIsKnown() throws {
    for line in ["vopez>servo:90", #"{"t":1,"s":7,"n":"vopez>servo:90"}"#] {
      #expect(try #require(RadioPacket(Array(line.utf8))).isCommand)
    }
    for line in ["vopez,servo,90", "abcde>servo:90", "vopez>", "a>b"] {
      #expect(RadioPacket(Array(line.utf8))?.isCommand != true, "\(line)")
    }
  }

  @Test(
    arguments: [
      (#"{"t":1,"s":7,"n":"player 2","v":25}"#, "player 2"), (#"{"s":7,"n":"1","v":20}"#, "1"),
      (#"{"t":1,"s":0,"n":"vopez 2","v":20}"#, "2"), (#"{"t":1,"s":0,"n":"vopez","v":20}"#, nil),
      (#"{"t":1,"s":7,"n":"hello"}"#, nil), (#"{"t":1,"s":7,"v":1}"#, nil), ("vopez,player 2,25", "player 2"),
      ("vopez energy 21", "energy"), ("vopez,7,42", nil), ("vopez, 7 , 42", nil), ("vopez,player 2:25", nil),
      ("1:20", nil),
    ] as [(String, String?)])
  func nameIsApartFromItsValue(line: String, name: String?) throws {
    let packet = try #require(RadioPacket(Array(line.utf8)))
    #expect(packet.valueName.map { String(decoding: $0, as: UTF8.self) } == name)
  }

  /// What a receiver prints after its first line end, with what is read of it: `sender time message`.
  private static let lines: [(String, [String])] = [
    // `writeReceivedPacketToSerial`: a value, a text, a number, without a serial number, with quotes in the text.
    (#"{"t":325,"s":-1142702066,"n":"temp","v":27}"#, ["bbe3c00e 325 temp:27"]),
    (#"{"t":325,"s":7,"n":"hello"}"#, ["00000007 325 hello"]),
    (#"{"t":325,"s":7,"v":-1.5}"#, ["00000007 325 -1.5"]),
    (#"{"t":1,"s":0,"n":"temp","v":27}"#, ["- 1 temp:27"]),
    (#"{"t":1,"s":0,"n":"vopez temp 21.5"}"#, ["vopez 1 temp:21.5"]),
    (#"{"t":1,"s":7,"n":"say "hi"","v":NaN}"#, [#"00000007 1 say "hi":NaN"#]),
    (#"{"t":1,"s":7,"n":"a","v":1","v":2}"#, [#"00000007 1 a","v":1:2"#]),
    (#"{"t":1,"s":7,"n":"a\","v":2}"#, [#"00000007 1 a\:2"#]),
    // Its own name in the text is not repeated; another one is.
    (#"{"t":1,"s":7,"n":"zzzzz"}"#, ["00000007 1 zzzzz"]),
    (#"{"t":1,"s":7,"n":"zuzog,temp,4"}"#, ["00000007 1 temp:4"]),
    (#"{"t":1,"s":7,"n":"zuzuz","v":4}"#, ["00000007 1 zuzuz:4"]),
    // In another order.
    (#"{"s":412,"v":3.3}"#, [#"- - {"s":412,"v":3.3}"#]),
    (#"{ "s": 7, "n": "temp", "v": 4 }"#, ["00000007 - temp:4"]),
    (#"{"temp":21}"#, [#"- - {"temp":21}"#]),
    (#"{"t":21.5,"h":40}"#, [#"- - {"t":21.5,"h":40}"#]),
    // With join.
    ("vopez,temp,21", ["vopez - temp:21"]),
    ("vopez,door,open", ["vopez - door:open"]),
    ("vopez, temp , 21 ", ["vopez - temp:21"]),
    ("vopez temp 21", ["vopez - temp:21"]),
    ("vopez:21", ["vopez - 21"]),
    ("vopez=21", ["vopez - 21"]),
    ("vopez=temp:21", ["vopez - temp:21"]),
    ("vopez|temp|21", ["vopez - temp:21"]),
    ("vopez:led:1", ["vopez - led:1"]),
    ("vopez,temp:21", ["vopez - temp:21"]),
    ("vopez,1,2,3", ["vopez - 1,2,3"]),
    ("vopez hello class", ["vopez - hello class"]),
    ("vopez", ["- - vopez"]),
    // Without a sender, padded as MakeCode does.
    ("temp:21                       ", ["- - temp:21"]),
    ("\0temp:21\0", ["- - temp:21"]),
    ("Grüße", ["- - Grüße"]),
    ("Traceback (most recent call last):", ["- - Traceback (most recent call last):"]),
    ("   ", []),
  ]

  private static func text(_ packet: RadioPacket) -> String {
    let sender = packet.sender.map { "\($0)" } ?? "-"
    return "\(sender) \(packet.time.map { "\($0)" } ?? "-") "
      + String(decoding: packet.message, as: UTF8.self)
  }

  @Test(arguments: lines) func read(_ line: String, _ expected: [String]) {
    var lines = RadioLines()
    let packets = lines.append("old half\n\(line)\r\n".utf8)
    #expect(packets.map(Self.text) == expected)
    #expect(lines.malformed == 0)
  }

  @Test(arguments: [1, 2, 3, 5, 7, 63, 64]) func pieces(of size: Int) {
    let text = Array((["half"] + Self.lines.map(\.0)).joined(separator: "\r\n").utf8) + [10]
    var lines = RadioLines()
    var packets: [RadioPacket] = []
    for start in stride(from: 0, to: text.count, by: size) {
      packets += lines.append(text[start..<min(text.count, start + size)])
    }
    #expect(packets.map(Self.text) == Self.lines.flatMap(\.1))
  }

  @Test(arguments: [
    #"{"t":1,"s":7,"b":"abc"}"#, #"{"t":1,"s":7,"n":"temp","v":2"#, #"{"t":99999999999,"s":7,"v":1}"#,
    #"{"t":1,"s":7,"v":}"#, #"{"t":1,"s":7,"n":""}"#, "vopez,,", "vopez, , ",
    "temp:\u{7}1", String(repeating: "x", count: 257),
  ]) func malformed(_ line: String) {
    var lines = RadioLines()
    let packets = lines.append("\n\(line)\ntemp:21\n".utf8)
    #expect(packets.map(Self.text) == ["- - temp:21"])
    #expect(lines.malformed == 1)
  }

  /// Anything, in any pieces: the same as in one piece, and nothing that is too long or no text.
  @Test func anything() {
    let parts =
      Self.lines.map { Array($0.0.utf8) }
      + ["\n", "\r\n", "\0", "<DAPLink:Overflow>\n", "{", "\"", ",", ":", " "].map { Array($0.utf8) }
      + [[0xFF], [0xC3], [7], Array(repeating: 0x78, count: 300)]
    for seed in 0..<300 as Range<UInt64> {
      var random = SplitMix64(state: seed)
      var (pieces, whole) = (RadioLines(), RadioLines())
      var (text, packets): ([UInt8], [RadioPacket]) = ([], [])
      for _ in 0..<60 {
        let part = parts.randomElement(using: &random) ?? []
        let piece = part.prefix(Int.random(in: 1...part.count, using: &random))
        text += piece
        packets += pieces.append(piece)
      }
      #expect(packets == whole.append(text), "\(seed)")
      #expect(pieces.malformed == whole.malformed, "\(seed)")
      for packet in packets {
        #expect((1...RadioLines.longest).contains(packet.message.count), "\(seed)")
        #expect(String(validating: packet.message, as: UTF8.self) != nil, "\(seed)")
        #expect(!String(decoding: packet.message, as: UTF8.self).hasControlCharacters, "\(seed)")
      }
    }
  }

  @Test func notUTF8() {
    var lines = RadioLines()
    #expect(lines.append([10, 0x66, 0xFC, 0x72, 10]).isEmpty)
    #expect(lines.malformed == 1)
  }

  /// Bytes were lost at the mark: neither what stands before it nor what stands behind it is a whole line.
  @Test(arguments: [
    "te<DAPLink:Overflow>\nmp:21\r\nhum:4\r\n", "<DAPLink:Overflow>\nmp:21\r\nhum:4\r\n",
    String(repeating: "x", count: 300) + "<DAPLink:Overflow>\nmp:21\r\nhum:4\r\n",
  ]) func overflow(_ text: String) {
    var lines = RadioLines()
    let packets = lines.append("\n\(text)".utf8)
    #expect(packets.map(Self.text) == ["- - hum:4"])
    #expect(lines.malformed == (text.utf8.count > 256 ? 2 : 1))
  }

  @Test func opening() {
    var lines = RadioLines()
    #expect(lines.append("p:21\n".utf8).isEmpty)
    // After a silence a line that is complete is followed by a whole one.
    lines.resumed()
    #expect(lines.append("temp:22\nte".utf8).map(Self.text) == ["- - temp:22"])
    lines.resumed()
    #expect(lines.append("mp:23\ntemp:24\n".utf8).map(Self.text) == ["- - temp:24"])
    lines.opened()
    #expect(lines.append("temp:25\n".utf8).isEmpty)
    #expect(lines.malformed == 0)
  }
}
