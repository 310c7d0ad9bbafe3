import Glibc
import Synchronization

/// The process's stderr, written without blocking.
enum StandardError {
  private static let sink = Mutex(LineSink(descriptor: STDERR_FILENO))

  static func write(_ line: LogLine) {
    sink.withLock { $0.write(line) }
  }
}

/// Writes lines to a descriptor. Lines that it does not accept at once are dropped and counted, as a gateway must not
/// wait for a reader of its log.
struct LineSink {
  private let descriptor: Int32
  private let prefix: LinePrefix
  private var dropped = 0
  /// A line was written in part: begin a new line first.
  private var isTorn = false

  init(descriptor: Int32) {
    let journalStream = getenv("JOURNAL_STREAM").map { String(cString: $0) }
    self.init(
      descriptor: descriptor, prefix: LinePrefix(descriptor: descriptor, journalStream: journalStream))
  }

  init(descriptor: Int32, prefix: LinePrefix) {
    self.descriptor = descriptor
    self.prefix = prefix
  }

  mutating func write(_ line: LogLine) {
    if dropped > 0 {
      let lost = LogLine(
        level: .warning, component: "log", message: "lines dropped: stderr was not read",
        ["count": dropped])
      guard put(lost) else {
        dropped += 1
        return
      }
      dropped = 0
    }
    if !put(line) { dropped += 1 }
  }

  /// Writes the line, unless that could block.
  private mutating func put(_ line: LogLine) -> Bool {
    var state = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
    // Writable means that PIPE_BUF fits into a pipe, or a quarter of its buffer into a socket: enough for a line.
    // If the reader is gone, writing would raise SIGPIPE.
    guard poll(&state, 1, 0) == 1, state.revents == Int16(POLLOUT) else { return false }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(line.bytes.count + 16)
    if isTorn { bytes.append(UInt8(ascii: "\n")) }
    prefix.append(for: line.level, to: &bytes)
    bytes += line.bytes
    bytes.append(UInt8(ascii: "\n"))
    let written = Glibc.write(descriptor, bytes, bytes.count)
    if written > 0 { isTorn = written < bytes.count }
    return written == bytes.count
  }
}

/// The beginning of a line: the priority for the journal, or the time.
enum LinePrefix {
  /// `<6>`: the journal reads the priority from it, and adds the time itself (sd-daemon(3)).
  case journalPriority
  /// `12:34:56.789 `, local time.
  case time

  /// - Parameter journalStream: the environment's `JOURNAL_STREAM`.
  init(descriptor: Int32, journalStream: String?) {
    var status = stat()
    // Compared, as systemd.exec(5) requires: the variable is inherited even if stderr has been redirected.
    let isJournal = fstat(descriptor, &status) == 0 && journalStream == "\(status.st_dev):\(status.st_ino)"
    self = isJournal ? .journalPriority : .time
  }

  func append(for level: LogLevel, to bytes: inout [UInt8]) {
    switch self {
    case .journalPriority: bytes += "<\(level.journalPriority)>".utf8
    case .time:
      var now = timespec()
      clock_gettime(CLOCK_REALTIME, &now)
      var local = tm()
      localtime_r(&now.tv_sec, &local)
      append(Int(local.tm_hour), digits: 2, ":", to: &bytes)
      append(Int(local.tm_min), digits: 2, ":", to: &bytes)
      append(Int(local.tm_sec), digits: 2, ".", to: &bytes)
      append(now.tv_nsec / 1_000_000, digits: 3, " ", to: &bytes)
    }
  }

  private func append(_ number: Int, digits: Int, _ end: Unicode.Scalar, to bytes: inout [UInt8]) {
    var divisor = digits == 3 ? 100 : 10
    while divisor > 0 {
      bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number / divisor % 10))
      divisor /= 10
    }
    bytes.append(UInt8(ascii: end))
  }
}
