import Glibc

/// Unix stream sockets by their paths. None of this blocks.
package enum UnixSocket {
  /// Why there is no socket, or no connection.
  package enum Failure: Error, Sendable, Equatable, CustomStringConvertible {
    /// No socket, or nobody listens any more.
    case absent
    /// The user of this process has no permission for the socket or its folder.
    case denied
    /// Too many connections wait for the process at the other end to accept them.
    case busy
    case other(String)

    package var description: String {
      switch self {
      case .absent: "there is no socket"
      case .denied: "no permission for the socket"
      case .busy: "too many programs wait for the socket"
      case .other(let reason): reason
      }
    }
  }

  package static func connect(to path: String) throws(Failure) -> Int32 {
    guard var address = address(path) else { throw .other("\(path) is too long for a socket") }
    let descriptor = open()
    guard descriptor >= 0 else { throw .other(String(cString: strerror(errno))) }
    if withAddress(&address, { Glibc.connect(descriptor, $0, $1) }) == 0 { return descriptor }
    let reason = errno
    close(descriptor)
    switch reason {
    case ENOENT, ECONNREFUSED, ENOTDIR: throw .absent
    case EACCES, EPERM: throw .denied
    case EAGAIN: throw .busy
    default: throw .other("\(path): \(String(cString: strerror(reason)))")
    }
  }

  /// Replaces an existing socket.
  package static func listen(at path: String, mode: mode_t) throws(Failure) -> Int32 {
    guard var address = address(path) else { throw .other("\(path) is too long for a socket") }
    guard unlink(path) == 0 || errno == ENOENT else {
      throw .other("\(path): \(String(cString: strerror(errno)))")
    }
    let descriptor = open()
    // Nobody can connect before it listens: the mode is set by then.
    guard descriptor >= 0, withAddress(&address, { bind(descriptor, $0, $1) }) == 0, chmod(path, mode) == 0,
      Glibc.listen(descriptor, 16) == 0
    else {
      let reason = String(cString: strerror(errno))
      if descriptor >= 0 { close(descriptor) }
      throw .other("\(path): \(reason)")
    }
    return descriptor
  }

  /// The process at the other end of a connection, and its user; nil: they are not known.
  package static func peer(of descriptor: Int32) -> (process: UInt32, user: uid_t)? {
    // struct ucred: pid, uid, gid.
    var credentials: [UInt32] = [0, 0, 0]
    var length = socklen_t(credentials.count * MemoryLayout<UInt32>.size)
    let result = getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &length)
    return result == 0 ? (credentials[0], credentials[1]) : nil
  }

  private static func open() -> Int32 {
    socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
  }

  private static func address(_ path: String) -> sockaddr_un? {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    guard path.utf8.count < MemoryLayout.size(ofValue: address.sun_path) else { return nil }
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
