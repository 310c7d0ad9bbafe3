import Glibc
import Synchronization

/// An MQTT broker of its own for a test, on a free port of the loopback interface.
public protocol TestBroker: Sendable {
  /// Stays the same from one ``start()`` to the next, as it does for a broker that is restarted.
  var port: UInt16 { get }
  /// Set running by ``start()``.
  var process: BrokerProcess { get }

  /// Starts it again after ``stop()`` or ``kill()``.
  func start() async throws
}

extension TestBroker {
  /// Ends it in order: clients get a DISCONNECT (MQTT 5).
  public func stop() async throws { try await process.end(SIGTERM) }

  /// Ends it as a crash would.
  public func kill() async throws { try await process.end(SIGKILL) }

  /// Stops its process without ending it, so that connections stay and nothing answers; `false` lets it go on.
  public func freeze(_ isFrozen: Bool) { process.signal(isFrozen ? SIGSTOP : SIGCONT) }

  /// Lets mosquitto save what it retains.
  public func save() { process.signal(SIGUSR1) }

  /// Lets mosquitto read its access control list again.
  public func reload() { process.signal(SIGHUP) }

  /// Its log since it was started.
  public var log: String { process.log }

  /// The next line of its log that satisfies `condition`, from where the last call left off.
  @discardableResult
  public func logLine(
    within limit: Duration = patience, where condition: @escaping @Sendable (String) -> Bool
  ) async throws -> String {
    try await process.logLine(within: limit, where: condition)
  }
}

/// The process of a broker, which goes with this object.
public final class BrokerProcess: Sendable {
  private let process = Mutex<ChildProcess?>(nil)

  deinit { process.withLock { $0?.signal(SIGKILL) } }

  /// Whether it was started, and not ended since.
  public var isRunning: Bool { process.withLock { $0 != nil } }

  func run(_ started: ChildProcess) { process.withLock { $0 = started } }

  func signal(_ signal: Int32) { process.withLock { $0?.signal(signal) } }

  var log: String { process.withLock { $0?.text } ?? "" }

  func logLine(
    within limit: Duration, where condition: @escaping @Sendable (String) -> Bool
  ) async throws -> String {
    guard let running = process.withLock({ $0 }) else { throw Failure("the broker does not run") }
    return try await running.line(within: limit, where: condition)
  }

  func end(_ signal: Int32) async throws {
    guard let running = process.withLock({ $0 }) else { return }
    running.signal(signal)
    try await running.exitStatus()
    process.withLock { $0 = nil }
  }
}
