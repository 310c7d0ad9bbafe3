import Glibc
import TestSupport

/// A TCP port whose queue of connections is full: a further SYN gets no answer, as from a black hole.
final class BlackHole: Sendable {
  let port: UInt16
  private let descriptors: [Int32]

  init() throws {
    let (port, listener) = try boundPort()
    self.port = port
    var descriptors = [listener]
    guard listen(listener, 0) == 0 else { throw Failure("no listener: errno \(errno)") }
    // More than the queue holds, however the kernel rounds a backlog of 0.
    for _ in 0..<4 {
      let fd = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0)
      descriptors.append(fd)
      _ = withLoopbackAddress(port) { connect(fd, $0, $1) }
    }
    self.descriptors = descriptors
  }

  deinit { for fd in descriptors { close(fd) } }
}
