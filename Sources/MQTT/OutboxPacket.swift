extension Outbox {
  /// A PUBLISH to send now. It has been removed from the queue: pass it to ``sent(_:as:)`` or ``unsent(_:)``.
  struct Packet {
    /// The message in the form that the broker takes.
    var message: MQTTMessage
    let source: Source
  }

  /// What a packet was made of.
  enum Source {
    case message(MessageQueue.Entry)
    case state(StateTable.Version)
    /// A message that is not queued, and never sent again.
    case once(TopicName)

    var topic: TopicName {
      switch self {
      case .message(let entry): entry.message.topic
      case .state(let version): version.topic
      case .once(let topic): topic
      }
    }

    var isQueued: Bool { if case .once = self { false } else { true } }

    /// The message, if its publisher gets it back.
    var returned: MQTTMessage? {
      guard case .message(let entry) = self, entry.message.undelivered == .returned else { return nil }
      return entry.message
    }
  }
}

extension Outbox.Packet {
  /// The size of the PUBLISH packet in bytes (MQTT 5, 3.3).
  var size: Int {
    var properties = 0
    if let topic = message.responseTopic { properties += 3 + topic.string.utf8.count }
    if let data = message.correlationData { properties += 3 + data.count }
    let remaining =
      2 + message.topic.string.utf8.count + (message.qos == .atMostOnce ? 0 : 2) + lengthOfLength(properties)
      + properties + message.payload.count
    return 1 + lengthOfLength(remaining) + remaining
  }

  /// The size of a Variable Byte Integer (MQTT 5, 1.5.5).
  private func lengthOfLength(_ value: Int) -> Int {
    switch value {
    case ..<128: 1
    case ..<16_384: 2
    case ..<2_097_152: 3
    default: 4
    }
  }
}
