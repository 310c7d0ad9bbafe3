/// Whether this gateway may speak under its id: another one of that id would write the same topics.
///
/// A pure machine, begun anew with each connection to the broker. It asks on the gateway's own request topic, to
/// which it has subscribed: when its question has come round, everything that the broker retains has come before
/// it; and a gateway of the same id that lives answers it.
struct Claim {
  enum State: Equatable, Sendable {
    /// No connection → listening.
    case away
    /// The question is on its way; what the broker retains comes first → asking, held, refused.
    case listening
    /// The broker says that a gateway of this id is online, and it is not this run of this one. It has been asked:
    /// its answer → refused; silence → held.
    case asking
    /// It is this gateway's → refused.
    case held
    /// It is another's. The connection is given up, and tried again later → away.
    case refused
  }

  enum Action: Equatable, Sendable {
    /// Put the question: ``Claim/cameRound()`` or ``Claim/answered()`` follows, or after a while ``Claim/timeout()``.
    case ask
    /// What is to be said may be said.
    case admit
    /// Tell the user that another gateway has the id: once, until this one has had it.
    case complain
    /// Leave the broker for this long: another gateway has the id.
    case withdraw(Duration)
    /// The broker was told that the gateway is gone, by a will that came late: tell it better.
    case sayOnline
    /// Another gateway has written what only this one may: say it again.
    case sayInfo
  }

  private static let retreat = Duration.seconds(10)

  private(set) var state = State.away
  private let run: String
  private let started: String
  private var isSomebodyOnline = false
  private var lastRun: String?
  private var hasComplained = false

  /// - Parameter started: in RFC 3339, UTC with milliseconds, which sort as they follow one another.
  init(run: String, started: String) {
    self.run = run
    self.started = started
  }

  mutating func connected() -> [Action] {
    state = .listening
    isSomebodyOnline = false
    lastRun = nil
    return [.ask]
  }

  mutating func disconnected() { state = .away }

  /// The state under this id, from the broker.
  mutating func heard(isOnline: Bool) -> [Action] {
    switch state {
    case .listening:
      isSomebodyOnline = isOnline
      return []
    case .held:
      return isOnline ? [] : [.sayOnline]
    case .away, .asking, .refused:
      return []
    }
  }

  /// The info under this id, from the broker: of which run, and when that began.
  mutating func heard(run: String, started: String) -> [Action] {
    switch state {
    case .listening:
      lastRun = run
      return []
    case .held:
      if run == self.run { return [] }
      // Of two that began to speak at the same time the older one stays.
      return (started, run) < (self.started, self.run) ? refuse() : [.sayInfo]
    case .away, .asking, .refused:
      return []
    }
  }

  /// The question has come round.
  mutating func cameRound() -> [Action] {
    guard state == .listening else { return [] }
    if isSomebodyOnline, lastRun != run {
      state = .asking
      return []
    }
    return hold()
  }

  /// The question was answered by another run.
  mutating func answered() -> [Action] {
    switch state {
    case .listening, .asking: refuse()
    case .away, .held, .refused: []
    }
  }

  /// Nobody has answered.
  mutating func timeout() -> [Action] {
    switch state {
    case .listening, .asking: hold()
    case .away, .held, .refused: []
    }
  }

  private mutating func hold() -> [Action] {
    state = .held
    hasComplained = false
    return [.admit]
  }

  private mutating func refuse() -> [Action] {
    state = .refused
    defer { hasComplained = true }
    return hasComplained ? [.withdraw(Self.retreat)] : [.complain, .withdraw(Self.retreat)]
  }
}
