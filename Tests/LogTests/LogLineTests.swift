import Testing

@testable import Log

@Suite struct LogLineTests {
  func line(_ message: String, _ fields: LogFields = [:]) -> String {
    String(decoding: LogLine(level: .info, component: "mqtt", message: message, fields).bytes, as: UTF8.self)
  }

  @Test func hasLevelComponentMessageAndFields() {
    let text = line("connected", ["host": "localhost", "port": 1883, "tls": false])
    #expect(text == "info mqtt: connected host=localhost port=1883 tls=false")
    #expect(line("connected") == "info mqtt: connected")
  }

  @Test(arguments: [
    ("", #"x="""#),
    ("a b", #"x="a b""#),
    (#"say "hi""#, #"x="say \"hi\"""#),
    (#"a\b"#, #"x="a\\b""#),
    ("a=b", #"x="a=b""#),
    ("a\nerror mqtt: forged", #"x="a\nerror mqtt: forged""#),
    ("a\r\nb", #"x="a\r\nb""#),
    ("\u{1B}[2J", #"x="\u{1b}[2J""#),
    ("\u{9B}2J", #"x="\u{9b}2J""#),
    ("\0\u{7F}", #"x="\u{0}\u{7f}""#),
    ("\u{202E}gpj", #"x="\u{202e}gpj""#),
    ("\u{2028}", #"x="\u{2028}""#),
    ("\u{A0}", "x=\"\u{A0}\""),
    ("21°C", "x=21°C"),
    ("Küche", "x=Küche"),
  ])
  func valuesAreThemselvesOrQuotedAndEscaped(value: String, expected: String) {
    #expect(line("m", ["x": value]) == "info mqtt: m " + expected)
  }

  @Test func messagesCannotForgeLinesEither() {
    #expect(line("a\n<0>b\u{1B}c") == #"info mqtt: a\n<0>b\u{1b}c"#)
  }

  /// Every scalar that a terminal may act on, whatever surrounds it.
  @Test func noControlSequencePasses() throws {
    for code in UInt32(0)...0x2100 {
      guard let scalar = Unicode.Scalar(code) else { continue }
      let text = line(String(Character(scalar)), ["x": "a\(scalar)b"])
      #expect(!text.unicodeScalars.contains { $0.properties.generalCategory == .control })
      #expect(!text.unicodeScalars.contains { $0.properties.generalCategory == .format })
    }
  }

  @Test func aLongValueLeavesRoomForTheOthers() {
    let text = line("m", ["name": String(repeating: "ä", count: 10_000), "rssi": -61])
    #expect(text.hasSuffix("ä… rssi=-61"))
    #expect(text.utf8.count < 600)
  }

  @Test(arguments: 0..<8)
  func aLineIsCutBetweenCharacters(offset: Int) {
    let message = String(repeating: "x", count: offset) + String(repeating: "🌡", count: 2000)
    let text = line(
      message, ["a": String(repeating: "🌡", count: 500), "b": String(repeating: "€", count: 900)])
    #expect(text.utf8.count <= LogLine.limit)
    #expect(text.utf8.count > LogLine.limit - 16)
    #expect(text.hasSuffix("…"))
    #expect(!text.unicodeScalars.contains("\u{FFFD}"))
  }
}

@Suite struct LogLevelTests {
  @Test func areNamedAndOrdered() {
    #expect(LogLevel.allCases.map(\.name) == ["debug", "info", "notice", "warning", "error"])
    for level in LogLevel.allCases { #expect(LogLevel(name: level.name) == level) }
    for wrong in ["", "INFO", "warn", "trace", "2"] { #expect(LogLevel(name: wrong) == nil) }
    #expect(LogLevel.debug < .error)
    #expect(LogLevel.allCases.map(\.journalPriority) == [7, 6, 5, 4, 3])
  }
}
