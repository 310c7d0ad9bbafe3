import Glibc

/// A TCP port of the loopback interface for a server of the test's, or for none: while this object lives nobody else
/// gets it, whether the server listens, is restarted or has yet to come.
public final class ReservedPort: Sendable {
  /// What a server is configured to listen on.
  public let number: UInt16
  private let descriptor: Int32

  /// - Throws: ``Failure`` when there is none.
  public init() throws {
    (number, descriptor) = try boundPort()
    // From now on a server that gets the number may share it: servers allow that (SO_REUSEADDR), `boundPort` does
    // not. As this socket never listens, connections are the server's, or refused.
    var one: Int32 = 1
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, socklen_t(MemoryLayout<Int32>.size))
  }

  deinit { close(descriptor) }
}

/// A TCP port of the loopback interface, and the socket that is bound to it: nobody else gets it before that
/// is closed, and nobody can connect to it before it listens.
///
/// It is none of those that the kernel gives to outgoing connections (ip_local_port_range), so that it stays
/// free while a server is restarted.
public func boundPort() throws -> (port: UInt16, descriptor: Int32) {
  let fd = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
  guard fd >= 0 else { throw Failure("socket: errno \(errno)") }
  for _ in 0..<100 {
    let port = UInt16.random(in: 12_000..<32_000)
    let isBound = withLoopbackAddress(port) { bind(fd, $0, $1) == 0 }
    if isBound { return (port, fd) }
  }
  close(fd)
  throw Failure("no free port: errno \(errno)")
}

/// Calls `body` with the address of `port` on the loopback interface.
/// - Parameter host: 127.0.0.1 …
public func withLoopbackAddress<T>(
  _ port: UInt16, host: UInt8 = 1, _ body: (UnsafePointer<sockaddr>, socklen_t) -> T
) -> T {
  var address = sockaddr_in()
  address.sin_family = sa_family_t(AF_INET)
  address.sin_port = port.bigEndian
  address.sin_addr.s_addr = (in_addr_t(0x7F00_0000) | in_addr_t(host)).bigEndian
  return withUnsafePointer(to: &address) { pointer in
    pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
      body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
    }
  }
}
