import FoundationEssentials
import TestSupport
import Testing

/// Holds the MQTT reference true: what stands in its examples is sent, and what they say comes.
@Suite struct DocumentationTests {
  private static let reference = "docs/mqtt.md"

  @Test("Every example of the MQTT reference happens as it stands there")
  func examples() async throws {
    let text = try String(contentsOfFile: Self.reference, encoding: .utf8)
      .replacing("living-room", with: Fixture.gatewayID)
    let examples = Example.all(in: text)
    try #require(examples.count > 20, "is this the reference?")
    var plan = Plan(devices: 2, strangers: 1, period: 1000)
    plan.simulator = [
      "--services", "temperature,accelerometer", "--address", "0=C5:A1:B2:C3:D4:E4", "--address",
      "1=C5:A1:B2:C3:D4:E5",
    ]
    plan.gateway = #""area":"Living room""#
    plan.entries = """
      {"match":{"identifier":"C5:A1:B2:C3:D4:E4"},"id":"kitchen","name":"Kitchen","area":"Kitchen"},
      {"match":{"name_prefix":"BBC micro:bit"}}
      """
    try await withFixture(plan) { fixture in
      for id in ["kitchen", "c5a1b2c3d4e5"] {
        try await fixture.message("\(id)/info") { (try? $0.json())?["serial"] != nil }
      }
      for example in examples { try await example.run(in: fixture) }
    }
  }

  /// Some messages to the gateway, and what follows.
  private struct Example {
    var sent: [(topic: String, payload: String)] = []
    var expected: [(topic: String, payload: String)] = []

    /// The examples in the blocks marked ```mqtt: paragraphs of lines that begin with `>` or `<`.
    static func all(in text: String) -> [Example] {
      var examples: [Example] = []
      var example = Example()
      var isExample = false
      for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
        if line.hasPrefix("```") { isExample = line == "```mqtt" }
        guard isExample, let direction = line.first, direction != "`" else {
          if !example.expected.isEmpty { examples.append(example) }
          example = Example()
          continue
        }
        let words = line.dropFirst(2).split(separator: " ", maxSplits: 1)
        let message = (String(words[0]), words.count > 1 ? String(words[1]) : "")
        if direction == ">" { example.sent.append(message) } else { example.expected.append(message) }
      }
      return examples
    }

    func run(in fixture: Fixture) async throws {
      let observer = try fixture.observer
      // Where nothing is sent, it is about what has come before.
      let mark = sent.isEmpty ? 0 : observer.mark
      for (topic, payload) in sent { try await observer.publish(topic, payload) }
      for (topic, payload) in expected {
        do {
          _ = try await observer.message(topic, after: mark, within: Fixture.patience) {
            Self.matches($0.text, payload)
          }
        } catch {
          let others = observer.messages.dropFirst(mark).filter { $0.topic == topic }.map(\.text)
          throw Failure("\(topic) \(payload)\nafter \(sent)\ncame: \(others.joined(separator: "\n"))")
        }
      }
    }

    /// `…` is anything, all else is itself.
    private static func matches(_ text: String, _ pattern: String) -> Bool {
      let parts = pattern.split(separator: "…", omittingEmptySubsequences: false)
      guard parts.count > 1 else { return text == pattern }
      guard text.hasPrefix(parts[0]) else { return false }
      var rest = text.dropFirst(parts[0].count)
      for part in parts.dropFirst().dropLast() where !part.isEmpty {
        guard let range = rest.firstRange(of: part) else { return false }
        rest = rest[range.upperBound...]
      }
      return rest.hasSuffix(parts[parts.count - 1])
    }
  }
}
