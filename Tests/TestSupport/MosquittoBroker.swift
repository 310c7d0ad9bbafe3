import Glibc

/// A real mosquitto on a free port of the loopback interface, ended by its process id when the object goes.
public final class MosquittoBroker: TestBroker {
  /// Of its one listener, which uses TLS only if configured.
  public var port: UInt16 { reserved.number }
  private let reserved: ReservedPort
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
    reserved = try ReservedPort()
    // As root mosquitto would become another user, who may not read the folder. By default it drops what a subscriber, on a
    // busy machine the test itself, does not take at once.
    try folder.write(
      """
      user root
      log_type all
      log_dest stderr
      max_queued_messages 1000000
      listener \(reserved.number) 127.0.0.1
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
