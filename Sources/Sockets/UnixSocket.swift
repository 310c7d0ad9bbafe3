import Glibc

/// Unix stream sockets by their paths. None of this blocks.
package enum UnixSocket {
  package static func connect(to path: String) throws(SocketFailure) -> Int32 {
    var address = try address(path)
    let descriptor = open()
    if descriptor >= 0, withAddress(&address, { Glibc.connect(descriptor, $0, $1) }) == 0 {
      return descriptor
    }
    throw failure(at: path, closing: descriptor)
  }

  /// Replaces an existing socket.
  package static func listen(at path: String, mode: mode_t) throws(SocketFailure) -> Int32 {
    var address = try address(path)
    guard unlink(path) == 0 || errno == ENOENT else { throw SocketFailure(at: path) }
    let descriptor = open()
    // Nobody can connect before it listens: the mode is set by then.
    if descriptor >= 0, withAddress(&address, { bind(descriptor, $0, $1) }) == 0, chmod(path, mode) == 0,
      Glibc.listen(descriptor, 16) == 0
    {
      return descriptor
    }
    throw failure(at: path, closing: descriptor)
  }

  private static func failure(at path: String, closing descriptor: Int32) -> SocketFailure {
    let failure = SocketFailure(at: path)
    if descriptor >= 0 { close(descriptor) }
    return failure
  }

  /// The process at the other end of a connection, if it is visible from here, and its user; nil: they are not known.
  package static func peer(of descriptor: Int32) -> (process: UInt32?, user: uid_t)? {
    // struct ucred: pid, uid, gid.
    var credentials: [UInt32] = [0, 0, 0]
    var length = socklen_t(credentials.count * MemoryLayout<UInt32>.size)
    let result = getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &length)
    guard result == 0 else { return nil }
    // The kernel says 0 of a process in another PID namespace.
    return (credentials[0] == 0 ? nil : credentials[0], credentials[1])
  }

  private static func open() -> Int32 {
    socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
  }

  private static func address(_ path: String) throws(SocketFailure) -> sockaddr_un {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    guard path.utf8.count < MemoryLayout.size(ofValue: address.sun_path) else {
      throw SocketFailure("\(path) is too long for a socket")
    }
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    return address
  }
}

/// Calls `body` with an address of any family and its size, as the functions of C take them.
func withAddress<Address>(
  _ address: inout Address, _ body: (UnsafeMutablePointer<sockaddr>, socklen_t) -> Int32
) -> Int32 {
  withUnsafeMutablePointer(to: &address) {
    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
      body($0, socklen_t(MemoryLayout<Address>.size))
    }
  }
}
