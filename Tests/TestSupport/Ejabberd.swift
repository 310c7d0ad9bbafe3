import Glibc

/// A real ejabberd as MQTT broker (its mod_mqtt), with a folder of its own, ended by its process id when the object
/// goes.
///
/// It lets in everybody who gives ``username`` and any password; without a name it lets nobody in.
public final class Ejabberd: TestBroker {
  /// A user name of ejabberd is a JID: what follows the @ is one of the `hosts` in its configuration.
  public static let username = "house@localhost"
  /// Whether tests with it can run here.
  public static let isInstalled = access("/usr/sbin/ejabberdctl", X_OK) == 0

  /// Of its MQTT listener, without TLS.
  public var port: UInt16 { reserved.number }
  private let reserved: ReservedPort
  private let folder: TemporaryFolder
  /// The program itself.
  public let process = BrokerProcess()

  /// Starts it, and waits until it listens.
  public init(folder: TemporaryFolder) async throws {
    self.folder = folder
    reserved = try ReservedPort()
    try folder.write(
      """
      hosts: [localhost]
      listen:
        -
          port: \(reserved.number)
          ip: "127.0.0.1"
          module: mod_mqtt
      auth_method: [anonymous]
      anonymous_protocol: login_anon
      allow_multiple_connections: true
      modules:
        mod_mqtt:
          access_publish: {"#": [allow]}
          access_subscribe: {"#": [allow]}

      """, to: "ejabberd.yml")
    try await start()
  }

  /// What it retained is on its disk.
  public func start() async throws {
    // Without its start script, which wants a user of its own; and without a node name, so that there is no epmd.
    let started = try ChildProcess(
      "/usr/bin/erl",
      // One scheduler that does not spin: on a busy machine the others keep each other waiting for half a minute.
      [
        "+S", "1:1", "+sbwt", "none", "-noinput", "-mnesia", "dir", "\"\(folder.path)/mnesia\"", "-s",
        "ejabberd",
      ],
      environment: [
        "EJABBERD_CONFIG_PATH": folder.path + "/ejabberd.yml",
        "EJABBERD_LOG_PATH": folder.path + "/ejabberd.log",
        "ERL_LIBS": "/usr/lib/x86_64-linux-gnu:/usr/lib/aarch64-linux-gnu",
        "HOME": folder.path,
      ])
    process.run(started)
    _ = try await started.line(within: .seconds(120)) { $0.contains("Start accepting") }
  }
}
