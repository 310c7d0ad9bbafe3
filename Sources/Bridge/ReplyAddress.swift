import MQTT

/// Where the answer to a command or a request goes, and how its sender recognises it.
struct ReplyAddress: Sendable {
  /// The public topic.
  let topic: TopicName
  /// The sender's own topic and correlation data (MQTT 5, 4.10).
  let responseTopic: TopicName?
  let correlationData: [UInt8]?
  /// Returned in the answer.
  let transaction: String?

  init(of message: MQTTReceived, topic: TopicName, transaction: String?) {
    self.topic = topic
    responseTopic = message.responseTopic
    correlationData = message.correlationData
    self.transaction = transaction
  }

  /// The answer, as messages to publish.
  func answer(_ payload: [UInt8], qos: QoS) -> [MQTTMessage] {
    [MQTTMessage(topic: topic, payload: payload, qos: qos)]
      + (responseTopic.map {
        [MQTTMessage(topic: $0, payload: payload, qos: qos, correlationData: correlationData)]
      } ?? [])
  }
}
