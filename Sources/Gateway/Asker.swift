import MQTT

/// Who waits for an answer: where it goes, and how the asker knows it for its own.
struct Asker: Sendable {
  /// The topic that everybody can listen to.
  let topic: TopicName
  /// The asker's own, with what it knows its answers by (MQTT 5, 4.10).
  let responseTopic: TopicName?
  let correlationData: [UInt8]?
  /// Its name for the request, given back in the answer.
  let transaction: String?

  init(of message: MQTTReceived, answeredOn topic: TopicName, transaction: String?) {
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
