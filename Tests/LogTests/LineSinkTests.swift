import Glibc
import TestSupport
import Testing

@testable import Log

@Suite struct LineSinkTests {
  /// A pipe, closed when the test ends.
  final class Pipe {
    let reader: Int32
    let writer: Int32

    init() {
      var ends: [Int32] = [0, 0]
      // Only the reader is non-blocking: the sink must not block on a blocking descriptor.
      #expect(pipe(&ends) == 0)
      reader = ends[0]
      writer = ends[1]
      _ = fcntl(reader, F_SETFL, O_NONBLOCK)
    }

    deinit {
      close(reader)
      close(writer)
    }

    /// Reads everything that is available.
    func drain() -> String {
      var text: [UInt8] = []
      var chunk = [UInt8](repeating: 0, count: 65536)
      while true {
        let count = read(reader, &chunk, chunk.count)
        guard count > 0 else { return String(decoding: text, as: UTF8.self) }
        text += chunk[..<count]
      }
    }
  }

  func line(_ message: String) -> LogLine {
    LogLine(level: .warning, component: "test", message: message, fields: [:])
  }

  @Test func journalLinesHaveThePriorityOthersTheTime() throws {
    let pipe = Pipe()
    var journal = LineSink(descriptor: pipe.writer, style: .journal)
    journal.write(line("a"))
    #expect(pipe.drain() == "<4>warning test: a\n")

    var terminal = LineSink(descriptor: pipe.writer, style: .plain)
    terminal.write(line("b"))
    let text = pipe.drain()
    let time = try #require(text.wholeMatch(of: /(\d\d):(\d\d):(\d\d)\.\d\d\d warning test: b\n/))
    #expect(try #require(Int(time.1)) < 24)
    #expect(try #require(Int(time.2)) < 60)
    #expect(try #require(Int(time.3)) <= 60)
  }

  @Test func fullPipeDropsLinesAndLogsTheirNumber() {
    let pipe = Pipe()
    var sink = LineSink(descriptor: pipe.writer, style: .journal)
    let long = String(repeating: "x", count: 1500)
    // Far more than the pipe holds (64 KiB): the writes must not block.
    for _ in 0..<200 { sink.write(line(long)) }
    let kept = pipe.drain().split(separator: "\n").count
    #expect(kept > 10 && kept < 200)

    sink.write(line("after"))
    let expected =
      "<4>warning log: lines dropped: the log was not read fast enough count=\(200 - kept)\n<4>warning test: after\n"
    #expect(pipe.drain() == expected)
    sink.write(line("again"))
    #expect(pipe.drain() == "<4>warning test: again\n")
  }

  @Test func componentThatWritesTooMuchIsLimitedAndTheOthersAreNot() {
    var limiter = LineLimiter()
    let start = ContinuousClock.now
    let admitted = (0..<5000).count { _ in limiter.admit("mqtt", at: start) != nil }
    #expect(admitted == 1000)
    #expect(limiter.admit("gateway", at: start) == 0)
    #expect(limiter.admit("mqtt", at: start + .milliseconds(40)) == nil)
    #expect(limiter.admit("mqtt", at: start + .milliseconds(60)) == 4001)
    #expect(limiter.admit("mqtt", at: start + .seconds(1)) == 0)
    #expect((0..<5000).count { _ in limiter.admit("mqtt", at: start + .seconds(1000)) != nil } == 1000)
  }

  @Test func linesLeftOutAreCounted() throws {
    let pipe = Pipe()
    var sink = LineSink(descriptor: pipe.writer, style: .journal)
    var text = ""
    for _ in 0..<1500 {
      sink.write(line("a"))
      text += pipe.drain()
    }
    #expect((1000..<1100).contains(text.split(separator: "\n").count))
    var other = LogLine(level: .error, component: "other", message: "b", fields: [:])
    sink.write(other)
    #expect(pipe.drain() == "<3>error other: b\n")
    other = LogLine(level: .debug, component: "test", message: "c", fields: [:])
    sink.write(other)
    #expect(pipe.drain() == "<7>debug test: c\n")
  }

  @Test func linesWithoutAReaderAreDropped() {
    var ends: [Int32] = [0, 0]
    #expect(pipe(&ends) == 0)
    close(ends[0])
    defer { close(ends[1]) }
    var sink = LineSink(descriptor: ends[1], style: .plain)
    // Writing would end the process by SIGPIPE.
    sink.write(line("a"))
  }

  @Test func onlyTheJournalHasTheJournalStyle() {
    let pipe = Pipe()
    #expect(style(of: pipe.writer, [:]) == .plain)
    #expect(style(of: pipe.writer, ["JOURNAL_STREAM": "8:12345"]) == .plain)
    #expect(style(of: -1, ["JOURNAL_STREAM": "8:12345"]) == .plain)
    var status = stat()
    #expect(fstat(pipe.writer, &status) == 0)
    let journal = "\(status.st_dev):\(status.st_ino)"
    #expect(style(of: pipe.writer, ["JOURNAL_STREAM": journal]) == .journal)
  }

  func style(of descriptor: Int32, _ environment: [String: String]) -> LineStyle {
    LineStyle(descriptor: descriptor) { environment[$0] }
  }

  private static let colours: [([String: String], Bool)] = [
    (["TERM": "xterm-256color"], true), (["TERM": "xterm", "NO_COLOR": ""], true),
    (["TERM": "xterm", "NO_COLOR": "1"], false), (["TERM": "dumb"], false), (["TERM": ""], false),
    ([:], false),
  ]

  @Test(arguments: colours)
  func levelIsColouredOnATerminal(environment: [String: String], isColoured: Bool) throws {
    let terminal = try PseudoTerminal()
    let descriptor = open(terminal.path, O_RDWR | O_NOCTTY)
    defer { close(descriptor) }
    #expect(style(of: descriptor, environment) == (isColoured ? .coloured : .plain))
    let pipe = Pipe()
    #expect(style(of: pipe.writer, environment) == .plain)
  }

  @Test func timeAndLevelAreColoured() {
    let pipe = Pipe()
    var sink = LineSink(descriptor: pipe.writer, style: .coloured)
    sink.write(line("a\u{1B}[31m"))
    let text = pipe.drain()
    #expect(text.hasPrefix("\u{1B}[2m"))
    #expect(text.hasSuffix("\u{1B}[0m \u{1B}[33mwarning\u{1B}[0m test: a\\u{1b}[31m\n"), "\(text)")
  }

  @Test func jsonHasTheTimeOnce() throws {
    let pipe = Pipe()
    for style in [LineStyle.plain, .coloured] {
      var sink = LineSink(descriptor: pipe.writer, style: style)
      sink.format = .json
      sink.write(line("a"))
      let text = pipe.drain()
      let expected =
        /{"time":"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z","level":"warning","component":"test","message":"a"}\n/
      #expect(text.wholeMatch(of: expected) != nil, "\(text)")
    }
    // systemd removes the priority.
    var journal = LineSink(descriptor: pipe.writer, style: .journal)
    journal.format = .json
    journal.write(line("b"))
    #expect(pipe.drain().hasPrefix("<4>{\"time\":"))
  }
}

@Suite(.serialized) struct LoggerTests {
  @Test func textOfADisabledLevelIsNotComputed() {
    let before = Logger.level
    defer { Logger.level = before }
    Logger.level = .error
    var computed = 0
    func text() -> String {
      computed += 1
      return "x"
    }
    let logger = Logger(component: "test")
    logger.debug(text(), ["a": text()])
    logger.info(text(), ["a": text()])
    logger.notice(text(), ["a": text()])
    logger.warning(text(), ["a": text()])
    #expect(computed == 0)
    #expect(Logger.isEnabled(.error) && !Logger.isEnabled(.warning))
    #expect(Logger.level == .error)
  }
}
