import EventLoop
import Glibc

/// The control channel: a Unix stream socket with one JSON object per line, answered by one per line.
public actor ControlServer {
  nonisolated let loop: EventLoop
  /// The loop's executor: code on its thread may enter the actor by `assumeIsolated`.
  public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  private let simulator: Simulator
  private let path: String
  private let listener: Int32
  private var watch: Watch?
  private var clients: [Int32: Client] = [:]

  private struct Client {
    var watch: Watch
    var rest: [UInt8] = []
    /// Unanswered lines; they are answered in order.
    var lines: [[UInt8]] = []
    var busy = false
    /// Replies that the socket has not accepted yet.
    var unsent: [UInt8] = []
  }

  /// The maximum length of a line.
  private static let maximumLine = 65536
  /// A client that leaves more than this unread is disconnected.
  private static let maximumUnsent = 16 << 20

  private init(_ simulator: Simulator, path: String, listener: Int32) {
    loop = simulator.loop
    self.simulator = simulator
    self.path = path
    self.listener = listener
  }

  /// Listens on a socket at `path`; replaces the socket of an earlier run.
  /// - Throws: ``ControlError``.
  public static func start(_ simulator: Simulator, at path: String) async throws -> ControlServer {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    guard path.utf8.count < MemoryLayout.size(ofValue: address.sun_path) else {
      throw ControlError(path: path, reason: "the path is too long for a socket")
    }
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
    let listener = socket(AF_UNIX, type, 0)
    guard listener >= 0 else { throw ControlError(path: path, reason: String(cString: strerror(errno))) }
    unlink(path)
    let bound = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(listener, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    guard bound == 0, Glibc.listen(listener, 16) == 0 else {
      let reason = String(cString: strerror(errno))
      close(listener)
      throw ControlError(path: path, reason: reason)
    }
    let server = ControlServer(simulator, path: path, listener: listener)
    await server.begin()
    return server
  }

  private func begin() {
    let handler: @Sendable (Readiness) -> Void = { [weak self] _ in self?.assumeIsolated { $0.accept() } }
    watch = loop.watch(listener, for: .readable, handler)
  }

  /// Closes and removes the socket.
  public func stop() {
    watch?.cancel()
    watch = nil
    close(listener)
    unlink(path)
    for descriptor in Array(clients.keys) { drop(descriptor) }
  }

  private func accept() {
    let descriptor = Glibc.accept(listener, nil, nil)
    guard descriptor >= 0 else { return acceptLater() }
    _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    let handler: @Sendable (Readiness) -> Void = { [weak self] readiness in
      self?.assumeIsolated { server in
        if readiness.contains(.writable) { server.flush(descriptor) }
        if readiness != .writable { server.read(descriptor) }
      }
    }
    clients[descriptor] = Client(watch: loop.watch(descriptor, for: .readable, handler))
  }

  /// Out of descriptors, perhaps: the client still waits.
  private func acceptLater() {
    watch?.interest = []
    loop.timer(after: .seconds(1)) { [weak self] in
      self?.assumeIsolated { $0.watch?.interest = .readable }
    }
  }

  private func drop(_ descriptor: Int32) {
    guard let client = clients.removeValue(forKey: descriptor) else { return }
    client.watch.cancel()
    close(descriptor)
  }

  private func read(_ descriptor: Int32) {
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = Glibc.read(descriptor, &buffer, buffer.count)
    if count < 0, errno == EAGAIN || errno == EINTR { return }
    guard count > 0, var client = clients[descriptor] else { return drop(descriptor) }
    client.rest += buffer[..<count]
    while let end = client.rest.firstIndex(of: 10) {
      client.lines.append(Array(client.rest[..<end]))
      client.rest.removeSubrange(...end)
    }
    if client.rest.count > Self.maximumLine { return drop(descriptor) }
    let idle = !client.busy
    client.busy = true
    clients[descriptor] = client
    if idle { Task(executorPreference: loop) { await self.answerLines(of: descriptor) } }
  }

  private func flush(_ descriptor: Int32) {
    guard let client = clients[descriptor] else { return }
    let count = send(descriptor, client.unsent, client.unsent.count, Int32(MSG_NOSIGNAL))
    if count < 0, errno != EAGAIN { return drop(descriptor) }
    clients[descriptor]?.unsent.removeFirst(max(0, count))
    let rest = client.unsent.count - max(0, count)
    if rest > Self.maximumUnsent { return drop(descriptor) }
    client.watch.interest = rest > 0 ? [.readable, .writable] : .readable
  }

  private func answerLines(of descriptor: Int32) async {
    while let line = clients[descriptor]?.lines.first {
      clients[descriptor]?.lines.removeFirst()
      let answer: ControlAnswer
      switch ControlRequest.parse(line) {
      case .success(let request): answer = await simulator.control(request)
      case .failure(let failure): answer = .error(failure.text)
      }
      guard clients[descriptor] != nil else { return }
      clients[descriptor]?.unsent += answer.line
      flush(descriptor)
    }
    clients[descriptor]?.busy = false
  }
}

/// The control socket could not be created.
public struct ControlError: Error, Sendable, CustomStringConvertible {
  let path: String
  let reason: String
  /// The socket's path, and the error.
  public var description: String { "\(path): \(reason)" }
}
