/// The messages that wait to be sent, each once, the oldest first. If there are too many, the oldest are dropped. Pure.
struct MessageQueue {
  /// A class, as it is large and often passed.
  final class Entry: Sendable {
    let message: MQTTMessage
    /// Its place among all that is queued.
    let sequence: UInt64
    /// The connection during or after which it was queued; on any other it is a replay.
    fileprivate let connection: UInt32

    fileprivate init(_ message: MQTTMessage, sequence: UInt64, connection: UInt32) {
      self.message = message
      self.sequence = sequence
      self.connection = connection
    }

    fileprivate var bytes: Int {
      message.topic.string.utf8.count + message.payload.count
        + (message.responseTopic?.string.utf8.count ?? 0) + (message.correlationData?.count ?? 0)
    }
  }

  private let limits: OutboxLimits
  private var entries = Deque<Entry>()
  private var bytes = 0
  /// Counts the connections.
  private var connection: UInt32 = 0
  /// Messages dropped because there were too many.
  private(set) var lost = 0

  init(limits: OutboxLimits) { self.limits = limits }

  var count: Int { entries.count }
  var first: Entry? { entries.first }
  /// Whether the first was queued during this connection.
  var isFirstLive: Bool { entries.first?.connection == connection }

  mutating func append(_ message: MQTTMessage, sequence: UInt64) {
    let entry = Entry(message, sequence: sequence, connection: connection)
    bytes += entry.bytes
    entries.append(entry)
    dropOldest()
  }

  mutating func connected() { connection &+= 1 }

  /// The packet of the first message; nil if that was for an earlier connection only.
  mutating func takeFirst(for peer: Outbox.Peer) -> Outbox.Packet? {
    guard let entry = removeFirst() else { return nil }
    let (message, isReplay) = (entry.message, entry.connection != connection)
    if message.endsWithConnection, isReplay { return nil }
    var packet = Outbox.Packet(
      topic: message.topic, payload: message.payload, qos: min(message.qos, peer.maximumQoS),
      retain: message.retain, source: .message(entry))
    if isReplay, let transform = message.replayTransform { packet.payload = transform(packet.payload) }
    if peer.hasProperties {
      packet.responseTopic = message.responseTopic
      packet.correlationData = message.correlationData
    }
    return packet
  }

  /// It becomes the first again.
  mutating func putBack(_ entry: Entry) {
    entries.prepend(entry)
    bytes += entry.bytes
  }

  /// To be called after ``putBack(_:)`` of all that was not acknowledged.
  mutating func dropOldest() {
    while entries.count > limits.messages || bytes > limits.bytes {
      removeFirst()
      lost += 1
    }
  }

  @discardableResult
  private mutating func removeFirst() -> Entry? {
    let entry = entries.popFirst()
    bytes -= entry?.bytes ?? 0
    return entry
  }
}
