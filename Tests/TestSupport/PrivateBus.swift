import EventLoop
import Glibc
import Synchronization

/// A real dbus-daemon on a socket of its own, ended by its process id when the object goes.
///
/// Its policy lets everybody own and call everything: what a test bus needs, and no system bus has.
public final class PrivateBus: Sendable {
  /// As libdbus takes it (`unix:path=…`); the same after ``kill()`` and ``start()``.
  public let address: String
  private let daemon = Mutex<ChildProcess?>(nil)
  private let folder: TemporaryFolder

  /// - Parameter isStarted: whether it runs at once, or from ``start()`` on.
  public init(isStarted: Bool = true) async throws {
    folder = try TemporaryFolder()
    let socket = folder.path + "/bus"
    let configuration = """
      <!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
        "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
      <busconfig>
        <type>system</type>
        <listen>unix:path=\(socket)</listen>
        <policy context="default">
          <allow user="*"/><allow own="*"/>
          <allow send_destination="*" eavesdrop="true"/><allow receive_sender="*"/>
        </policy>
      </busconfig>
      """
    try folder.write(configuration, to: "bus.conf")
    address = "unix:path=" + socket
    if isStarted { try await start() }
  }

  /// Starts it, and waits until it listens; again after ``kill()``.
  public func start() async throws {
    let started = try ChildProcess(
      "/usr/bin/dbus-daemon", ["--config-file=\(folder.path)/bus.conf", "--nofork", "--print-address=1"])
    daemon.withLock { $0 = started }
    // It prints its address when it listens.
    _ = try await started.line { $0.hasPrefix("unix:") }
  }

  /// Kills the daemon, as a crash would.
  public func kill() { daemon.withLock { $0?.signal(SIGKILL) } }
}
