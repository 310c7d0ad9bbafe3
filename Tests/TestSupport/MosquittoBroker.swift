import Glibc
import Synchronization

/// A real mosquitto on a free port of the loopback interface, ended by its process id when the object goes.
public final class MosquittoBroker: Sendable {
  /// Stays the same from one ``start()`` to the next, as it does for a broker that is restarted.
  public let port: UInt16
  /// For certificates, password files and the like, which the configuration may name.
  public let folder: TemporaryFolder
  private let process = Mutex<ChildProcess?>(nil)

  /// Starts it, and waits until it listens.
  ///
  /// - Parameter configuration: makes the lines of mosquitto.conf (mosquitto.conf(5)) that come after
  ///   `listener`, given the folder's path. As it stands everybody is let in.
  public init(
    folder: TemporaryFolder? = nil,
    configuration: @Sendable (_ folder: String) -> String = { _ in "allow_anonymous true" }
  ) async throws {
    let folder = try folder ?? TemporaryFolder()
    self.folder = folder
    port = try freePort()
    // As root mosquitto would become another user, who may not read the folder.
    try folder.write(
      """
      user root
      log_type all
      log_dest stderr
      listener \(port) 127.0.0.1
      \(configuration(folder.path))

      """, to: "mosquitto.conf")
    try await start()
  }

  deinit { process.withLock { $0?.signal(SIGKILL) } }

  /// Starts it again after ``stop()`` or ``kill()``: nothing retained, no sessions.
  public func start() async throws {
    let started = try ChildProcess("/usr/sbin/mosquitto", ["-c", folder.path + "/mosquitto.conf"])
    process.withLock { $0 = started }
    _ = try await started.line(within: .seconds(10)) { $0.hasSuffix("running") }
  }

  /// Ends it in order: clients are told (MQTT 5).
  public func stop() async throws { try await end(SIGTERM) }

  /// Ends it as a crash would.
  public func kill() async throws { try await end(SIGKILL) }

  /// Stops its process without ending it, so that connections stay and nothing answers; `false` lets it go on.
  public func freeze(_ isFrozen: Bool) {
    process.withLock { $0?.signal(isFrozen ? SIGSTOP : SIGCONT) }
  }

  /// The next line of its log that satisfies `condition`, from where the last call left off.
  @discardableResult
  public func logLine(
    within limit: Duration = .seconds(10), where condition: @escaping @Sendable (String) -> Bool
  ) async throws -> String {
    guard let running = process.withLock({ $0 }) else { throw Failure("the broker does not run") }
    return try await running.line(within: limit, where: condition)
  }

  private func end(_ signal: Int32) async throws {
    guard let running = process.withLock({ $0 }) else { return }
    running.signal(signal)
    try await running.exitStatus(within: .seconds(10))
    process.withLock { $0 = nil }
  }
}

/// A TCP port of the loopback interface that nobody listens on now.
public func freePort() throws -> UInt16 {
  let fd = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
  guard fd >= 0 else { throw Failure("socket: errno \(errno)") }
  defer { close(fd) }
  var address = sockaddr_in()
  address.sin_family = sa_family_t(AF_INET)
  address.sin_addr.s_addr = in_addr_t(INADDR_LOOPBACK).bigEndian
  var size = socklen_t(MemoryLayout<sockaddr_in>.size)
  let bound = withUnsafeMutablePointer(to: &address) { pointer in
    pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
      bind(fd, generic, size) == 0 && getsockname(fd, generic, &size) == 0
    }
  }
  guard bound else { throw Failure("no free port: errno \(errno)") }
  return UInt16(bigEndian: address.sin_port)
}
