import Glibc

/// A real mosquitto on a free port of the loopback interface, ended by its process id when the object goes.
public final class MosquittoBroker: TestBroker {
  /// Of its one listener, which speaks TLS only if the configuration says so.
  public let port: UInt16
  /// For certificates, password files and the like, which the configuration may name.
  public let folder: TemporaryFolder
  /// The program itself.
  public let process = BrokerProcess()

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

  /// As it stands, with nothing retained and no sessions.
  public func start() async throws {
    let started = try ChildProcess("/usr/sbin/mosquitto", ["-c", folder.path + "/mosquitto.conf"])
    process.run(started)
    _ = try await started.line { $0.hasSuffix("running") }
  }
}

/// A TCP port of the loopback interface that nobody listens on now.
func freePort() throws -> UInt16 {
  let (port, descriptor) = try boundPort()
  close(descriptor)
  return port
}

/// A TCP port of the loopback interface, and the socket that is bound to it: nobody else gets it before that
/// is closed, and nobody can connect to it before it listens.
///
/// It is none of those that the kernel gives to outgoing connections (ip_local_port_range), so that it stays
/// free while a server is restarted.
public func boundPort() throws -> (port: UInt16, descriptor: Int32) {
  let fd = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
  guard fd >= 0 else { throw Failure("socket: errno \(errno)") }
  var one: Int32 = 1
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, socklen_t(MemoryLayout<Int32>.size))
  for _ in 0..<100 {
    let port = UInt16.random(in: 12_000..<32_000)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = in_addr_t(INADDR_LOOPBACK).bigEndian
    let isBound = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(fd, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
      }
    }
    if isBound { return (port, fd) }
  }
  close(fd)
  throw Failure("no free port: errno \(errno)")
}
