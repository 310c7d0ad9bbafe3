import Glibc
import Testing

@testable import Log

@Suite struct LineSinkTests {
  /// A pipe, closed when the test ends.
  final class Pipe {
    let reader: Int32
    let writer: Int32

    init() {
      var ends: [Int32] = [0, 0]
      // Non-blocking on the reader's side alone: the sink must not block on a blocking descriptor.
      #expect(pipe(&ends) == 0)
      reader = ends[0]
      writer = ends[1]
      _ = fcntl(reader, F_SETFL, O_NONBLOCK)
    }

    deinit {
      close(reader)
      close(writer)
    }

    /// What is there to read.
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
    LogLine(level: .warning, component: "test", message: message, [:])
  }

  @Test func writesPriorityOrTime() throws {
    let pipe = Pipe()
    var journal = LineSink(descriptor: pipe.writer, prefix: .journalPriority)
    journal.write(line("a"))
    #expect(pipe.drain() == "<4>warning test: a\n")

    var terminal = LineSink(descriptor: pipe.writer, prefix: .time)
    terminal.write(line("b"))
    let text = pipe.drain()
    let time = try #require(text.wholeMatch(of: /(\d\d):(\d\d):(\d\d)\.\d\d\d warning test: b\n/))
    #expect(try #require(Int(time.1)) < 24)
    #expect(try #require(Int(time.2)) < 60)
    #expect(try #require(Int(time.3)) <= 60)
  }

  @Test func aFullPipeDropsLinesAndSaysHowMany() {
    let pipe = Pipe()
    var sink = LineSink(descriptor: pipe.writer, prefix: .journalPriority)
    let long = String(repeating: "x", count: 1500)
    // Far more than the pipe holds (64 KiB): returning at all is what matters.
    for _ in 0..<200 { sink.write(line(long)) }
    let kept = pipe.drain().split(separator: "\n").count
    #expect(kept > 10 && kept < 200)

    sink.write(line("after"))
    let expected =
      "<4>warning log: lines dropped: stderr was not read count=\(200 - kept)\n<4>warning test: after\n"
    #expect(pipe.drain() == expected)
    sink.write(line("again"))
    #expect(pipe.drain() == "<4>warning test: again\n")
  }

  @Test func linesWithoutAReaderAreDropped() {
    var ends: [Int32] = [0, 0]
    #expect(pipe(&ends) == 0)
    close(ends[0])
    defer { close(ends[1]) }
    var sink = LineSink(descriptor: ends[1], prefix: .time)
    // Writing would end the process by SIGPIPE.
    sink.write(line("a"))
  }

  @Test func aDescriptorThatIsNoJournalGetsTheTime() {
    let pipe = Pipe()
    #expect(LinePrefix(descriptor: pipe.writer, journalStream: nil) == .time)
    #expect(LinePrefix(descriptor: pipe.writer, journalStream: "8:12345") == .time)
    #expect(LinePrefix(descriptor: -1, journalStream: "8:12345") == .time)
    var status = stat()
    #expect(fstat(pipe.writer, &status) == 0)
    let journal = "\(status.st_dev):\(status.st_ino)"
    #expect(LinePrefix(descriptor: pipe.writer, journalStream: journal) == .journalPriority)
  }
}

@Suite(.serialized) struct LoggerTests {
  @Test func whatIsOffIsNotComputed() {
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
