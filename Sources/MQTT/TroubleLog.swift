import Glibc
import Log

/// Says each trouble of an outage once, and that it is over; of each topic that a message is refused, once in
/// a connection. What repeats is for the level `debug`. Pure.
struct TroubleLog {
  typealias Entry = (level: LogLevel, line: String)

  private let options: MQTTOptions
  private var said: [MQTTError] = []
  private var hasSaidLost = false
  private var refusedTopics: Set<TopicName> = []

  /// - Parameter options: of the client: its broker is named, and what can be done about it may depend on where that is.
  init(_ options: MQTTOptions) {
    self.options = options
  }

  /// A failed attempt or a lost connection. `retryIn` is nil when there is nothing to do but to wait on.
  mutating func trouble(_ error: MQTTError, retryIn: Duration?) -> Entry {
    if said.contains(error) { return (.debug, "still trying: \(error)") }
    // Bounded: a broker may give another reason each time.
    if said.count < 100 { said.append(error) }
    let level: LogLevel = error.remedy == .retry ? .warning : .error
    let line = error.description + hint(error)
    guard let retryIn else { return (level, "\(line); still waiting") }
    let (seconds, rest) = retryIn.components
    return (level, "\(line); trying again in \(seconds).\(rest / 100_000_000_000_000_000) s")
  }

  /// A connection has come about.
  mutating func over() -> Entry {
    defer { self = TroubleLog(options) }
    let place = "\(options.host):\(options.port)"
    return said.isEmpty ? (.info, "connected to \(place)") : (.notice, "connected again to \(place)")
  }

  /// What the user can do when nothing listens there.
  private func hint(_ error: MQTTError) -> String {
    guard case .unreachable(_, ECONNREFUSED) = error else { return "" }
    let isLocal = ["localhost", "::1"].contains(options.host) || options.host.hasPrefix("127.")
    return isLocal
      ? " (is a broker running here? sudo apt install mosquitto; sudo systemctl enable --now mosquitto)"
      : " (check mqtt.host and mqtt.port, and whether the broker listens on the network: by default mosquitto 2 does not)"
  }

  /// The queue is full, and its oldest message is lost.
  mutating func lost() -> Entry {
    defer { hasSaidLost = true }
    return (
      hasSaidLost ? .debug : .warning, "too many messages are waiting for the broker: the oldest are dropped"
    )
  }

  mutating func refused(_ topic: TopicName, _ reason: String) -> Entry {
    // Bounded: a response topic may be anything that somebody asks for.
    let isNew = refusedTopics.count < 100 && refusedTopics.insert(topic).inserted
    return (isNew ? .warning : .debug, "a message to \(topic) was dropped: \(reason)")
  }
}
