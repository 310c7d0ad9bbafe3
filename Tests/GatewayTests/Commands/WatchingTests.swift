import JSON
import Testing

@testable import Gateway

/// What `watch` prints of the gateway's lines.
@Suite struct WatchingTests {
  private static func line(_ value: JSONValue, unit: JSONValue? = nil) -> JSONValue {
    [
      "device": "kitchen", "property": "uart_rx", "value": value, "unit": unit,
      "time": "2026-01-02T03:04:05.678Z",
    ]
  }

  @Test(arguments: [
    ("plain", "plain"), ("a,b", #""a,b""#), (#"say "a""#, #""say ""a""""#),
    ("\"\u{301},=1", "\"\"\"\u{301},=1\""),
    // Neither controls the terminal nor begins a new line.
    ("\u{1B}]0;x\u{7}\u{9B}2J\r\n", "·]0;x··2J··"), ("\u{202E}gpj", "·gpj"),
    // A spreadsheet would calculate it.
    ("=1+1", "'=1+1"), ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"), ("@SUM(1,2)", #""'@SUM(1,2)""#),
    ("-a", "'-a"), ("=\u{301}1", "'=\u{301}1"), ("-", "'-"),
    // Numbers, also as text.
    ("-5", "-5"), ("+5.5", "+5.5"), ("-1e3", "-1e3"),
  ])
  func textInASpreadsheet(text: String, cell: String) {
    #expect(Watching.csv(Self.line(.string(text))) == "2026-01-02T03:04:05.678Z,kitchen,uart_rx,\(cell),")
  }

  @Test func numbersAndRecordsInASpreadsheet() {
    #expect(Watching.csv(Self.line(.integer(-5), unit: "°C"))?.hasSuffix(",uart_rx,-5,°C") == true)
    #expect(Watching.csv(Self.line(["x": .integer(1)]))?.hasSuffix(#","{""x"":1}","#) == true)
    #expect(Watching.csv(["device": "kitchen", "online": .bool(true)]) == nil)
  }
}
