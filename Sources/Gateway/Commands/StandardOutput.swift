import EventLoop
import Glibc
import JSON

/// Standard output. Whatever a command prints goes through here, so that none ends well whose output is incomplete.
///
/// A command goes on when nothing can be written any more, as it may have to end a link first; nothing else is
/// written then.
@LoopActor enum StandardOutput {
  /// Whether nobody reads the output any more, or it cannot be written.
  private(set) static var isClosed = false
  /// Why it cannot be written; nil: nothing was lost but what nobody reads.
  private(set) static var failure: String?

  /// Notes how a write has ended.
  static func note(_ result: WriteResult) {
    switch result {
    case .written: return
    case .notRead: isClosed = true
    case .failed(let reason): (isClosed, failure) = (true, reason)
    }
  }

  enum WriteResult: Sendable {
    case written
    /// The reader has closed its end.
    case notRead
    case failed(String)
  }

  /// Writes all of it; blocks while the reader pauses.
  nonisolated static func write(_ bytes: [UInt8]) -> WriteResult {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(STDOUT_FILENO, $0.baseAddress, $0.count) }
      if count >= 0 {
        rest = rest.dropFirst(count)
      } else if errno == EAGAIN {
        // Another program has made standard output non-blocking.
        var output = pollfd(fd: STDOUT_FILENO, events: Int16(POLLOUT), revents: 0)
        poll(&output, 1, -1)
      } else if errno == EPIPE {
        return .notRead
      } else if errno != EINTR {
        return .failed(String(cString: strerror(errno)))
      }
    }
    return .written
  }
}

/// Prints lines on standard output, at once, also into a pipe.
@LoopActor func printOutput(_ text: some CustomStringConvertible, terminator: String = "\n") {
  guard !StandardOutput.isClosed else { return }
  StandardOutput.note(StandardOutput.write(Array((text.description + terminator).utf8)))
}

/// Prints lines on standard error.
func printError(_ text: String) {
  let bytes = Array("\(Excerpt.harmless(text, keeping: "\n"))\n".utf8)
  _ = write(STDERR_FILENO, bytes, bytes.count)
}
