import EventLoop
import Glibc

/// The person at standard input and output.
@LoopActor final class Console {
  private let screen = Screen()
  /// The terminal's settings while it does not show what is typed.
  private var shown: termios?

  /// Returns when the lines are shown.
  func show(_ lines: [String]) async {
    screen.write(lines.map { $0 + "\n" }.joined())
    await screen.finish()
  }

  /// Shows a question, and waits for a line.
  /// - Parameter isSecret: whether the answer is not shown while it is typed.
  /// - Returns: nil at the end of the input.
  func ask(_ question: String, isSecret: Bool = false) async -> String? {
    // Typing is hidden before the question is seen, and answered.
    if isSecret { hideTyping() }
    screen.write(question)
    await screen.finish()
    // The line is not read on the loop, which has to keep running meanwhile.
    let line = await EventLoop.blocking { Self.line() }
    showTyping()
    return line
  }

  private nonisolated static let longestLine = 64 << 10

  /// Blocks until there is a line; nil at the end of the input.
  ///
  /// Uses read(2): exit(3) of glibc 2.41 waits for a thread that waits in a function of stdio.
  private nonisolated static func line() -> String? {
    var bytes: [UInt8] = []
    var byte: UInt8 = 0
    while true {
      let count = read(STDIN_FILENO, &byte, 1)
      if count == 1, byte != UInt8(ascii: "\n") {
        if bytes.count < longestLine { bytes.append(byte) }
        continue
      }
      if count < 0, errno == EINTR { continue }
      if count < 0, errno == EAGAIN {
        // Another program has made standard input non-blocking.
        var input = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
        poll(&input, 1, -1)
        continue
      }
      if count < 1, bytes.isEmpty { return nil }
      if bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
      return String(decoding: bytes, as: UTF8.self)
    }
  }

  private func hideTyping() {
    var settings = termios()
    guard tcgetattr(STDIN_FILENO, &settings) == 0 else { return }
    shown = settings
    settings.c_lflag = settings.c_lflag & ~tcflag_t(ECHO) | tcflag_t(ECHONL)
    // VQUIT and VSUSP: neither Ctrl-\ nor Ctrl-Z leaves the terminal like this.
    (settings.c_cc.1, settings.c_cc.10) = (0, 0)
    tcsetattr(STDIN_FILENO, TCSANOW, &settings)
  }

  /// Restores the terminal, also for the shell after this process.
  func showTyping() {
    guard var settings = shown else { return }
    tcsetattr(STDIN_FILENO, TCSANOW, &settings)
    shown = nil
  }
}
