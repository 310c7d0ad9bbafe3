import Glibc
import Synchronization

/// A real dbus-daemon on a socket of its own, ended by its process id when the object goes.
///
/// Its policy lets everybody own and call everything, unless a test restricts it.
public final class PrivateBus: Sendable {
  /// As libdbus takes it (`unix:path=…`); the same after ``kill()`` and ``start()``.
  public let address: String
  private let daemon = Mutex<ChildProcess?>(nil)
  private let folder: TemporaryFolder

  /// - Parameter isStarted: whether it runs at once, or from ``start()`` on.
  public init(isStarted: Bool = true) async throws {
    folder = try TemporaryFolder()
    address = "unix:path=\(folder.path)/bus"
    try setPolicy("")
    if isStarted { try await start() }
  }

  /// Adds these elements to its configuration; a daemon that runs reads it soon.
  public func setPolicy(_ policy: String) throws {
    let configuration = """
      <!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
        "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
      <busconfig>
        <type>system</type>
        <listen>\(address)</listen>
        <policy context="default">
          <allow user="*"/><allow own="*"/>
          <allow send_destination="*" eavesdrop="true"/><allow receive_sender="*"/>
        </policy>
        \(policy)
      </busconfig>
      """
    try folder.write(configuration, to: "bus.conf")
    daemon.withLock { $0?.signal(SIGHUP) }
  }

  /// Starts it, and waits until it listens; again after ``kill()``.
  public func start() async throws {
    let started = try ChildProcess(
      "/usr/bin/dbus-daemon", ["--config-file=\(folder.path)/bus.conf", "--nofork", "--print-address=1"])
    daemon.withLock { $0 = started }
    // It prints its address when it listens.
    _ = try await started.line { $0.hasPrefix("unix:") }
  }

  /// What the daemon counts, such as `MatchRules` (org.freedesktop.DBus.Debug.Stats).
  public func statistics() async throws -> [String: Int] {
    let caller = try ChildProcess(
      "/usr/bin/dbus-send",
      [
        "--bus=" + address, "--print-reply", "--dest=org.freedesktop.DBus", "/org/freedesktop/DBus",
        "org.freedesktop.DBus.Debug.Stats.GetStats",
      ])
    guard try await caller.exitStatus() == 0 else {
      throw Failure("no statistics of the bus: \(caller.text)")
    }
    // string "NAME", and on the next line variant uint32 VALUE
    let words = caller.text.split(whereSeparator: \.isWhitespace)
    var counts: [String: Int] = [:]
    for (index, word) in words.enumerated() where word == "string" && index + 4 < words.count {
      counts[words[index + 1].filter(\.isLetter)] = Int(words[index + 4])
    }
    return counts
  }

  /// Kills the daemon, as a crash would.
  public func kill() { daemon.withLock { $0?.signal(SIGKILL) } }
}
