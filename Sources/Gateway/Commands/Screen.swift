import Glibc

/// Standard output: lines that are redrawn in place on a terminal, or text.
final class Screen {
  let isTerminal = isatty(STDOUT_FILENO) != 0
  /// Whether nobody reads it any more.
  private(set) var isClosed = false
  private var drawn = 0

  /// Shows these lines in the place of the last ones, in one write, so that nothing flickers.
  func show(_ lines: [String]) {
    let up = drawn > 0 ? "\u{1B}[\(drawn)A\u{1B}[J" : ""
    drawn = lines.count
    write(up + lines.map { $0 + "\n" }.joined())
  }

  /// Waits until the reader has taken it.
  func write(_ text: String) {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty, !isClosed {
      let count = rest.withUnsafeBytes { Glibc.write(STDOUT_FILENO, $0.baseAddress, $0.count) }
      if count > 0 {
        rest = rest.dropFirst(count)
      } else if errno != EINTR {
        isClosed = true
      }
    }
  }
}

/// The size of standard output; 24 rows of 80 columns if it is not a terminal.
enum TerminalSize {
  static var rows: Int { size.map { Int($0.ws_row) }.flatMap { $0 > 0 ? $0 : nil } ?? 24 }
  static var columns: Int { size.map { Int($0.ws_col) }.flatMap { $0 > 0 ? $0 : nil } ?? 80 }

  private static var size: winsize? {
    var size = winsize()
    return ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0 ? size : nil
  }
}
