import EventLoop
import Glibc

/// Listening sockets. They accept connections while fewer than a maximum are open; further ones wait in the kernel's
/// queues.
@LoopActor package final class SocketListener {
  private static let retry = Duration.seconds(1)

  private let descriptors: [Int32]
  private let mostConnections: Int
  private let accepted: @LoopActor (Int32) -> Void
  private var connections = 0
  private var watches: [Watch] = []

  /// - Parameters:
  ///   - descriptors: listening sockets that do not block, owned from now on.
  ///   - accepted: called with each connection, whose descriptor it owns. Its end is reported by
  ///     ``connectionEnded()``.
  package init(
    _ descriptors: [Int32], mostConnections: Int, accepted: @escaping @LoopActor (Int32) -> Void
  ) {
    self.descriptors = descriptors
    self.mostConnections = mostConnections
    self.accepted = accepted
    watches = descriptors.map { descriptor in
      loop.watch(descriptor, for: .readable) { [weak self] _ in self?.accept(descriptor) }
    }
  }

  deinit {
    // The last reference may be released on any thread.
    loop.onLoop { [watches, descriptors] in
      for watch in watches { watch.cancel() }
      for descriptor in descriptors { close(descriptor) }
    }
  }

  /// An accepted connection has been closed.
  package func connectionEnded() {
    connections -= 1
    updateInterest()
  }

  private func accept(_ descriptor: Int32) {
    // Another socket may have accepted the last one just now.
    guard connections < mostConnections else { return }
    let connection = Glibc.accept(descriptor, nil, nil)
    guard connection >= 0 else {
      // Out of descriptors, perhaps: the client still waits.
      for watch in watches { watch.interest = [] }
      loop.timer(after: Self.retry) { [weak self] in self?.updateInterest() }
      return
    }
    _ = fcntl(connection, F_SETFL, O_NONBLOCK)
    _ = fcntl(connection, F_SETFD, FD_CLOEXEC)
    connections += 1
    updateInterest()
    accepted(connection)
  }

  private func updateInterest() {
    for watch in watches { watch.interest = connections < mostConnections ? .readable : [] }
  }
}
