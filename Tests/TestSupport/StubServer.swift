import EventLoop
import Glibc
import Synchronization

/// A TCP server that is not a broker: sends fixed bytes to each client.
public final class StubServer: Sendable {
  /// Of the loopback interface.
  public let port: UInt16
  /// The bytes that clients have sent, by packets.
  public let received = Record<[UInt8]>()
  private let listener: Int32
  private let peers = Peers()

  /// - Parameter reserved: the port of a ``ReservedPort``; nil: any that is free.
  public init(port reserved: UInt16? = nil, sending reply: [UInt8] = [], thenCloses: Bool = false) throws {
    let fd: Int32
    if let reserved {
      (port, fd) = (reserved, try Self.bound(to: reserved))
    } else {
      (port, fd) = try boundPort()
    }
    listener = fd
    guard listen(fd, 16) == 0 else { throw Failure("no listener: errno \(errno)") }
    let (loop, received, peers) = (loop, received, peers)
    loop.onLoop {
      _ = loop.watch(fd, for: .readable) { _ in
        let peer = accept(fd, nil, nil)
        guard peer >= 0 else { return }
        _ = fcntl(peer, F_SETFD, FD_CLOEXEC)
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
            peers.watches.withLock { $0.removeValue(forKey: peer) }?.cancel()
            close(peer)
          }
        }
        peers.watches.withLock { $0[peer] = watch }
      }
    }
  }

  private static func bound(to port: UInt16) throws -> Int32 {
    let fd = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var on: Int32 = 1
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
    guard withLoopbackAddress(port, { bind(fd, $0, $1) }) == 0 else {
      throw Failure("port \(port): errno \(errno)")
    }
    return fd
  }

  deinit {
    close(listener)
  }
}

private final class Peers: Sendable {
  let watches = Mutex<[Int32: Watch]>([:])
}
