import MQTT

extension HomeAssistantDiscovery {
  package func refused(_ topic: TopicName, _ reason: MQTTRefusal) -> Bool {
    if !reason.isOfSize, store.removals[topic.string] != nil {
      // What was to be announced once more: Home Assistant could not remove it now. It stays until the next start.
      reannounced.remove(topic.string)
      schedule.cancelFollowUps { $0 == .removal(topic.string, .remove) }
      return false
    }
    guard !reason.isOfSize, let subject = discovery?.subject(of: topic.string), published[subject] != nil
    else { return false }
    published[subject]?.refused()
    // What the document was to remove is still there. What is another gateway's by now stays unrecorded.
    if store[subject] != nil { store[subject] = published[subject]?.announced }
    return true
  }

  package func publishRefusedAgain() {
    for (subject, document) in published where document.isRefused {
      published[subject]?.expire()
      schedule.append(.document(subject, .plain))
    }
  }
}
