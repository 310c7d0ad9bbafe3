import Synchronization

/// The process's stderr, written without blocking.
enum StandardError {
  private static let sink = Mutex(LineSink.standardError())

  static var format: LogFormat {
    get { sink.withLock { $0.format } }
    set { sink.withLock { $0.format = newValue } }
  }

  static func write(_ line: LogLine) {
    sink.withLock { $0.write(line) }
  }
}
