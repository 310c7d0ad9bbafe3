import Configuration
import EventLoop
import JSON

/// The dialogue of `init`: asks its questions in order, or takes their answers from the command line.
struct SetupInterview {
  private(set) var answers: SetupAnswers
  /// The answers by the command line, by its options.
  var given: [String: String]
  /// Whether nobody is there to answer: presets are used.
  let isUnattended: Bool
  /// Whether the broker is tried before the configuration is written.
  let triesBroker: Bool
  /// Shows a question, and waits for a line; nil: the input has ended.
  let reply: @LoopActor (SetupQuestion) async -> String?
  /// Why the broker cannot be used; empty if it can.
  let tryBroker: @LoopActor (Configuration) async -> [String]

  /// What to do as the broker cannot be used.
  private enum Reaction: String, CaseIterable {
    case again, change, keep
  }

  /// - Returns: what is to be written.
  @LoopActor mutating func plan() async throws(CommandFailure) -> SetupPlan {
    try takeIdentity()
    try await askForPage()
    try await askForBroker()
    var trouble = triesBroker ? await tryBroker(try answers.configuration()) : []
    while !trouble.isEmpty {
      if isUnattended {
        throw CommandFailure(
          .unavailable,
          trouble.joined(separator: "\n")
            + "\nNothing was changed. --no-test writes the configuration without this test.")
      }
      switch try await choose("What now?", trouble, Reaction.again) {
      case .keep: trouble = []
      case .change:
        // The options of the broker are asked for.
        given = given.filter { ["--all", "--area"].contains($0.key) }
        try await askForBroker()
        fallthrough
      case .again: trouble = await tryBroker(try answers.configuration())
      }
    }
    try await askForMicrobits()
    _ = try answers.configuration()
    return answers.plan
  }

  /// Asks for one of a few words.
  @LoopActor mutating func choose<Choice: RawRepresentable & CaseIterable>(
    _ prompt: String, _ lines: [String], _ preset: Choice
  ) async throws(CommandFailure) -> Choice where Choice.RawValue == String {
    var chosen = preset
    try await ask(.choice(prompt, lines, preset) { chosen = $1 })
    return chosen
  }

  /// Asks the question, unless an option answers it. An answer that cannot be used is asked for again, with the reason.
  @LoopActor mutating func ask(_ question: SetupQuestion) async throws(CommandFailure) {
    if let text = question.option.flatMap({ given[$0] }) ?? (isUnattended ? question.preset : nil) {
      return try take(text, question)
    }
    if isUnattended {
      throw CommandFailure(.usage, "\(question.option ?? question.prompt) is needed with --yes")
    }
    var question = question
    while let line = await reply(question) {
      do {
        return try set(question, line)
      } catch {
        question.lines = ["\(error)"]
      }
    }
    throw CommandFailure(.refused, "\nThe input has ended: nothing was changed.")
  }

  /// Sets what is not asked for, if the option is given.
  mutating func take(
    _ option: String, _ set: @escaping (inout SetupAnswers, String) throws -> Void
  ) throws(CommandFailure) {
    guard let text = given[option] else { return }
    try take(text, SetupQuestion(prompt: "", option: option, set: set))
  }

  private mutating func take(_ text: String, _ question: SetupQuestion) throws(CommandFailure) {
    do {
      try set(question, text)
    } catch {
      throw CommandFailure(.usage, "\(question.option.map { "\($0): " } ?? "")\(error)")
    }
  }

  private mutating func set(_ question: SetupQuestion, _ text: String) throws {
    var answer = text
    if !question.isSecret {
      answer = String(answer.drop(while: \.isWhitespace))
      while answer.last?.isWhitespace == true { answer.removeLast() }
    }
    try question.set(&answers, answer.isEmpty ? question.preset ?? "" : answer)
  }
}
