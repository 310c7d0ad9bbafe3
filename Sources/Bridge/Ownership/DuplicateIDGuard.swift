import Log

/// Whether this gateway may publish under its id: another gateway with that id would write the same topics.
///
/// A pure machine, restarted with each connection to the broker. It sends a request on the gateway's own request topic,
/// to which it has subscribed. When that barrier arrives, all retained messages have arrived before it; and another
/// gateway with the same id answers it.
struct DuplicateIDGuard {
  enum State: Equatable, Sendable {
    /// → waiting.
    case disconnected
    /// The barrier is sent; retained messages arrive before it → asking, admitted, refused.
    case waiting
    /// Another run of this id seems to be online: its answer → refused; no answer → admitted.
    case asking
    /// The id is this gateway's → confirming.
    case admitted
    /// Admitted, but an older run of this id has published its info, or a bridge between brokers has brought an old one: the
    /// answer of that run → refused; no answer → admitted.
    case confirming
    /// Another gateway has the id. This one disconnects, and tries again later → disconnected.
    case refused
  }

  enum Action: Equatable, Sendable {
    /// Send another barrier, with the same consequences as that of ``DuplicateIDGuard/connected()``.
    case ask
    /// Publish, and subscribe to commands.
    case admit
    /// Log that another gateway has the id; once, until this one is admitted.
    case reportConflict
    /// Disconnect, and connect again after this time.
    case reconnect(after: Duration)
    /// A late will has set the state to `offline`.
    case republishOnline
    /// Another run has written this one's info.
    case republishInfo
    /// Log that an older run publishes under the id, and does not answer; once.
    case reportSilent
  }

  private static let retryDelay = Duration.seconds(10)

  private(set) var state = State.disconnected
  var isAdmitted: Bool { state == .admitted || state == .confirming }
  /// Whether an answer of another run counts.
  var awaitsAnswer: Bool { [.waiting, .asking, .confirming].contains(state) }
  private let run: String
  var started: Timestamp
  private var isAnotherOnline = false
  private var lastRun: String?
  /// The last older run that was asked. What it and older ones publish is not replaced at once: it would not end if their requests
  /// do not get here, but their infos do.
  private var asked: (started: Timestamp, run: String)?
  private var isSilentReported = false
  /// Whether another gateway has had the id, and this one was not admitted since.
  private(set) var hasConflict = false

  init(run: String, started: Timestamp) {
    self.run = run
    self.started = started
  }

  /// There is a connection, on which the owner sends a barrier: ``barrierArrived()`` or ``answered()`` follows, or after some
  /// seconds ``timeout()``.
  mutating func connected() {
    state = .waiting
    isAnotherOnline = false
    (lastRun, asked) = (nil, nil)
  }

  mutating func disconnected() { state = .disconnected }

  /// The `state` of this id has arrived.
  mutating func received(isOnline: Bool) -> [Action] {
    switch state {
    case .waiting:
      isAnotherOnline = isOnline
      return []
    case .admitted, .confirming:
      return isOnline ? [] : [.republishOnline]
    case .disconnected, .asking, .refused:
      return []
    }
  }

  /// The `info` of this id has arrived.
  mutating func received(run: String, started: Timestamp) -> [Action] {
    switch state {
    case .waiting:
      lastRun = run
      return []
    case .admitted, .confirming:
      if run == self.run { return [] }
      // If two gateways were admitted at the same time, the older one stays.
      guard (started, run) < (self.started, self.run) else { return [.republishInfo] }
      guard state == .admitted else { return [] }
      if let asked, (started, run) <= asked {
        defer { isSilentReported = true }
        return isSilentReported ? [] : [.reportSilent]
      }
      state = .confirming
      asked = (started, run)
      return [.ask, .republishInfo]
    case .disconnected, .asking, .refused:
      return []
    }
  }

  mutating func barrierArrived() -> [Action] {
    guard state == .waiting else { return [] }
    if isAnotherOnline, lastRun != run {
      state = .asking
      return []
    }
    return admit()
  }

  /// Another run has answered the barrier.
  mutating func answered() -> [Action] { awaitsAnswer ? refuse() : [] }

  /// Neither the barrier nor an answer has arrived in time.
  mutating func timeout() -> [Action] {
    switch state {
    case .waiting, .asking: return admit()
    case .confirming: state = .admitted
    case .disconnected, .admitted, .refused: break
    }
    return []
  }

  private mutating func admit() -> [Action] {
    state = .admitted
    hasConflict = false
    return [.admit]
  }

  private mutating func refuse() -> [Action] {
    state = .refused
    defer { hasConflict = true }
    return (hasConflict ? [] : [.reportConflict]) + [.reconnect(after: Self.retryDelay)]
  }
}
