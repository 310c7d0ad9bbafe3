import JSON

/// A question of `init`: what is shown, what an empty line stands for, and what an answer sets.
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
  /// The answer by the command line; nil: that of ``option``, if it is given.
  var given: String?
  /// What is said if nobody is there to answer.
  var failure = ""
  /// Throws why an answer cannot be used.
  let set: (inout SetupAnswers, String) throws -> Void

  /// The text as shown; its last line is like `Port [1883]: `.
  var text: String {
    lines.map { $0 + "\n" }.joined() + prompt
      + (preset.map { $0.isEmpty ? ": " : " [\(Excerpt.harmless($0))]: " } ?? ": ")
  }

  /// A question that is answered by y or n.
  static func yesOrNo(
    _ prompt: String, _ lines: [String] = [], preset: Bool, option: String? = nil,
    _ set: @escaping (inout SetupAnswers, Bool) throws -> Void
  ) -> SetupQuestion {
    SetupQuestion(prompt: "\(prompt) (y/n)", lines: lines, preset: preset ? "y" : "n", option: option) {
      switch $1.lowercased() {
      case "y", "yes": try set(&$0, true)
      case "n", "no": try set(&$0, false)
      default: throw SetupRefusal("Please answer y (yes) or n (no).")
      }
    }
  }
}

/// Why an answer cannot be used.
struct SetupRefusal: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}
