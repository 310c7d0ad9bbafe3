import Glibc

/// TCP sockets by IP addresses. None of this blocks.
package enum TCPSocket {
  /// A listening socket.
  /// - Parameter address: of this machine, IPv4 or IPv6; `::` is for both, also where there is no IPv6.
  /// - Returns: its descriptor, or why there is none.
  package static func listen(at address: String, port: Int) -> Result<Int32, SocketFailure> {
    var v4 = sockaddr_in()
    var v6 = sockaddr_in6()
    v4.sin_family = sa_family_t(AF_INET)
    v4.sin_port = in_port_t(truncatingIfNeeded: port).bigEndian
    v6.sin6_family = sa_family_t(AF_INET6)
    v6.sin6_port = v4.sin_port
    if inet_pton(AF_INET, address, &v4.sin_addr) == 1 { return listen(&v4, AF_INET) }
    guard inet_pton(AF_INET6, address, &v6.sin6_addr) == 1 else {
      return .failure(SocketFailure("no IP address"))
    }
    let result = listen(&v6, AF_INET6)
    if address == "::", case .failure = result, !hasIPv6 { return listen(&v4, AF_INET) }
    return result
  }

  /// Whether the kernel has IPv6.
  private static var hasIPv6: Bool { access("/proc/net/if_inet6", F_OK) == 0 }

  private static func listen<Address>(
    _ address: inout Address, _ family: Int32
  ) -> Result<Int32, SocketFailure> {
    let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
    let descriptor = socket(family, type, 0)
    guard descriptor >= 0 else { return .failure(SocketFailure()) }
    set(SOL_SOCKET, SO_REUSEADDR, 1, of: descriptor)
    // The machine's default may be that `::` is for IPv6 alone.
    set(Int32(IPPROTO_IPV6), IPV6_V6ONLY, 0, of: descriptor)
    guard withAddress(&address, { bind(descriptor, $0, $1) }) == 0, Glibc.listen(descriptor, 64) == 0 else {
      defer { close(descriptor) }
      return .failure(SocketFailure())
    }
    return .success(descriptor)
  }

  private static func set(_ level: Int32, _ option: Int32, _ value: Int32, of descriptor: Int32) {
    var value = value
    setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
  }

  /// An IPv4 address as ``peer(of:)`` gives it.
  package static func bytes(_ address: String) -> [UInt8]? {
    var bytes = in_addr()
    return inet_pton(AF_INET, address, &bytes) == 1 ? withUnsafeBytes(of: bytes) { Array($0) } : nil
  }

  /// The IP address of the other end, 4 or 16 bytes. From now on the socket sends without delay, and the kernel keeps
  /// little for an end that does not read, and ends the connection if it acknowledges nothing for a minute.
  package static func peer(of descriptor: Int32) -> [UInt8] {
    set(Int32(IPPROTO_TCP), TCP_NODELAY, 1, of: descriptor)
    set(SOL_SOCKET, SO_SNDBUF, 64 << 10, of: descriptor)
    set(Int32(IPPROTO_TCP), TCP_USER_TIMEOUT, 60_000, of: descriptor)
    var address = sockaddr_in6()
    var length = socklen_t(MemoryLayout<sockaddr_in6>.size)
    guard withAddress(&address, { pointer, _ in getpeername(descriptor, pointer, &length) }) == 0 else {
      return []
    }
    return withUnsafeBytes(of: address) { bytes in
      // sin_addr; sin6_addr, in which an IPv4 address has its own place.
      if address.sin6_family == sa_family_t(AF_INET) { return Array(bytes[4..<8]) }
      let isV4 = bytes[8..<20].elementsEqual([UInt8](repeating: 0, count: 10) + [0xFF, 0xFF])
      return Array(isV4 ? bytes[20..<24] : bytes[8..<24])
    }
  }
}
