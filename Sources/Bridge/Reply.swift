import Configuration
import Devices
import GATT
import JSON
import Log
import MQTT

/// Where the reply to a command or a request goes, and how its sender recognises it.
struct ReplyAddress: Sendable {
  /// The result or response topic.
  let topic: TopicName
  /// The sender's own (MQTT 5, 4.10).
  let responseTopic: TopicName?
  let correlationData: [UInt8]?

  init(of message: MQTTReceived, topic: TopicName) {
    self.topic = topic
    responseTopic = message.responseTopic
    correlationData = message.correlationData
  }
}

extension BridgeContext {
  /// - Parameter atOnce: a result: sent without delay, and ahead of much else that waits.
  func reply(_ payload: [UInt8], to address: ReplyAddress, atOnce: Bool) {
    var messages = [MQTTMessage(topic: address.topic, payload: payload, qos: qos)]
    if let topic = address.responseTopic, isForReplies(topic) {
      messages.append(
        MQTTMessage(topic: topic, payload: payload, qos: qos, correlationData: address.correlationData))
    }
    for message in messages {
      log.debug("replied", ["topic": message.topic, "payload": Excerpt.beginning(of: payload)])
      mqtt.publish(message, atOnce: atOnce)
    }
  }

  /// Whether a reply may go there: not below the base or the discovery prefix, where the sender of a command may lack
  /// the right to publish.
  private func isForReplies(_ topic: TopicName) -> Bool {
    !["\(topics.base)/", "\(discoveryPrefix)/"].contains { topic.string.utf8.starts(with: $0.utf8) }
  }
}

extension Outcome {
  /// The payload of `…/{property}/result`, and of the sender's response topic.
  ///
  /// - Parameters:
  ///   - requested: nil when the command held no value.
  ///   - codec: nil for a property that the device does not have.
  func result(
    requested: Value? = nil, _ codec: Codec?, transaction: String?, time: Timestamp = .now
  ) -> [UInt8] {
    json(requested: requested, codec)
      .merging(["transaction": transaction.map(JSONValue.string), "time": .string(time.description)]).bytes
  }

  /// What all results have in common.
  func json(requested: Value?, _ codec: Codec?) -> JSONValue {
    [
      "status": .string(word), "requested": requested.flatMap { codec?.json($0) },
      "actual": actual.flatMap { codec?.json($0) }, "reason": reason.map(JSONValue.string),
    ]
  }
}
