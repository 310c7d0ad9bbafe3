import MQTT

extension TopicFilter {
  /// Whether the broker passes messages to `topic` on to a subscription with this filter (MQTT 5, 4.7).
  package func matches(_ topic: TopicName) -> Bool {
    let levels = string.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    let names = topic.string.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    // A leading wildcard does not match the broker's own topics.
    if topic.string.hasPrefix("$"), string.hasPrefix("+") || string.hasPrefix("#") { return false }
    for (index, level) in levels.enumerated() {
      // `a/#` also matches `a`.
      if level.elementsEqual("#".utf8) { return true }
      guard index < names.count, level.elementsEqual("+".utf8) || level.elementsEqual(names[index]) else {
        return false
      }
    }
    return levels.count == names.count
  }
}
