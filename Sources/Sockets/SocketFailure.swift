import Glibc

/// Why there is no socket, or no connection.
package struct SocketFailure: Error, Sendable, CustomStringConvertible {
  package let description: String
  /// Whether the user of this process has no permission for the socket or its folder.
  package private(set) var isDenied = false
  /// Whether too many connections wait for the process at the other end to accept them.
  package private(set) var isBusy = false

  init(_ description: String) { self.description = description }

  /// Makes a failure of `errno`.
  init(at path: String? = nil) {
    let code = errno
    description = (path.map { "\($0): " } ?? "") + String(cString: strerror(code))
    isDenied = code == EACCES || code == EPERM
    isBusy = code == EAGAIN
  }
}
