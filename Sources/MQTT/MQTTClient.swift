import EventLoop
import Log

/// What a client writes about itself: level and line.
public typealias MQTTLog = @Sendable (_ level: LogLevel, _ line: String) -> Void

/// A client of one broker: connects, stays connected, and keeps what it is told to say until it is said.
public actor MQTTClient {
  public nonisolated let loop: EventLoop
  public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
  private let options: MQTTOptions
  private let log: MQTTLog
  private var handler: (@Sendable (MQTTEvent) -> Void)?

  public init(options: MQTTOptions, loop: EventLoop, log: @escaping MQTTLog = { _, _ in }) {
    self.options = options
    self.loop = loop
    self.log = log
  }

  /// Who is told what happens: called on the loop, synchronously. It may call this client.
  public func setHandler(_ handler: @escaping @Sendable (MQTTEvent) -> Void) { self.handler = handler }

  /// Connects, and connects again whenever the connection is lost, until ``stop(deadline:)``. Trouble with the
  /// broker never ends it; cancellation closes the connection as a crash would (the will is published).
  public func run() async throws {}

  /// Publishes `message`; what cannot be sent now waits, and of too many the oldest is lost.
  public func publish(_ message: MQTTMessage) {}

  /// Publishes `payload` as retained state, now and after every CONNACK, until another value follows.
  /// Values that cannot be sent one by one are skipped for the newest.
  public func setState(_ topic: TopicName, _ payload: [UInt8], qos: QoS = .atLeastOnce) {}

  /// Takes the retained state of `topic` away from the broker, as soon as it can be told.
  public func clearState(_ topic: TopicName, qos: QoS = .atLeastOnce) {}

  /// Subscribes, now and after every CONNACK.
  public func subscribe(_ filter: TopicFilter, qos: QoS = .atLeastOnce) {}
  public func unsubscribe(_ filter: TopicFilter) {}

  /// Sends what waits and awaits its PUBACKs, at most for `deadline`, then says good-bye to the broker.
  public func stop(deadline: Duration) async {}

  public var statistics: MQTTStatistics { MQTTStatistics() }
}
