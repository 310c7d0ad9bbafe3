import Testing

@testable import Gateway
@testable import MQTT

/// How the broker's replies are evaluated, without a broker.
struct BrokerRepliesTests {
  private let topic = TopicName("microbit/doctor-1/info")!
  private let status = TopicName("homeassistant/status")!

  private func replies(_ events: [MQTTEvent]) -> BrokerReplies {
    var replies = BrokerReplies(status: status)
    for event in events { replies.add(event) }
    return replies
  }

  private func message(_ topic: TopicName, _ text: String, retain: Bool = false) -> MQTTEvent {
    .message(MQTTReceived(topic: topic, payload: Array(text.utf8), qos: .atLeastOnce, retain: retain))
  }

  @Test func firstFailureOfAConnectionIsKept() {
    let lost = replies([
      .connected(MQTTConnection()), .disconnected(.connectionLost(reason: "reset")),
      .disconnected(.timedOut(.connect)),
    ])
    #expect(!lost.isConnected && lost.failure == .connectionLost(reason: "reset"))
  }

  /// Ownership relies on this order.
  @Test func retainedMessageThatComesAfterALaterOneIsLate() {
    let barrier = TopicName("microbit/doctor-1/barrier")!
    let (sent, early) = (message(barrier, "offline"), message(barrier, ""))
    let (live, retained) = (message(topic, "offline"), message(topic, "offline", retain: true))
    func isLate(_ events: [MQTTEvent]) -> Bool {
      replies(events).has(barrier, Array("offline".utf8), beforeRetained: topic)
    }
    #expect(!isLate([early, live, retained, sent]))
    #expect(isLate([early, live, sent, retained]))
    #expect(!isLate([early, live, retained]))
  }

  @Test func messagesAreMatchedByTopicAndPayload() {
    let other = TopicName("microbit/kitchen/info")!
    let replies = replies([
      message(other, "x"), message(topic, "offline"), message(status, "online"),
    ])
    #expect(replies.has(topic) && replies.has(topic, Array("offline".utf8)))
    #expect(!replies.has(topic, []) && !replies.has(topic, retained: true), "another payload, not retained")
    #expect(!replies.has(other), "not a topic of the check")
    #expect(replies.isHomeAssistantOnline)
    #expect(self.replies([message(topic, "", retain: true)]).has(topic, [], retained: true))
  }
}
