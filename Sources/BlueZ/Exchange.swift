import DBus

/// Operations requested together, and their replies.
final class Exchange: @unchecked Sendable {
  // @unchecked: accessed by the central only, on the loop's thread.
  typealias Answer = Result<[DBusValue], CentralError>

  let characteristic: Characteristic
  private var answers: [Answer?]
  /// Whether the replies came in the order of the operations.
  private(set) var isInOrder = true
  /// Nil once called.
  private var done: (@Sendable (Exchange) -> Void)?

  /// - Parameter done: called once, when all operations are answered; those after a failed one fail with it.
  init(of count: Int, on characteristic: Characteristic, _ done: @escaping @Sendable (Exchange) -> Void) {
    self.characteristic = characteristic
    answers = Array(repeating: nil, count: count)
    self.done = done
  }

  var unansweredCount: Int { answers.count { $0 == nil } }

  /// Only valid when all operations are answered.
  subscript(index: Int) -> Answer { answers[index]! }

  /// Records a reply; ignored if the operation has already failed, with an earlier one or with the link.
  func answer(_ index: Int, _ answer: Answer) {
    guard answers[index] == nil else { return }
    if answers[..<index].contains(where: { $0 == nil }) { isInOrder = false }
    answers[index] = answer
    if case .failure(let error) = answer { fail(from: index + 1, error) } else { completeIfAnswered() }
  }

  /// The link or the characteristic has ended.
  func end(_ error: CentralError = .disconnected) { fail(from: 0, error) }

  /// Whether one failed with the error of operations whose link is ending.
  var hasUnlikelyError: Bool {
    answers.contains { if case .failure(.unlikely) = $0 { true } else { false } }
  }

  /// The unlikely errors were caused by the end of the link.
  func linkHasEnded() {
    for index in answers.indices {
      if case .failure(.unlikely) = answers[index] { answers[index] = .failure(.disconnected) }
    }
  }

  private func fail(from first: Int, _ error: CentralError) {
    for index in first..<answers.count where answers[index] == nil { answers[index] = .failure(error) }
    completeIfAnswered()
  }

  private func completeIfAnswered() {
    guard let done, !answers.contains(where: { $0 == nil }) else { return }
    self.done = nil
    done(self)
  }
}
