import EventLoop
import Log

/// Writes a log line of a client.
public typealias MQTTLog = @LoopActor (_ level: LogLevel, _ line: String) -> Void

extension MQTTClient {
  /// Logs to stderr, as component `mqtt`.
  public static let standardLog: MQTTLog = { Logger(component: "mqtt").write($0, $1) }
}

/// Chooses the log lines of a client. Each error is logged once per outage; refused messages once for each topic, and refused
/// subscriptions once, until a connection has lasted; repetitions have the level `debug`. An outage ends with a connection that
/// lasts: a broker may accept each one, and end it at once. Pure.
struct OutageLog {
  typealias Entry = (level: LogLevel, line: String)

  private let brokers: [MQTTBroker]
  private var reported: [MQTTBroker: [MQTTError]] = [:]
  /// The connections since an error was logged.
  private var connects = 0
  /// Whether the last connection has lasted.
  private var hasLasted = false
  private var hasReportedLoss = false
  private var refusedTopics: Set<TopicName> = []
  private var refusedFilters: Set<TopicFilter> = []
  /// The most refused subscriptions that are logged: each device has several.
  private static let mostFilters = 10

  init(_ brokers: [MQTTBroker]) { self.brokers = brokers }

  /// An attempt failed, or the connection was lost. `retryIn` is nil if the attempt continues.
  mutating func failed(_ error: MQTTError, at broker: MQTTBroker, retryIn: Duration?) -> Entry {
    let place = brokers.count == 1 ? "" : "\(broker): "
    let known = reported[broker, default: []]
    if known.contains(error) {
      guard connects == 1 else { return (.debug, "\(place)still trying: \(error)") }
      connects += 1
      return (
        .warning,
        "\(place)\(error), again; trying again, not logged any more until a connection has lasted 30 s"
      )
    }
    connects = 0
    // Bounded: a broker may give a different reason each time.
    if known.count < 100 { reported[broker] = known + [error] }
    let level: LogLevel = error.needsChange ? .error : .warning
    let line = place + error.description + (error.hint(at: broker).map { " (\($0))" } ?? "")
    guard let retryIn else { return (level, "\(line); still waiting") }
    if retryIn == .zero { return (level, "\(line); trying the next broker") }
    let (seconds, rest) = retryIn.components
    let tenths = rest / 100_000_000_000_000_000
    let time = seconds == 0 && tenths == 0 ? "at once" : "in \(seconds).\(tenths) s"
    return (level, "\(line); trying again \(time)")
  }

  mutating func connected(to broker: MQTTBroker) -> Entry {
    connects += 1
    if hasLasted { (hasReportedLoss, refusedTopics, refusedFilters, hasLasted) = (false, [], [], false) }
    if reported.isEmpty { return (.info, "connected to \(broker)") }
    return (connects == 1 ? .notice : .debug, "connected again to \(broker)")
  }

  /// The connection has lasted: the outage is over.
  mutating func lasted(at broker: MQTTBroker) -> Entry? {
    defer { (reported, connects, hasLasted) = ([:], 0, true) }
    return connects > 1 ? (.notice, "connected again to \(broker)") : nil
  }

  /// The queue was full, and its oldest message was dropped.
  mutating func lost() -> Entry {
    defer { hasReportedLoss = true }
    return (
      hasReportedLoss ? .debug : .warning,
      "too many messages are waiting for the broker: the oldest are dropped"
    )
  }

  mutating func refused(
    _ topic: TopicName, _ reason: String, _ fate: RefusedMessage = .dropped
  ) -> Entry {
    // Bounded: senders of requests choose their response topics.
    let isNew = refusedTopics.count < 100 && refusedTopics.insert(topic).inserted
    let isDropped = if case .dropped = fate { true } else { false }
    let what = isDropped ? "was dropped" : "is refused, and sent again later"
    return (isNew ? .warning : .debug, "a message to \(topic) \(what): \(reason)")
  }

  mutating func refused(subscription filter: TopicFilter, _ reason: String) -> Entry {
    let isNew = refusedFilters.count < Self.mostFilters && refusedFilters.insert(filter).inserted
    let rest = isNew && refusedFilters.count == Self.mostFilters ? "; others are not logged" : ""
    return (isNew ? .error : .debug, "the broker refused the subscription to \(filter): \(reason)\(rest)")
  }
}
