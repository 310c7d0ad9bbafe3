import EventLoop

/// A connected stream socket that carries lines in both directions.
@LoopActor package final class LineSocket: ByteSocket {
  /// The longest line that is accepted from a client, in bytes. A request has at most 64 KiB.
  static let longestRequest = 128 << 10

  private var input: LineBuffer
  private var isTakingLines = false
  /// Called with each line, without its end.
  package var onLine: ([UInt8]) -> Void = { _ in }

  /// - Parameters:
  ///   - descriptor: one that does not block, owned from now on.
  ///   - longestLine: a longer one ends the connection; in bytes.
  package init(_ descriptor: Int32, longestLine: Int = longestRequest) {
    input = LineBuffer(longestLine: longestLine)
    super.init(descriptor)
    onBytes = { [weak self] in
      self?.input.append($0)
      self?.takeLines()
    }
  }

  override package var isPaused: Bool { didSet { if oldValue, !isPaused { takeLines() } } }

  /// Sends a line at the end of the loop's iteration.
  package func send(line: [UInt8]) {
    send(line)
    send(CollectionOfOne(UInt8(ascii: "\n")))
  }

  private func takeLines() {
    // Recursion is prevented: `onLine` may end a pause.
    guard !isTakingLines else { return }
    isTakingLines = true
    defer { isTakingLines = false }
    while !isPaused, !isClosed, let line = input.next() { onLine(line) }
    if !isPaused, input.isTooLong { end() }
  }
}
