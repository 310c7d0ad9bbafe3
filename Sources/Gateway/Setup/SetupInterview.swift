import Configuration
import EventLoop

/// The dialogue of `init`: asks its questions in order, or takes their answers from the command line.
struct SetupInterview {
  private(set) var answers: SetupAnswers
  /// Whether nobody is there to answer: presets are used.
  let isUnattended: Bool
  /// Whether the broker is tried before the configuration is written.
  let triesBroker: Bool
  /// The name of the copy of the present file.
  let backup: String
  /// Shows a question, and waits for a line; nil: the input has ended.
  let reply: @LoopActor (SetupQuestion) async -> String?
  /// Whether programs block Bluetooth, and this process may end that.
  let isBlocked: @LoopActor () -> Bool
  /// Ends the blocking of Bluetooth.
  let unblock: @LoopActor () async -> Void
  /// Looks for micro:bits: those that were found, and why none can be.
  let scan: @LoopActor (SetupAnswers) async -> (found: [SetupDevice], problem: String?)
  /// Why the broker cannot be used; empty if it can.
  let tryBroker: @LoopActor (Configuration) async -> [String]

  /// - Returns: what is to be written; nil: nothing, as the user does not want it.
  @LoopActor mutating func plan() async throws(CommandFailure) -> SetupPlan? {
    repeat {
      if isBlocked() {
        try await ask([SetupQuestion.unblocking])
        if answers.isAgreed { await unblock() }
      }
      if answers.candidates == nil {
        let (found, problem) = await scan(answers)
        answers.setFound(found, problem)
      }
      try await ask([SetupQuestion.devices])
    } while answers.candidates == nil
    try await ask(SetupQuestion.microbits(answers.devices.count))
    try await ask(SetupQuestion.broker)
    let configuration = try answers.configuration()
    var trouble = triesBroker ? await tryBroker(configuration) : []
    while !trouble.isEmpty {
      try await ask([SetupQuestion.trouble(trouble)])
      if answers.reaction == "k" { break }
      if answers.reaction == "c" { try await ask(SetupQuestion.broker) }
      trouble = await tryBroker(try answers.configuration())
    }
    try await ask([SetupQuestion.page])
    let plan = answers.plan
    if plan.isEmpty { return plan }
    try await ask([SetupQuestion.confirmation(plan, backup: backup)])
    return answers.isAgreed ? plan : nil
  }

  /// Asks the questions in their order. An answer that cannot be used is asked for again, with the reason.
  @LoopActor mutating func ask(_ forms: [SetupQuestion.Form]) async throws(CommandFailure) {
    for form in forms {
      guard var question = form(answers) else { continue }
      let given = question.given ?? question.option.flatMap { answers.given[$0] }
      if let text = given ?? (isUnattended ? question.preset : nil) {
        do {
          try set(question, text)
        } catch {
          throw CommandFailure(.usage, "\(question.option.map { "\($0): " } ?? "")\(error)")
        }
        continue
      }
      if isUnattended { throw CommandFailure(.unavailable, question.failure) }
      while true {
        guard let line = await reply(question) else {
          throw CommandFailure(.refused, "\nThe input has ended: nothing was changed.")
        }
        do {
          try set(question, line)
          break
        } catch {
          question.lines = ["\(error)"]
        }
      }
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
