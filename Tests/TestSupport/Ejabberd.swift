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
  private let node: Node?
  /// The program itself.
  public let process = BrokerProcess()

  /// A node of a cluster.
  fileprivate struct Node: Sendable {
    let name: String
    let epmd: UInt16
    /// Runs as long as there are nodes.
    let nameServer: ChildProcess

    var options: [String] {
      // The others notice within 10 s that it is silent.
      ["-name", name, "-setcookie", "test", "-kernel", "net_ticktime", "8", "-kernel"]
        + ["inet_dist_use_interface", "{127,0,0,1}"]
    }
  }

  /// Starts it, and waits until it listens.
  public convenience init(folder: TemporaryFolder) async throws { try await self.init(folder, nil) }

  fileprivate init(_ folder: TemporaryFolder, _ node: Node?) async throws {
    self.folder = folder
    self.node = node
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
      ]
        + (node?.options ?? []),
      environment: [
        "EJABBERD_CONFIG_PATH": folder.path + "/ejabberd.yml",
        "EJABBERD_LOG_PATH": folder.path + "/ejabberd.log",
        "ERL_LIBS": "/usr/lib/x86_64-linux-gnu:/usr/lib/aarch64-linux-gnu",
        "HOME": folder.path,
        "ERL_EPMD_PORT": "\(node?.epmd ?? 4369)",
      ])
    process.run(started)
    _ = try await started.line(within: .seconds(120)) { $0.contains("Start accepting") }
  }

  /// The node becomes one of the other's cluster, and stays one when it is started again.
  fileprivate func join(_ other: Node) async throws {
    guard let node else { return }
    let call = try ChildProcess(
      "/usr/bin/erl_call",
      ["-c", "test", "-name", node.name, "-a", "ejabberd_cluster join ['\(other.name)']"],
      environment: ["ERL_EPMD_PORT": "\(node.epmd)", "HOME": folder.path])
    try await call.exitStatus(within: .seconds(120))
    guard call.text.hasPrefix("ok") else { throw Failure("\(node.name): \(call.text)") }
  }
}

/// Three of them as a cluster, with a name server of their own.
public final class EjabberdCluster: Sendable {
  /// Its nodes.
  public let nodes: [Ejabberd]

  /// Starts them, and waits until they are a cluster.
  public init() async throws {
    let port = try ReservedPort()
    let nameServer = try ChildProcess("/usr/bin/epmd", ["-port", "\(port.number)", "-address", "127.0.0.1"])
    let first = Ejabberd.Node(name: "one@127.0.0.1", epmd: port.number, nameServer: nameServer)
    var nodes = [try await Ejabberd(try TemporaryFolder(), first)]
    for name in ["two@127.0.0.1", "three@127.0.0.1"] {
      let node = try await Ejabberd(
        try TemporaryFolder(), Ejabberd.Node(name: name, epmd: port.number, nameServer: nameServer))
      try await node.join(first)
      nodes.append(node)
    }
    self.nodes = nodes
  }
}
