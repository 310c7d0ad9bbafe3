import EventLoop

/// A connected stream socket that carries lines in both directions.
@LoopActor package final class LineSocket {
  /// The longest line that is accepted from a client, in bytes. A request has at most 64 KiB.
  package static let longestRequest = 128 << 10

  private let socket: ByteSocket
  private var input: LineBuffer
  private var isTakingLines = false
  /// Called with each line, without its end.
  package var onLine: ([UInt8]) -> Void = { _ in }
  /// Called once, when no more lines follow: the other end has closed it, is gone, or has sent a line that is too long.
  package var onEnd: () -> Void = {}
  /// Called when all lines have been passed to the kernel.
  package var onDrained: () -> Void = {}

  /// - Parameters:
  ///   - descriptor: one that does not block, owned from now on.
  ///   - longestLine: a longer one ends the connection; in bytes.
  package init(_ descriptor: Int32, longestLine: Int = longestRequest) {
    socket = ByteSocket(descriptor)
    input = LineBuffer(longestLine: longestLine)
    socket.onBytes = { [weak self] in
      self?.input.append($0)
      self?.takeLines()
    }
    socket.onEnd = { [weak self] in self?.onEnd() }
    socket.onDrained = { [weak self] in self?.onDrained() }
  }

  /// Bytes that have not been passed to the kernel yet.
  package var unsent: Int { socket.unsent }
  package var isClosed: Bool { socket.isClosed }
  /// Whether the other end has closed its sending side.
  package var isHalfClosed: Bool { socket.isHalfClosed }

  /// Whether reading is paused, so that the other end has to wait.
  package var isPaused: Bool {
    get { socket.isPaused }
    set {
      guard newValue != socket.isPaused else { return }
      socket.isPaused = newValue
      if !newValue { takeLines() }
    }
  }

  /// Sends a line at the end of the loop's iteration.
  package func send(_ line: [UInt8]) {
    socket.send(line)
    socket.send(CollectionOfOne(UInt8(ascii: "\n")))
  }

  /// No callbacks follow. The descriptor is closed when the object is released.
  package func close() { socket.close() }

  private func takeLines() {
    // Recursion is prevented: `onLine` may end a pause.
    guard !isTakingLines else { return }
    isTakingLines = true
    defer { isTakingLines = false }
    while !isPaused, !isClosed, let line = input.next() { onLine(line) }
    guard !isPaused, !isClosed, input.isTooLong else { return }
    close()
    onEnd()
  }
}
