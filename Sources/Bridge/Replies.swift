import Configuration
import Devices
import JSON
import Log
import MQTT

extension DevicePublisher {
  /// Publishes what has become of a command or a read.
  func publish(_ result: CommandResult, for sender: Sender) {
    guard let topic = topics.result(ofProperty: result.property) else { return }
    context.reply(result.payload(transaction: sender.transaction), on: topic, to: sender)
  }
}

extension BridgeContext {
  func reply(_ payload: [UInt8], on topic: TopicName, to sender: Sender) {
    var messages = [MQTTMessage(topic: topic, payload: payload, qos: qos)]
    if let topic = sender.responseTopic, isForReplies(topic) {
      // A broker may end the connection because of the topic (AWS IoT, for want of a right): it is not sent again.
      messages.append(
        MQTTMessage(
          topic: topic, payload: payload, qos: qos, correlationData: sender.correlationData,
          undelivered: .dropped))
    }
    for message in messages {
      log.debug("replied", ["topic": message.topic, "payload": Excerpt.beginning(of: payload)])
      mqtt.publish(message, isUrgent: true)
    }
  }

  /// Whether a reply may go there: not below the base or the discovery prefix, where the sender of a command may lack
  /// the right to publish.
  private func isForReplies(_ topic: TopicName) -> Bool {
    !["\(topics.base)/", "\(configuration.homeAssistant.prefix)/"].contains(where: topic.hasPrefix)
  }
}

extension CommandResult {
  /// The payload of `…/{property}/result`, and of the sender's response topic.
  func payload(transaction: JSONValue?, time: Timestamp = .now) -> [UInt8] {
    json.merging(["transaction": transaction, "time": .string(time.description)]).bytes
  }

  /// What all results have in common.
  var json: JSONValue {
    [
      "status": .string(outcome.word), "requested": requested.flatMap { codec?.json($0) },
      "actual": outcome.actual.flatMap { codec?.json($0) }, "reason": outcome.reason.map(JSONValue.string),
    ]
  }
}
