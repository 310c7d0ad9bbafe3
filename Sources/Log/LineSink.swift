import Glibc

/// Writes lines to a descriptor or to the journal. Lines that it does not accept at once are dropped and counted, as a
/// gateway must not wait for a reader of its log.
struct LineSink {
  private let descriptor: Int32
  private let style: LineStyle
  /// The socket of the journal; nil: lines for the journal are written to the descriptor.
  private let journal: JournalSocket?
  var format = LogFormat.text
  private var limiter = LineLimiter()
  private var dropped = 0
  /// A line was written in part: begin a new line first.
  private var isTorn = false

  /// The process's stderr.
  static func standardError() -> LineSink {
    let style = LineStyle(descriptor: STDERR_FILENO) { getenv($0).map { String(cString: $0) } }
    return LineSink(
      descriptor: STDERR_FILENO, style: style, journal: style == .journal ? JournalSocket() : nil)
  }

  init(descriptor: Int32, style: LineStyle, journal: JournalSocket? = nil) {
    self.descriptor = descriptor
    self.style = style
    self.journal = journal
  }

  mutating func write(_ line: LogLine) {
    // Debug lines are not limited: who wants them wants them all.
    if line.level > .debug {
      guard let leftOut = limiter.admit(line.component, at: .now) else { return }
      if leftOut > 0 {
        writeNow(
          LogLine(
            level: .warning, component: line.component, message: "lines left out: there were too many",
            fields: ["count": leftOut]))
      }
    }
    writeNow(line)
  }

  private mutating func writeNow(_ line: LogLine) {
    if dropped > 0 {
      let lost = LogLine(
        level: .warning, component: "log", message: "lines dropped: the log was not read fast enough",
        fields: ["count": dropped])
      if put(lost) { dropped = 0 }
    }
    if dropped > 0 || !put(line) { dropped += 1 }
  }

  /// Writes the line, unless that could block.
  private mutating func put(_ line: LogLine) -> Bool {
    let text =
      switch format {
      case .text: line.text(isColoured: style == .coloured)
      case .json: line.json(time: Timestamp.now.description)
      }
    switch journal?.send(line.journalEntry(text)) {
    case .sent?: return true
    case .full?: return false
    case .absent?, nil: return put(text, line.level)
    }
  }

  private mutating func put(_ text: [UInt8], _ level: LogLevel) -> Bool {
    var state = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
    // Writable means that PIPE_BUF fits into a pipe, or a quarter of its buffer into a socket: enough for a line.
    // If the reader is gone, writing would raise SIGPIPE.
    guard poll(&state, 1, 0) == 1, state.revents == Int16(POLLOUT) else { return false }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.count + 32)
    if isTorn { bytes.append(UInt8(ascii: "\n")) }
    bytes += style.prefix(for: level, format).utf8
    bytes += text
    bytes.append(UInt8(ascii: "\n"))
    let written = Glibc.write(descriptor, bytes, bytes.count)
    if written > 0 { isTorn = written < bytes.count }
    return written == bytes.count
  }
}

/// How lines are written to a descriptor.
enum LineStyle {
  /// `<6>`: the journal reads the priority from it, and adds the time itself (sd-daemon(3)).
  case journal
  /// `12:34:56.789 `, local time.
  case plain
  /// Like `plain`, with colours.
  case coloured

  /// - Parameter environment: a variable of the environment by its name.
  init(descriptor: Int32, environment: (String) -> String?) {
    var status = stat()
    // Compared, as systemd.exec(5) requires: the variable is inherited even if stderr has been redirected.
    if let journal = environment("JOURNAL_STREAM"), fstat(descriptor, &status) == 0,
      journal == "\(status.st_dev):\(status.st_ino)"
    {
      self = .journal
    } else if isatty(descriptor) != 0, environment("NO_COLOR") ?? "" == "",
      !["dumb", ""].contains(environment("TERM") ?? "")
    {
      self = .coloured
    } else {
      self = .plain
    }
  }

  func prefix(for level: LogLevel, _ format: LogFormat) -> String {
    switch (self, format) {
    case (.journal, _): "<\(level.journalPriority)>"
    // The time is in the JSON object.
    case (_, .json): ""
    case (.plain, .text): "\(Timestamp.now.clock) "
    case (.coloured, .text): "\(LogLevel.faint)\(Timestamp.now.clock)\(LogLevel.noColour) "
    }
  }
}
