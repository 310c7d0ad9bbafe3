import EventLoop
import Glibc

/// A listening socket. It accepts connections while fewer than a maximum are open; further ones wait in the kernel's
/// queue.
@LoopActor package final class SocketListener {
  private static let retry = Duration.seconds(1)

  private let descriptor: Int32
  private let mostConnections: Int
  private let accepted: @LoopActor (Int32) -> Void
  private var connections = 0
  private var watch: Watch?

  /// - Parameters:
  ///   - descriptor: a listening socket that does not block, owned from now on.
  ///   - accepted: called with each connection, whose descriptor it owns. Its end is reported by
  ///     ``connectionEnded()``.
  package init(
    _ descriptor: Int32, mostConnections: Int, accepted: @escaping @LoopActor (Int32) -> Void
  ) {
    self.descriptor = descriptor
    self.mostConnections = mostConnections
    self.accepted = accepted
    watch = loop.watch(descriptor, for: .readable) { [weak self] _ in self?.accept() }
  }

  deinit {
    // The last reference may be released on any thread.
    loop.onLoop { [watch, descriptor] in
      watch?.cancel()
      close(descriptor)
    }
  }

  /// An accepted connection has been closed.
  package func connectionEnded() {
    connections -= 1
    updateInterest()
  }

  private func accept() {
    let connection = Glibc.accept(descriptor, nil, nil)
    guard connection >= 0 else {
      // Out of descriptors, perhaps: the client still waits.
      watch?.interest = []
      loop.timer(after: Self.retry) { [weak self] in self?.updateInterest() }
      return
    }
    _ = fcntl(connection, F_SETFL, O_NONBLOCK)
    _ = fcntl(connection, F_SETFD, FD_CLOEXEC)
    connections += 1
    updateInterest()
    accepted(connection)
  }

  private func updateInterest() { watch?.interest = connections < mostConnections ? .readable : [] }
}
