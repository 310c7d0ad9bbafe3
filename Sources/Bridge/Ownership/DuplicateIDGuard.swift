/// Whether this gateway may publish under its id: another one with that id would write the same topics.
///
/// A pure machine, restarted with each connection to the broker. It sends a request on the gateway's own request topic,
/// to which it has subscribed: when that barrier arrives, everything that the broker retains has arrived before it; and
/// another gateway with the same id answers it.
struct DuplicateIDGuard {
  enum State: Equatable, Sendable {
    /// → waiting.
    case disconnected
    /// The barrier is on its way; what the broker retains arrives first → asking, admitted, refused.
    case waiting
    /// Another run of this id seems to be online. It has been asked: its answer → refused; no answer → admitted.
    case asking
    /// The id is this gateway's → refused.
    case admitted
    /// The id is another's. The gateway disconnects, and tries again later → disconnected.
    case refused
  }

  enum Action: Equatable, Sendable {
    /// Send the barrier: ``DuplicateIDGuard/barrierArrived()`` or ``DuplicateIDGuard/answered()`` follows, or after some
    /// seconds ``DuplicateIDGuard/timeout()``.
    case sendBarrier
    /// Publish, and subscribe to commands.
    case admit
    /// Log that another gateway has the id: once, until this one has been admitted.
    case reportConflict
    /// Disconnect for this long.
    case withdraw(Duration)
    /// A late will has set the state to `offline`.
    case republishOnline
    /// Another gateway has written this one's info.
    case republishInfo
  }

  private static let retreat = Duration.seconds(10)

  private(set) var state = State.disconnected
  private let run: String
  private let started: String
  private var isAnotherOnline = false
  private var lastRun: String?
  private var isReported = false

  /// - Parameter started: in RFC 3339, UTC with milliseconds, which sort as they follow one another.
  init(run: String, started: String) {
    self.run = run
    self.started = started
  }

  mutating func connected() -> [Action] {
    state = .waiting
    isAnotherOnline = false
    lastRun = nil
    return [.sendBarrier]
  }

  mutating func disconnected() { state = .disconnected }

  /// The state under this id, from the broker.
  mutating func received(isOnline: Bool) -> [Action] {
    switch state {
    case .waiting:
      isAnotherOnline = isOnline
      return []
    case .admitted:
      return isOnline ? [] : [.republishOnline]
    case .disconnected, .asking, .refused:
      return []
    }
  }

  /// The info under this id, from the broker: of which run, and when that began.
  mutating func received(run: String, started: String) -> [Action] {
    switch state {
    case .waiting:
      lastRun = run
      return []
    case .admitted:
      if run == self.run { return [] }
      // Of two that began to speak at the same time the older one stays.
      return (started, run) < (self.started, self.run) ? refuse() : [.republishInfo]
    case .disconnected, .asking, .refused:
      return []
    }
  }

  /// The question has come round.
  mutating func barrierArrived() -> [Action] {
    guard state == .waiting else { return [] }
    if isAnotherOnline, lastRun != run {
      state = .asking
      return []
    }
    return admit()
  }

  /// The question was answered by another run.
  mutating func answered() -> [Action] {
    switch state {
    case .waiting, .asking: refuse()
    case .disconnected, .admitted, .refused: []
    }
  }

  /// Nobody has answered.
  mutating func timeout() -> [Action] {
    switch state {
    case .waiting, .asking: admit()
    case .disconnected, .admitted, .refused: []
    }
  }

  private mutating func admit() -> [Action] {
    state = .admitted
    isReported = false
    return [.admit]
  }

  private mutating func refuse() -> [Action] {
    state = .refused
    defer { isReported = true }
    return isReported ? [.withdraw(Self.retreat)] : [.reportConflict, .withdraw(Self.retreat)]
  }
}
