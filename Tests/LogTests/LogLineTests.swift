import Glibc
import TestSupport
import Testing

@testable import Log

@Suite struct LogLineTests {
  func line(_ message: String, _ fields: LogFields = [:]) -> String {
    let line = LogLine(level: .info, component: "mqtt", message: message, fields: fields)
    return String(decoding: line.text(), as: UTF8.self)
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
  func valuesAreQuotedAndEscapedIfNecessary(value: String, expected: String) {
    #expect(line("m", ["x": value]) == "info mqtt: m " + expected)
  }

  @Test func messagesCannotForgeLines() {
    #expect(line("a\n<0>b\u{1B}c") == #"info mqtt: a\n<0>b\u{1b}c"#)
  }

  /// All scalars that a terminal may interpret.
  @Test func controlAndFormatCharactersAreEscaped() throws {
    for code in UInt32(0)...0x2100 {
      guard let scalar = Unicode.Scalar(code) else { continue }
      let text = line(String(Character(scalar)), ["x": "a\(scalar)b"])
      #expect(!text.unicodeScalars.contains { $0.properties.generalCategory == .control })
      #expect(!text.unicodeScalars.contains { $0.properties.generalCategory == .format })
    }
  }

  @Test func longValueIsCutSoThatOthersFit() {
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

@Suite struct LogJSONTests {
  func json(_ message: String, _ fields: LogFields = [:]) -> String {
    let line = LogLine(level: .info, component: "mqtt", message: message, fields: fields)
    return String(decoding: line.json(time: "T"), as: UTF8.self)
  }

  private static let begin = #"{"time":"T","level":"info","component":"mqtt","message":"#

  @Test func fieldsAreMembers() {
    let fields: LogFields = [
      "device": "kitchen", "port": 1883, "rssi": Int16(-61), "tls": false, "ratio": "1",
    ]
    #expect(
      json("connected", fields)
        == Self.begin + #""connected","device":"kitchen","port":1883,"rssi":-61,"tls":false,"ratio":"1"}"#)
  }

  @Test(arguments: [
    (#"say "hi""#, #"say \"hi\""#),
    (#"a\b"#, #"a\\b"#),
    ("a\nb", #"a\nb"#),
    ("\u{1B}[2J", #"\u001b[2J"#),
    ("\u{202E}gpj", #"\u202egpj"#),
    ("\u{E0001}", #"\udb40\udc01"#),
    ("Küche 21 °C", "Küche 21 °C"),
  ])
  func textIsEscaped(text: String, expected: String) {
    #expect(json(text, ["x": text]) == Self.begin + #""\#(expected)","x":"\#(expected)"}"#)
  }

  @Test func aLongLineIsACompleteObject() {
    let long = String(repeating: "🌡\n", count: 2000)
    let text = json(long, ["device": "kitchen", "a": long, "b": long, "c": long, "d": 1])
    #expect(text.utf8.count <= LogLine.limit)
    #expect(text.contains(#"…","device":"kitchen","a":"🌡\n"#))
    #expect(text.hasSuffix(#"…","d":1}"#))
  }
}

@Suite struct JournalTests {
  /// A journal's socket that the test reads.
  private final class Journal {
    let folder: TemporaryFolder
    let descriptor: Int32
    var path: String { folder.path + "/socket" }

    init() throws {
      folder = try TemporaryFolder()
      descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_NONBLOCK.rawValue), 0)
      var address = sockaddr_un()
      address.sun_family = sa_family_t(AF_UNIX)
      withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: (folder.path + "/socket").utf8) }
      let bound = withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
        }
      }
      #expect(bound == 0)
    }

    deinit { close(descriptor) }

    func entry() -> String? {
      var bytes = [UInt8](repeating: 0, count: 65536)
      let count = recv(descriptor, &bytes, bytes.count, 0)
      return count < 0 ? nil : String(decoding: bytes[..<count], as: UTF8.self)
    }
  }

  private let null = open("/dev/null", O_WRONLY)

  @Test func anEntryHasPriorityDeviceAndAddress() throws {
    let journal = try Journal()
    var sink = LineSink(descriptor: null, style: .journal, journal: JournalSocket(path: journal.path))
    sink.write(
      LogLine(
        level: .notice, component: "gateway", message: "online\nDEVICE=forged",
        fields: ["device": "kitchen", "address": "C5:A1:B2:C3:D4:E5", "name": "a\nPRIORITY=0"]))
    #expect(
      journal.entry() == #"""
        SYSLOG_IDENTIFIER=microbit-gateway
        PRIORITY=5
        MESSAGE=notice gateway: online\nDEVICE=forged device=kitchen address=C5:A1:B2:C3:D4:E5 name="a\nPRIORITY=0"
        DEVICE=kitchen
        ADDRESS=C5:A1:B2:C3:D4:E5

        """#)
    sink.write(LogLine(level: .error, component: "mqtt", message: "x", fields: [:]))
    #expect(
      journal.entry() == "SYSLOG_IDENTIFIER=microbit-gateway\nPRIORITY=3\nMESSAGE=error mqtt: x\n")
  }

  @Test func busyJournalDropsLinesAndLogsTheirNumber() throws {
    let journal = try Journal()
    var sink = LineSink(descriptor: null, style: .journal, journal: JournalSocket(path: journal.path))
    // Their number is not limited otherwise.
    let line = LogLine(level: .debug, component: "test", message: "a", fields: [:])
    // Far more than the socket holds: the writes must not block.
    for _ in 0..<5000 { sink.write(line) }
    var kept = 0
    while journal.entry() != nil { kept += 1 }
    #expect(kept > 0 && kept < 5000)
    sink.write(line)
    #expect(
      try #require(journal.entry()).contains(
        "lines dropped: the log was not read fast enough count=\(5000 - kept)\n"))
    #expect(try #require(journal.entry()).contains("MESSAGE=debug test: a\n"))
  }

  @Test func linesAreWrittenToTheDescriptorWithoutAJournalSocket() throws {
    var ends: [Int32] = [0, 0]
    #expect(pipe(&ends) == 0)
    defer { for end in ends { close(end) } }
    var sink = LineSink(
      descriptor: ends[1], style: .journal, journal: JournalSocket(path: "/nonexistent/socket"))
    sink.write(LogLine(level: .warning, component: "test", message: "a", fields: [:]))
    var bytes = [UInt8](repeating: 0, count: 100)
    let count = read(ends[0], &bytes, bytes.count)
    #expect(String(decoding: bytes[..<max(0, count)], as: UTF8.self) == "<4>warning test: a\n")
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
