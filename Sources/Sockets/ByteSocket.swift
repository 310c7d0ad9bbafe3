import EventLoop
import Glibc

/// A connected stream socket.
@LoopActor package class ByteSocket {
  /// How much memory, in bytes, is kept for output when all has been sent.
  private static let keptCapacity = 64 << 10

  private let descriptor: Int32
  private var watch: Watch?
  private var output: [UInt8] = []
  /// How many bytes of the output have been passed to the kernel.
  private var sent = 0
  /// Whether the other end has closed its sending side; it may still read.
  package private(set) var isHalfClosed = false
  /// Called with what has arrived.
  package var onBytes: (UnsafeRawBufferPointer) -> Void = { _ in }
  /// Called once, when nothing can be sent or received any more. If the other end has closed its sending side alone,
  /// ``onDrained`` is called instead.
  package var onEnd: () -> Void = {}
  /// Called when all bytes have been passed to the kernel, and when the other end has closed its sending side.
  package var onDrained: () -> Void = {}

  /// - Parameter descriptor: one that does not block, owned from now on.
  package init(_ descriptor: Int32) {
    self.descriptor = descriptor
    watch = loop.watch(descriptor, for: .readable) { [weak self] in self?.handle($0) }
  }

  deinit { Glibc.close(descriptor) }

  /// Bytes that have not been passed to the kernel yet.
  package var unsent: Int { output.count - sent }
  package var isClosed: Bool { watch == nil }

  /// Whether reading is paused, so that the other end has to wait.
  package var isPaused = false { didSet { if isPaused != oldValue { updateInterest() } } }

  /// Sends at the end of the loop's iteration.
  package func send(_ bytes: some Collection<UInt8>) {
    guard watch != nil else { return }
    output += bytes
    loop.atEndOfIteration(self)
  }

  /// Tells the other end that nothing more is sent.
  package func endSending() { shutdown(descriptor, Int32(SHUT_WR)) }

  /// No callbacks follow. The descriptor is closed when the object is released.
  package func close() {
    watch?.cancel()
    watch = nil
    shutdown(descriptor, Int32(SHUT_RDWR))
  }

  func end() {
    guard watch != nil else { return }
    close()
    onEnd()
  }

  private func updateInterest() {
    var interest: Readiness = isPaused || isHalfClosed ? [] : .readable
    if unsent > 0 { interest.insert(.writable) }
    watch?.interest = interest
  }

  private func handle(_ readiness: Readiness) {
    if readiness.contains(.writable) { flush() }
    if !isPaused, !isHalfClosed, !readiness.isDisjoint(with: [.readable, .closed]) { read() }
    // What the other end has sent before it closed the socket is read first.
    if !readiness.isDisjoint(with: .closed), isPaused || isHalfClosed { end() }
  }

  private func read() {
    let capacity = 16 << 10
    withUnsafeTemporaryAllocation(byteCount: capacity, alignment: 1) { buffer in
      let count = Glibc.read(descriptor, buffer.baseAddress, capacity)
      if count > 0 {
        onBytes(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
      } else if count == 0 {
        isHalfClosed = true
        updateInterest()
        if unsent == 0 { onDrained() }
      } else if errno != EAGAIN, errno != EINTR {
        end()
      }
    }
  }

  private func flush() {
    while unsent > 0, watch != nil {
      let count = output.withUnsafeBytes { bytes in
        Glibc.send(descriptor, bytes.baseAddress! + sent, bytes.count - sent, Int32(MSG_NOSIGNAL))
      }
      if count < 0 {
        if errno == EINTR { continue }
        if errno != EAGAIN { return end() }
        break
      }
      sent += count
    }
    if unsent == 0 {
      // The memory of something long is given back.
      output.removeAll(keepingCapacity: output.capacity <= Self.keptCapacity)
      sent = 0
    } else if sent > output.count / 2 {
      output.removeFirst(sent)
      sent = 0
    }
    updateInterest()
    if unsent == 0 { onDrained() }
  }
}

extension ByteSocket: IterationEndHandler {
  package func iterationEnds() { flush() }
}
