import DBus
import EventLoop

/// The link to a peripheral: the lock for its operations, those in progress, and its notifications.
final class Link: @unchecked Sendable {
  // @unchecked: accessed by the central only, on the loop's thread.

  /// One exchange at a time: bluetoothd answers `InProgress` to a second write to a characteristic.
  let mutex = AsyncMutex()
  private(set) var hasEnded = false
  /// Operations that bluetoothd has not answered, including those that timed out.
  private var unanswered = 0
  /// Runs while the peripheral changes its services.
  private var servicesTimer: LoopTimer?
  /// In progress. Weak: retained by its calls.
  private weak var exchange: Exchange?
  private let byteSignals: ByteSignals
  /// The characteristics whose signals are delivered.
  private var listening: Set<Characteristic> = []
  /// Those of them that bluetoothd has been asked to notify, and has agreed to.
  private var subscribed: Set<Characteristic> = []
  /// Calls of StopNotify that bluetoothd has not answered.
  var unsubscribing = 0

  /// - Parameter byteSignals: delivers values notified by signals.
  init(_ byteSignals: ByteSignals) { self.byteSignals = byteSignals }

  /// Whether an operation is unanswered.
  var hasUnanswered: Bool { unanswered > 0 }

  /// `exchange` is in progress; it fails if the link or the characteristic ends first.
  func begin(_ exchange: Exchange) {
    self.exchange = exchange
    unanswered += exchange.unansweredCount
  }

  /// An operation of an exchange is answered, or has timed out.
  func receive(_ answer: Exchange.Answer, to index: Int, of exchange: Exchange) {
    if case .failure(.timedOut) = answer {} else { unanswered -= 1 }
    exchange.answer(index, answer)
  }

  /// The services of the peripheral change.
  /// - Parameter timer: fires unless they change again.
  func servicesChanged(_ timer: LoopTimer) {
    servicesTimer?.cancel()
    servicesTimer = timer
  }

  /// Ends what depends on a removed characteristic: bluetoothd never answers an operation on one.
  func end(where isRemoved: (Characteristic) -> Bool) {
    if let exchange, isRemoved(exchange.characteristic) {
      unanswered -= exchange.unansweredCount
      exchange.end(.refused("the characteristic was removed"))
    }
    for characteristic in listening where isRemoved(characteristic) { stopListening(to: characteristic) }
  }

  /// Values of `characteristic` that arrive as signals are passed to `handler`.
  func listen(to characteristic: Characteristic, _ handler: @escaping ByteSignals.Handler) {
    guard !hasEnded else { return }
    listening.insert(characteristic)
    byteSignals.listen(to: characteristic.path, handler)
  }

  func stopListening(to characteristic: Characteristic) {
    subscribed.remove(characteristic)
    if listening.remove(characteristic) != nil { byteSignals.stopListening(to: characteristic.path) }
  }

  /// bluetoothd has answered StartNotify.
  func subscribed(to characteristic: Characteristic) {
    if listening.contains(characteristic) { subscribed.insert(characteristic) }
  }

  /// The characteristics to unsubscribe from. Values that are still signalled are delivered.
  func endNotifications() -> Set<Characteristic> {
    defer { subscribed.removeAll() }
    return subscribed
  }

  /// The link has ended: operations fail, and no values follow.
  func end() {
    hasEnded = true
    exchange?.end()
    for characteristic in listening { byteSignals.stopListening(to: characteristic.path) }
    listening.removeAll()
    subscribed.removeAll()
  }
}

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
