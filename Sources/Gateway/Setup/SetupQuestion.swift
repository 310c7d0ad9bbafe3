import JSON

/// A question of set-up: what is shown, what an empty line stands for, and what an answer sets.
struct SetupQuestion {
  let prompt: String
  /// What is shown before the question.
  var lines: [String] = []
  /// The answer that an empty line stands for; nil: a person has to answer.
  var preset: String?
  /// Whether the answer is not shown while it is typed.
  var isSecret = false
  /// The option of the command line that answers the question.
  var option: String?
  /// Throws why an answer cannot be used.
  let set: (inout SetupAnswers, String) throws -> Void

  /// The text as shown; its last line is like `Port [1883]: `.
  var text: String {
    lines.map { $0 + "\n" }.joined() + prompt
      + (preset.map { $0.isEmpty ? ": " : " [\(Excerpt.harmless($0))]: " } ?? ": ")
  }

  /// A question that is answered by one of a few words, or by the beginning of one alone.
  static func choice<Choice: RawRepresentable & CaseIterable>(
    _ prompt: String, _ lines: [String], _ preset: Choice?, option: String? = nil,
    _ set: @escaping (inout SetupAnswers, Choice) throws -> Void
  ) -> SetupQuestion where Choice.RawValue == String {
    let words = Choice.allCases.map(\.rawValue).joined(separator: " / ")
    return SetupQuestion(
      prompt: "\(prompt) (\(words))", lines: lines, preset: preset?.rawValue, option: option
    ) {
      let word = $1.lowercased()
      let fitting = Choice.allCases.filter { $0.rawValue.hasPrefix(word) }
      guard let choice = fitting.first, fitting.count == 1 else {
        throw SetupRefusal("Please answer one of: \(words).")
      }
      try set(&$0, choice)
    }
  }
}

enum SetupConsent: String, CaseIterable {
  case yes, no
}

/// Why an answer cannot be used.
struct SetupRefusal: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}
