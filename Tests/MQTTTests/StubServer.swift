import EventLoop
import Glibc
import Synchronization
import TestSupport

/// A TCP server that is not a broker: sends fixed bytes to each client.
final class StubServer: Sendable {
  let port: UInt16
  /// The bytes that clients have sent.
  let received = Inbox<[UInt8]>()
  private let loop = EventLoop.onNewThread()
  private let listener: Int32

  init(sending reply: [UInt8] = [], thenCloses: Bool = false) async throws {
    let (port, fd) = try boundPort()
    (self.port, listener) = (port, fd)
    guard listen(fd, 5) == 0 else { throw Failure("no listener: errno \(errno)") }
    let (loop, received) = (loop, received)
    let watches = Watches()
    loop.onLoop {
      _ = loop.watch(fd, for: .readable) { _ in
        let peer = accept(fd, nil, nil)
        guard peer >= 0 else { return }
        _ = reply.withUnsafeBytes { write(peer, $0.baseAddress, $0.count) }
        if thenCloses {
          shutdown(peer, Int32(SHUT_WR))
        }
        let watch = loop.watch(peer, for: .readable) { _ in
          var buffer = [UInt8](repeating: 0, count: 4096)
          let count = read(peer, &buffer, buffer.count)
          if count > 0 {
            received.append(Array(buffer[..<count]))
          } else {
            watches.byPeer.withLock { $0.removeValue(forKey: peer) }?.cancel()
            close(peer)
          }
        }
        watches.byPeer.withLock { $0[peer] = watch }
      }
    }
  }

  deinit {
    loop.stop()
    close(listener)
  }
}

private final class Watches: Sendable {
  let byPeer = Mutex<[Int32: Watch]>([:])
}

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
