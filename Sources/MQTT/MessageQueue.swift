/// A part of ``Outbox``: the messages that wait to be sent, each once, in two lanes, the oldest first. If there are too
/// many, the oldest are dropped.
struct MessageQueue {
  /// A class, as it is large and often passed.
  final class Entry: Sendable {
    let message: MQTTMessage
    /// The message's place among all that is queued.
    let sequence: UInt64
    fileprivate let lane: Outbox.Lane

    fileprivate init(_ message: MQTTMessage, sequence: UInt64, lane: Outbox.Lane) {
      self.message = message
      self.sequence = sequence
      self.lane = lane
    }

    fileprivate var bytes: Int {
      message.topic.string.utf8.count + message.payload.count
        + (message.responseTopic?.string.utf8.count ?? 0) + (message.correlationData?.count ?? 0)
    }
  }

  private let limits: OutboxLimits
  private var lanes = Lanes<Entry>()
  private var bytes = 0
  /// Messages dropped because there were too many, or they were too large.
  private(set) var lost = 0
  /// What is to be told to the publisher.
  var outcomes = Outbox.Outcomes()

  init(limits: OutboxLimits) { self.limits = limits }

  var count: Int { lanes.count }
  var bulkCount: Int { lanes[.bulk].count }

  func first(_ lane: Outbox.Lane) -> Entry? { lanes[lane].first }

  /// - Returns: false if the message is larger than the queue: it is dropped.
  mutating func append(_ message: MQTTMessage, sequence: UInt64, lane: Outbox.Lane) -> Bool {
    let entry = Entry(message, sequence: sequence, lane: lane)
    // It must not displace all others, to be dropped after them, nor be given back, as it would come again.
    guard entry.bytes <= limits.bytes else {
      lost += 1
      if let number = message.number {
        outcomes.completed.append(number)
        outcomes.rejected += 1
      }
      return false
    }
    bytes += entry.bytes
    lanes[lane].append(entry)
    dropOldest()
    return true
  }

  /// Must be called after ``putBack(_:)`` of all that was not acknowledged: only messages that are kept are still
  /// queued.
  mutating func disconnected() {
    for lane in Outbox.Lane.allCases {
      var kept: [Entry] = []
      while let entry = removeFirst(lane) {
        if entry.message.undelivered == .kept { kept.append(entry) } else { notDelivered(entry.message) }
      }
      for entry in kept.reversed() { putBack(entry) }
    }
    dropOldest()
  }

  /// The packet of the first message in the lane.
  mutating func takeFirst(_ lane: Outbox.Lane) -> Outbox.Packet? {
    removeFirst(lane).map { Outbox.Packet(message: $0.message, source: .message($0)) }
  }

  /// Makes the message the first of its lane again.
  mutating func putBack(_ entry: Entry) {
    lanes[entry.lane].prepend(entry)
    bytes += entry.bytes
  }

  private mutating func dropOldest() {
    while count > limits.messages || bytes > limits.bytes {
      let isUrgentOlder = (first(.urgent)?.sequence ?? .max) < (first(.bulk)?.sequence ?? .max)
      guard let entry = removeFirst(isUrgentOlder ? .urgent : .bulk) else { return }
      if entry.message.undelivered != .returned { lost += 1 }
      notDelivered(entry.message)
    }
  }

  /// Gives the message back, or drops it: it is not queued any more, or not at all.
  mutating func notDelivered(_ message: MQTTMessage) {
    if message.undelivered == .returned { outcomes.returned.append(message) }
  }

  private mutating func removeFirst(_ lane: Outbox.Lane) -> Entry? {
    let entry = lanes[lane].popFirst()
    bytes -= entry?.bytes ?? 0
    return entry
  }
}
