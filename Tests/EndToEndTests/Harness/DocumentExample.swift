import TestSupport

/// An example in a section of a document: a configuration, and the steps that follow.
struct DocumentExample {
  /// The heading.
  var title = ""
  /// The block marked ```json.
  var configuration = ""
  var steps: [Step] = []

  enum Step {
    case exchange(Exchange)
    /// A command in a block marked ```console, and its output.
    case command(String, output: [String])
  }

  /// A paragraph in a block marked ```mqtt: an event, the messages to the gateway, and the expected messages.
  struct Exchange {
    /// The line that begins with `#`.
    var event: String?
    var sent: [(topic: String, payload: String)] = []
    var expected: [(topic: String, payload: String)] = []
  }

  /// One example for each section with steps; the text before the first heading counts as a section.
  static func all(in text: String) -> [DocumentExample] {
    var examples = [DocumentExample()]
    var block = ""
    for line in text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init) {
      if line.hasPrefix("```") {
        block = block.isEmpty ? String(line.dropFirst(3)) + " " : ""
        if block == "mqtt " { examples[examples.count - 1].steps.append(.exchange(Exchange())) }
      } else if line.hasPrefix("## "), block.isEmpty {
        examples.append(DocumentExample(title: String(line.dropFirst(3))))
      } else {
        examples[examples.count - 1].add(line, in: block)
      }
    }
    return examples.filter { !$0.steps.isEmpty }
  }

  private mutating func add(_ line: String, in block: String) {
    switch block {
    case "json ": configuration += line + "\n"
    case "mqtt ":
      guard case .exchange(var exchange) = steps.last else { return }
      if line.isEmpty { return steps.append(.exchange(Exchange())) }
      exchange.add(line)
      steps[steps.count - 1] = .exchange(exchange)
    case "console ":
      if line.hasPrefix("$ ") { return steps.append(.command(String(line.dropFirst(2)), output: [])) }
      guard case .command(let command, let output) = steps.last else { return }
      steps[steps.count - 1] = .command(command, output: output + [line])
    case _: break
    }
  }

  /// `…` in the pattern matches any text; everything else matches literally.
  static func matches(_ text: String, _ pattern: String) -> Bool {
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

extension DocumentExample.Exchange {
  fileprivate mutating func add(_ line: String) {
    let text = line.dropFirst(2)
    let words = text.split(separator: " ", maxSplits: 1)
    let message = (String(words.first ?? ""), words.count > 1 ? String(words[1]) : "")
    switch line.first {
    case "#": event = String(text)
    case ">": sent.append(message)
    case "<": expected.append(message)
    case _: break
    }
  }

  /// - Parameter cause: triggers the event.
  func run(in fixture: Fixture, _ cause: (String) async throws -> Void = { _ in }) async throws {
    let observer = try fixture.observer
    // Without an event or a message to send, earlier messages count too.
    let mark = sent.isEmpty && event == nil ? 0 : observer.mark
    if let event { try await cause(event) }
    for (topic, payload) in sent { try await observer.publish(topic, payload) }
    for (topic, payload) in expected {
      do {
        _ = try await observer.message(topic, after: mark, within: Fixture.patience) {
          DocumentExample.matches($0.text, payload)
        }
      } catch {
        let others = observer.messages.dropFirst(mark).filter { $0.topic == topic }.map(\.text)
        throw Failure(
          "\(topic) \(payload)\nafter \(event ?? "")\(sent)\ncame: \(others.joined(separator: "\n"))")
      }
    }
  }
}
