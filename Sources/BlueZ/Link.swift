import DBus
import EventLoop

/// The link to a peripheral: the lock for its operations, those in progress, and its notifications.
@LoopActor final class Link {
  /// Admits one exchange at a time: bluetoothd answers `InProgress` to a second write to a characteristic.
  let mutex = AsyncMutex()
  private(set) var hasEnded = false
  /// Operations that bluetoothd has not answered, including those that timed out.
  fileprivate var unanswered = 0
  /// Runs while the peripheral changes its services.
  var servicesTimer = DeadlineTimer()
  /// The exchange in progress. Weak: retained by its calls.
  private weak var exchange: Exchange?
  private let byteSignals: ByteSignals
  /// The characteristics whose signals are delivered.
  private var listening: Set<Characteristic> = []
  /// The characteristics that bluetoothd has been asked to notify, and has agreed to.
  private var subscribed: Set<Characteristic> = []
  /// Calls of StopNotify that bluetoothd has not answered.
  var unsubscribing = 0

  init(_ byteSignals: ByteSignals) { self.byteSignals = byteSignals }

  var hasUnanswered: Bool { unanswered > 0 }

  /// `exchange` is in progress; it fails if the link or the characteristic ends first.
  func begin(_ exchange: Exchange) {
    self.exchange = exchange
    unanswered += exchange.unanswered
  }

  /// Ends what depends on a removed characteristic: bluetoothd may never answer an operation on one.
  func end(where isRemoved: (Characteristic) -> Bool) {
    if let exchange, isRemoved(exchange.characteristic) {
      unanswered -= exchange.unanswered
      exchange.unanswered = 0
      exchange.end(.characteristicRemoved)
    }
    for characteristic in listening.union(subscribed) where isRemoved(characteristic) {
      stopListening(to: characteristic)
    }
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

  /// Whether bluetoothd notifies the characteristic, perhaps since an answer that came after its time-out.
  func isSubscribed(to characteristic: Characteristic) -> Bool { subscribed.contains(characteristic) }

  /// bluetoothd has answered StartNotify.
  func subscribed(to characteristic: Characteristic) { subscribed.insert(characteristic) }

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
@LoopActor final class Exchange {
  typealias Answer = Result<[DBusValue], CentralError>

  let characteristic: Characteristic
  private let link: Link
  /// How many of the operations are counted in the link's ``Link/unanswered``.
  fileprivate var unanswered: Int
  private var answers: [Answer?]
  /// Whether the replies came in the order of the operations.
  private(set) var isInOrder = true
  /// The completion handler; nil once called.
  private var done: (@LoopActor (Exchange) -> Void)?

  /// - Parameter done: called once, when all operations are answered; those after a failed one fail with it.
  init(
    of count: Int, on characteristic: Characteristic, over link: Link,
    _ done: @escaping @LoopActor (Exchange) -> Void
  ) {
    self.characteristic = characteristic
    self.link = link
    unanswered = count
    answers = Array(repeating: nil, count: count)
    self.done = done
  }

  /// The answer to an operation; only valid when all operations are answered.
  subscript(index: Int) -> Answer { answers[index]! }

  /// Records a reply; ignored if the operation has already failed, with an earlier one or with the link.
  func answer(_ index: Int, _ answer: Answer) {
    // What has timed out may be answered later.
    if case .failure(.timedOut) = answer {
    } else if unanswered > 0 {
      unanswered -= 1
      link.unanswered -= 1
    }
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
