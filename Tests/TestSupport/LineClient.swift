import EventLoop
import Glibc
import Synchronization

/// A client of a socket that carries lines, such as the control sockets of the gateway and of the simulator, or HTTP. Its
/// calls block a thread of their own.
public final class LineClient: Sendable {
  private let descriptor: Int32
  /// What was received, and not returned yet.
  private let received = Mutex<[UInt8]>([])

  /// Connects at once, or fails, also if the server's queue of connections is full.
  public convenience init(_ path: String) throws {
    let descriptor = socket(
      AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
    let isConnected = withUnixAddress(path) { connect(descriptor, $0, $1) == 0 }
    try self.init(descriptor, isConnected, path)
  }

  /// Connects to a port of the loopback interface.
  /// - Parameters:
  ///   - host: the last number of the client's own address: 127.0.0.1 …
  ///   - server: the last number of the server's address.
  public convenience init(port: UInt16, from host: UInt8 = 1, to server: UInt8 = 1) throws {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    _ = withLoopbackAddress(0, host: host) { bind(descriptor, $0, $1) }
    let isConnected = withLoopbackAddress(port, host: server) { connect(descriptor, $0, $1) == 0 }
    try self.init(descriptor, isConnected, "port \(port)")
  }

  private init(_ descriptor: Int32, _ isConnected: Bool, _ place: String) throws {
    guard isConnected else {
      defer { close(descriptor) }
      throw Failure("\(place): errno \(errno)")
    }
    self.descriptor = descriptor
    _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~Int32(O_NONBLOCK))
    var limit = timeval(tv_sec: Int(patience.components.seconds), tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
  }

  deinit { close(descriptor) }

  /// Sends the text as it is.
  public func send(_ text: String) {
    let bytes = Array(text.utf8)
    _ = Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL))
  }

  /// The end of this client is a reset of the connection, which the server notices at once.
  public func resetAtEnd() {
    var atEnd = linger(l_onoff: 1, l_linger: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &atEnd, socklen_t(MemoryLayout<linger>.size))
  }

  /// Sends zeros until the server has taken none for a second.
  /// - Returns: how many were sent, `most` at most.
  public func flood(most: Int) async -> Int {
    await EventLoop.blocking { [descriptor] in
      var limit = timeval(tv_sec: 1, tv_usec: 0)
      setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
      let zeros = [UInt8](repeating: 0, count: 64 << 10)
      var sent = 0
      while sent < most {
        let count = Glibc.send(descriptor, zeros, zeros.count, Int32(MSG_NOSIGNAL))
        if count <= 0 { break }
        sent += count
      }
      return sent
    }
  }

  /// Sends no more; lines are still received.
  public func endSending() { shutdown(descriptor, Int32(SHUT_WR)) }

  /// Ends the connection in both directions.
  public func hangUp() { shutdown(descriptor, Int32(SHUT_RDWR)) }

  /// All that is received until the server closes the socket.
  public func rest() async throws -> String {
    try await EventLoop.blocking { [self] () throws -> String in
      while try receive() {}
      return received.withLock { received -> String in
        defer { received = [] }
        return String(decoding: received, as: UTF8.self)
      }
    }
  }

  /// The next line; nil: the server has closed the socket.
  public func line() async throws -> String? {
    if let line = receivedLine() { return line }
    return try await EventLoop.blocking { [self] () throws -> String? in
      while try receive() {
        if let line = receivedLine() { return line }
      }
      return nil
    }
  }

  /// The next line of what was received; nil: none is complete.
  private func receivedLine() -> String? {
    received.withLock { received -> String? in
      guard let end = received.firstIndex(of: 10) else { return nil }
      defer { received.removeSubrange(...end) }
      return String(decoding: received[..<end], as: UTF8.self)
    }
  }

  /// Blocks until more is received.
  /// - Returns: false: the server has closed the socket.
  private func receive() throws -> Bool {
    var buffer = [UInt8](repeating: 0, count: 65536)
    let count = read(descriptor, &buffer, buffer.count)
    if count < 0, errno == EAGAIN { throw Failure("no line in time") }
    guard count > 0 else { return false }
    received.withLock { $0 += buffer[..<count] }
    return true
  }

  /// Sends a line; returns the next one that is received.
  public func request(_ text: String) async throws -> String? {
    send(text + "\n")
    return try await line()
  }
}

/// Calls `body` with the address of a Unix socket.
public func withUnixAddress<T>(_ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> T) -> T {
  var address = sockaddr_un()
  address.sun_family = sa_family_t(AF_UNIX)
  precondition(path.utf8.count < MemoryLayout.size(ofValue: address.sun_path))
  withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
  return withUnsafePointer(to: &address) { pointer in
    pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
      body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
    }
  }
}
