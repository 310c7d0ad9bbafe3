import EventLoop
import Glibc

/// A connected stream socket that carries lines in both directions.
package final class LineSocket: @unchecked Sendable {
  // @unchecked: used on the loop's thread alone.

  package enum End: Sendable, Equatable {
    /// The other end has closed it, or is gone.
    case closed
    case lineTooLong
  }

  /// The longest line that is accepted from a client, in bytes. A request has at most 64 KiB.
  package static let longestRequest = 128 << 10

  private let descriptor: Int32
  private var watch: Watch?
  private var input: LineBuffer
  private var output: [UInt8] = []
  private var flushes = false
  private var isTakingLines = false
  /// The other end sends nothing more, but may still read.
  private var inputEnded = false
  private unowned let loop: EventLoop
  /// Called with each line, without its end.
  package var onLine: ([UInt8]) -> Void = { _ in }
  /// Called once, when no more lines follow.
  package var onEnd: (End) -> Void = { _ in }
  /// Called when all lines have been passed to the kernel.
  package var onDrained: () -> Void = {}

  /// - Parameters:
  ///   - descriptor: one that does not block, owned from now on.
  ///   - longestLine: a longer one ends the connection; in bytes.
  package init(_ descriptor: Int32, longestLine: Int = longestRequest, loop: EventLoop) {
    self.descriptor = descriptor
    input = LineBuffer(longestLine: longestLine)
    self.loop = loop
    watch = loop.watch(descriptor, for: .readable) { [weak self] in self?.handle($0) }
  }

  deinit { Glibc.close(descriptor) }

  /// Bytes that have not been passed to the kernel yet.
  package var unsent: Int { output.count }
  package var isClosed: Bool { watch == nil }

  /// While true, no lines are read, so that the other end has to wait.
  package var isPaused = false {
    didSet {
      guard isPaused != oldValue else { return }
      updateInterest()
      if !isPaused { takeLines() }
    }
  }

  /// Sends a line at the end of the loop's iteration.
  package func send(_ line: [UInt8]) {
    guard watch != nil else { return }
    output += line
    output.append(UInt8(ascii: "\n"))
    guard !flushes else { return }
    flushes = true
    loop.atEndOfIteration(self)
  }

  /// No callbacks follow. The descriptor is closed when the object is released.
  package func close() {
    watch?.cancel()
    watch = nil
    shutdown(descriptor, Int32(SHUT_RDWR))
  }

  private func end(_ reason: End) {
    guard watch != nil else { return }
    close()
    onEnd(reason)
  }

  private func updateInterest() {
    var interest: Readiness = isPaused || inputEnded ? [] : .readable
    if !output.isEmpty { interest.insert(.writable) }
    watch?.interest = interest
  }

  private func handle(_ readiness: Readiness) {
    if readiness.contains(.writable) { flush() }
    if !isPaused, !inputEnded, !readiness.isDisjoint(with: [.readable, .closed]) { read() }
    // What the other end has sent before it closed the socket is read first.
    if !readiness.isDisjoint(with: .closed), isPaused || inputEnded { end(.closed) }
  }

  private func read() {
    let capacity = 16 << 10
    let count = withUnsafeTemporaryAllocation(of: UInt8.self, capacity: capacity) { buffer in
      let count = Glibc.read(descriptor, buffer.baseAddress, capacity)
      if count > 0 { input.append(buffer[..<count]) }
      return count
    }
    if count < 0 {
      if errno != EAGAIN, errno != EINTR { end(.closed) }
      return
    }
    if count == 0 {
      inputEnded = true
      updateInterest()
      if output.isEmpty { onDrained() }
      return
    }
    takeLines()
  }

  private func takeLines() {
    // Not recursive: `onLine` may end a pause.
    guard !isTakingLines else { return }
    isTakingLines = true
    defer { isTakingLines = false }
    while !isPaused, watch != nil, let line = input.next() { onLine(line) }
    if !isPaused, input.isTooLong { end(.lineTooLong) }
  }

  private func flush() {
    while !output.isEmpty, watch != nil {
      let count = Glibc.send(descriptor, output, output.count, Int32(MSG_NOSIGNAL))
      if count < 0 {
        if errno == EINTR { continue }
        if errno != EAGAIN { return end(.closed) }
        break
      }
      output.removeFirst(count)
    }
    updateInterest()
    if output.isEmpty { onDrained() }
  }

  /// Whether the other end has closed its sending side.
  package var isHalfClosed: Bool { inputEnded }
}

/// The bytes received, to be taken line by line.
private struct LineBuffer {
  private let longestLine: Int
  private var bytes: [UInt8] = []

  init(longestLine: Int) { self.longestLine = longestLine }

  /// Whether the line that is incomplete is longer than allowed.
  var isTooLong: Bool { bytes.count > longestLine }

  mutating func append(_ received: some Sequence<UInt8>) { bytes += received }

  /// The next complete line, without its end.
  mutating func next() -> [UInt8]? {
    guard let end = bytes.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
    defer { bytes.removeSubrange(...end) }
    return Array(bytes[..<end])
  }
}

extension LineSocket: IterationEndHandler {
  package func iterationEnds() {
    flushes = false
    flush()
  }
}
