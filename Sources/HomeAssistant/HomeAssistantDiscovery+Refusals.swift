import MQTT

extension HomeAssistantDiscovery {
  package func refused(_ topic: TopicName, _ reason: MQTTRefusal) {
    guard !reason.isOfSize, let subject = discovery?.subject(of: topic.string) else { return }
    published[subject]?.refused()
  }

  package func publishRefusedAgain() {
    for (subject, document) in published where document.isRefused {
      published[subject]?.expire()
      schedule.append(.document(subject, .plain))
    }
  }
}
