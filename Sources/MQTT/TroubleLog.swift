import Log

/// Says each trouble of an outage once, and that it is over; of each topic that a message is refused, once in
/// a connection. What repeats is for the level `debug`. Pure.
struct TroubleLog {
  typealias Entry = (level: LogLevel, line: String)

  private var said: [MQTTError] = []
  private var hasSaidLost = false
  private var refusedTopics: Set<TopicName> = []

  /// A failed attempt or a lost connection. `retryIn` is nil when there is nothing to do but to wait on.
  mutating func trouble(_ error: MQTTError, retryIn: Duration?) -> Entry {
    if said.contains(error) { return (.debug, "still trying: \(error)") }
    // Bounded: a broker may give another reason each time.
    if said.count < 100 { said.append(error) }
    let level: LogLevel = error.remedy == .retry ? .warning : .error
    guard let retryIn else { return (level, "\(error); still waiting") }
    let (seconds, rest) = retryIn.components
    return (level, "\(error); trying again in \(seconds).\(rest / 100_000_000_000_000_000) s")
  }

  /// A connection has come about.
  mutating func over(_ options: MQTTOptions) -> Entry {
    defer { self = TroubleLog() }
    let place = "\(options.host):\(options.port)"
    return said.isEmpty ? (.info, "connected to \(place)") : (.notice, "connected again to \(place)")
  }

  /// The queue is full, and its oldest message is lost.
  mutating func lost() -> Entry {
    defer { hasSaidLost = true }
    return (hasSaidLost ? .debug : .warning, "too many messages wait for the broker: the oldest are lost")
  }

  mutating func refused(_ topic: TopicName, _ reason: String) -> Entry {
    // Bounded: a response topic may be anything that somebody asks for.
    let isNew = refusedTopics.count < 100 && refusedTopics.insert(topic).inserted
    return (isNew ? .warning : .debug, "a message to \(topic) is dropped: \(reason)")
  }
}
