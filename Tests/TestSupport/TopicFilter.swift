import MQTT

extension TopicFilter {
  /// Whether messages to `topic` match the filter (MQTT 5, 4.7).
  package func matches(_ topic: TopicName) -> Bool {
    let (patterns, names) = (levels(of: string), levels(of: topic.string))
    // A leading wildcard does not match the broker's own topics.
    if names[0].first == "$", ["+", "#"].contains(patterns[0].first) { return false }
    for (index, pattern) in patterns.enumerated() {
      // `a/#` also matches `a`.
      if pattern.first == "#" { return true }
      guard index < names.count, pattern.first == "+" || pattern.elementsEqual(names[index]) else {
        return false
      }
    }
    return patterns.count == names.count
  }
}

/// By scalars: a `String` takes é and e with an accent for equal, a broker does not.
private func levels(of text: String) -> [Substring.UnicodeScalarView] {
  text.unicodeScalars.split(separator: "/", omittingEmptySubsequences: false)
}
