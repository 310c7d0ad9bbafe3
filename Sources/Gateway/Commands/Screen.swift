import EventLoop
import Glibc

/// Standard output: lines that are redrawn in place on a terminal, or text. Written in the background, so that a reader
/// that pauses holds up neither the loop nor Ctrl-C.
@LoopActor final class Screen {
  let isTerminal = isatty(STDOUT_FILENO) != 0
  /// Called when something was written, or nothing can be written any more.
  var onProgress: () -> Void = {}
  private var unwritten: [UInt8] = []
  private var isWriting = false
  private var drawn = 0
  /// What is shown when the lines before it have been written.
  private var nextLines: [String]?
  private var finished: Waiter<Void>?

  /// Bytes beyond which the source is to be held back.
  private static let capacity = 256 << 10
  /// The limit for the last lines at the end, if the reader pauses.
  private static let timeout = Duration.seconds(1)

  var isFull: Bool { unwritten.count > Self.capacity }

  /// Shows these lines in the place of the last ones, in one write, so that nothing flickers.
  func show(_ lines: [String]) {
    if isWriting { return nextLines = lines }
    let up = drawn > 0 ? "\u{1B}[\(drawn)A\u{1B}[J" : ""
    drawn = lines.count
    write(up + lines.map { $0 + "\n" }.joined())
  }

  func write(_ text: String) {
    guard !StandardOutput.isClosed else { return }
    unwritten += text.utf8
    writeNext()
  }

  /// Returns when everything is written.
  func finish() async {
    guard isWriting else { return }
    let finished = Waiter<Void>()
    self.finished = finished
    _ = try? await finished.value(within: Self.timeout)
  }

  private func writeNext() {
    guard !isWriting, !unwritten.isEmpty else { return }
    isWriting = true
    let bytes = unwritten
    unwritten = []
    loop.task { [self] in
      StandardOutput.note(await EventLoop.blocking { StandardOutput.write(bytes) })
      isWriting = false
      if StandardOutput.isClosed { (unwritten, nextLines) = ([], nil) }
      if let lines = nextLines {
        nextLines = nil
        show(lines)
      } else {
        writeNext()
      }
      if !isWriting { finished?.resume(.success(())) }
      onProgress()
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
