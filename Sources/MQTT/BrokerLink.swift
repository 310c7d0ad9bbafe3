import EventLoop

/// Whether there is a connection to the broker, and what to do about it. Pure: each input returns what its
/// owner shall do, in order, and time and chance are given to it.
struct BrokerLink {
  enum State: Equatable {
    /// Not begun. → dialling, stopped
    case idle
    /// The host name is being looked up, on a thread that cannot be interrupted; `isOverdue` once that has
    /// taken longer than an attempt may. → joining, waiting, stopped
    case dialling(isOverdue: Bool)
    /// A socket is there; TCP, TLS and the broker's answer to CONNECT are awaited. → connected, waiting,
    /// stopped
    case joining
    /// The broker has accepted. → waiting, withdrawing, flushing, leaving
    case connected
    /// DISCONNECT is on its way, for as long as it was asked. → waiting, leaving
    case withdrawing(for: Duration)
    /// The last attempt failed, or the connection broke; the back-off runs. → dialling, stopped
    case waiting
    /// Asked to stop, while messages still wait for the broker. → leaving, stopped
    case flushing
    /// DISCONNECT is on its way. → stopped
    case leaving
    /// For ever.
    case stopped
  }

  enum Action: Equatable {
    /// Look the host name up and begin to connect: `dialled` or `failed` follows.
    case dial
    /// Call `timeout` after this; replaces the timer before.
    case setTimer(Duration)
    case cancelTimer
    /// The broker is there: begin the session.
    case begin
    /// Give the connection up, whatever its state, as a crash would.
    case drop
    /// Say DISCONNECT: `failed` follows when the connection is closed.
    case sayGoodBye
    /// Tell the owner.
    case reportFailure(MQTTError, retryIn: Duration)
    case reportLoss(MQTTError, retryIn: Duration)
    case reportOverdue(MQTTError)
    /// Everything is over.
    case finish
  }

  /// How long the broker may take to close a connection that it is asked to close.
  private static let goodBye = Duration.seconds(1)
  /// How long a connection must last before its loss is met with the shortest wait again.
  private static let stableAfter = Duration.seconds(30)

  private(set) var state = State.idle
  /// Since when it is, or was last, connected.
  private var connectedSince: Moment?
  private let connectTimeout: Duration
  private var backOff: BackOff
  /// After an answer that only somebody's hand can change.
  private var refusalBackOff: BackOff
  /// Asked to stop while an attempt is under way that messages wait for.
  private var isStopping = false

  init(connectTimeout: Duration, backOff: BackOff, refusalBackOff: BackOff) {
    self.connectTimeout = connectTimeout
    self.backOff = backOff
    self.refusalBackOff = refusalBackOff
  }

  /// Whether there is a broker that may be told something.
  var isUp: Bool { state == .connected || isFlushing }

  /// Whether the connection lasts only until all is said.
  var isFlushing: Bool { state == .flushing }

  mutating func start() -> [Action] {
    guard state == .idle else { return [] }
    return dial()
  }

  /// There is a socket.
  mutating func dialled() -> [Action] {
    guard case .dialling(let isOverdue) = state else { return [] }
    state = .joining
    // Late, but there: the broker now gets its full time to answer.
    return isOverdue && !isStopping ? [.setTimer(connectTimeout)] : []
  }

  /// The broker has accepted.
  mutating func accepted(at now: Moment) -> [Action] {
    guard state == .joining else { return [] }
    if isStopping {
      // The timer of the stop goes on.
      state = .flushing
      return [.begin]
    }
    state = .connected
    connectedSince = now
    return [.cancelTimer, .begin]
  }

  /// The attempt has failed, or the connection is gone.
  mutating func failed(
    _ error: MQTTError, at now: Moment, jitter: Double
  ) -> [Action] {
    switch state {
    case .dialling, .joining:
      if isStopping { return finish() }
      state = .waiting
      let delay = delay(after: error, jitter)
      return [.drop, .setTimer(delay), .reportFailure(error, retryIn: delay)]
    case .connected:
      if let since = connectedSince, since.duration(to: now) >= Self.stableAfter {
        backOff.reset()
        refusalBackOff.reset()
      }
      state = .waiting
      let delay = delay(after: error, jitter)
      return [.drop, .setTimer(delay), .reportLoss(error, retryIn: delay)]
    case .withdrawing(let delay):
      state = .waiting
      return [.drop, .setTimer(delay)]
    case .flushing, .leaving:
      return finish()
    case .idle, .waiting, .stopped:
      return []
    }
  }

  /// The timer is up. `phase` is how far an attempt has come.
  mutating func timeout(
    in phase: MQTTError.Phase, at now: Moment, jitter: Double
  ) -> [Action] {
    switch state {
    case .waiting:
      return dial()
    case .dialling:
      if isStopping { return finish() }
      // Its thread cannot be called back, and one more would only wait beside it.
      state = .dialling(isOverdue: true)
      return [.reportOverdue(.timedOut(.lookUp))]
    case .joining, .withdrawing:
      return failed(.timedOut(phase), at: now, jitter: jitter)
    case .flushing, .leaving:
      // Without a good-bye where not all is said: the will says then that the client is gone.
      return finish()
    case .idle, .connected, .stopped:
      return []
    }
  }

  /// Leaves the broker in peace for `delay`, with a good-bye, and connects again after that.
  mutating func withdraw(for delay: Duration) -> [Action] {
    guard state == .connected else { return [] }
    state = .withdrawing(for: delay)
    return [.setTimer(Self.goodBye), .sayGoodBye]
  }

  /// Ends it within `deadline`; `isWaiting` when there is something left to say.
  mutating func stop(isWaiting: Bool, deadline: Duration) -> [Action] {
    switch state {
    case .idle, .waiting:
      return finish()
    case .dialling, .joining:
      guard isWaiting else { return finish() }
      isStopping = true
      return [.setTimer(deadline)]
    case .connected:
      if isWaiting {
        state = .flushing
        return [.setTimer(deadline)]
      }
      state = .leaving
      return [.setTimer(deadline), .sayGoodBye]
    case .withdrawing:
      state = .leaving
      return [.setTimer(deadline)]
    case .flushing, .leaving, .stopped:
      return []
    }
  }

  /// Nothing is left to say.
  mutating func drained() -> [Action] {
    guard state == .flushing else { return [] }
    state = .leaving
    return [.sayGoodBye]
  }

  /// Ends it at once, as a crash would.
  mutating func abandon() -> [Action] {
    state == .stopped ? [] : finish()
  }

  private mutating func delay(after error: MQTTError, _ jitter: Double) -> Duration {
    switch error.remedy {
    case .retry: backOff.next(chance: jitter)
    case .refused, .configuration: refusalBackOff.next(chance: jitter)
    }
  }

  private mutating func dial() -> [Action] {
    state = .dialling(isOverdue: false)
    return [.setTimer(connectTimeout), .dial]
  }

  private mutating func finish() -> [Action] {
    state = .stopped
    return [.cancelTimer, .drop, .finish]
  }
}
