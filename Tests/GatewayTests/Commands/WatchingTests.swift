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

  // MARK: The table

  @Test func theTableFitsATerminal() {
    var view = WatchView()
    for (device, online) in [("kitchen", true), ("hall", false)] {
      _ = view.update(["device": .string(device), "name": "BBC micro:bit", "online": .bool(online)])
    }
    for (property, value): (String, JSONValue) in [
      ("temperature", .integer(21)),
      ("accelerometer", ["x": .integer(-1024), "y": .integer(512), "z": .integer(0)]),
      ("magnetometer_bearing", .integer(359)), ("button_a", "pressed"),
    ] {
      _ = view.update([
        "device": "kitchen", "property": .string(property), "value": value,
        "time": "2026-01-02T03:04:05.678Z",
      ])
    }
    let lines = view.lines(columns: 80)
    #expect(lines.allSatisfy { $0.count < 80 })
    // The time is shown, and so is each value.
    #expect(
      lines.first?.contains(#/^kitchen  online   \d\d:04:05  temperature 21$/#) == true,
      "\(lines)")
    #expect(
      lines.count == 4 && lines[2].hasSuffix("  magnetometer_bearing 359  button_a pressed"), "\(lines)")
    #expect(lines[3].hasPrefix("hall     offline  ") && lines[3].hasSuffix("BBC micro:bit"), "\(lines)")
    #expect(view.lines(mostRows: 2, columns: 80) == ["… and 2 more"])
    #expect(view.lines(mostRows: 4, columns: 80) == lines)
  }

  @Test func aDeviceThatComesBackAfterItsRemovalIsTheLast() {
    var view = WatchView()
    for (device, session) in [("a", "live"), ("b", "live"), ("a", "removed"), ("a", "live")] {
      _ = view.update(["device": .string(device), "session": .string(session), "online": .bool(true)])
    }
    #expect(view.lines().map { $0.prefix(1) } == ["b", "a"])
    for device in ["a", "b"] { _ = view.update(["device": .string(device), "session": "removed"]) }
    #expect(view.lines() == ["no device yet …"])
  }

  @Test(arguments: [
    ("012345", 12345), ("0", 0), ("999999", 999_999), ("+12345", nil), ("-12345", nil), ("1234567", nil),
    ("", nil), ("١٢٣", nil),
  ])
  func passkey(text: String, number: Int?) {
    #expect(GatewayCommand.passkey(text) == number)
  }
}
