import EventLoop

/// The state machine of the connection to the broker. Pure: each input returns the actions to perform, in order; time
/// and random numbers are arguments.
struct BrokerLink {
  enum State: Equatable {
    /// The client has not been started. → dialling, stopped
    case idle
    /// The host name is being resolved, on a thread that cannot be interrupted. → handshaking, waiting, stopped
    case dialling
    /// There is a socket; TCP, TLS and the CONNACK are pending. → connected, waiting, stopped
    case handshaking
    /// The broker has accepted the connection. → waiting, draining, flushing, disconnecting
    case connected
    /// Acknowledgements are awaited before DISCONNECT: a broker that cannot send them to the closed socket publishes the will.
    /// → waiting, flushing, disconnecting
    case draining(for: Duration)
    /// The last attempt failed, the connection was lost, or it is paused. → dialling, stopped
    case waiting
    /// Stopping; messages are still queued. → disconnecting, stopped
    case flushing
    /// DISCONNECT is being sent; to be connected again after the delay, nil: stopping. → waiting, dialling, stopped
    case disconnecting(for: Duration?)
    /// Final.
    case stopped
  }

  enum Action: Equatable {
    /// Resolve the host name and begin to connect: `dialled` or `failed` follows.
    case dial
    /// Try whether the first broker accepts a connection: `probed` follows.
    case probe
    /// Call `timeout` after this delay; replaces an earlier timer.
    case setTimer(Duration)
    case cancelTimer
    /// The broker has accepted: subscribe and publish.
    case begin
    /// Close the connection without DISCONNECT, in whatever state it is.
    case drop
    /// Send DISCONNECT: `failed` follows when the connection is closed.
    case disconnect
    /// Report a failed attempt; `retryIn` is nil if the attempt continues.
    case reportFailure(MQTTError, retryIn: Duration?)
    case reportLoss(MQTTError, retryIn: Duration)
    /// Report that the connection was ended from this side.
    case reportEnd
    /// The state is `stopped`.
    case finish
  }

  /// How long the broker may take to close the connection after DISCONNECT.
  private static let disconnectTimeout = Duration.seconds(1)
  /// How long a connection must last to reset the back-off, and to end an outage.
  static let stableAfter = Duration.seconds(30)

  private(set) var state = State.idle
  /// Start of the current or last connection.
  private var connectedSince: Moment?
  /// Which broker is used, or tried.
  private(set) var choice: HostChoice
  private let connectTimeout: Duration
  private let probeInterval: Duration
  private var backOff: BackOff
  /// The back-off after errors that need a change of the configuration or of the broker.
  private var refusalBackOff: BackOff
  /// Asked to stop without a connection, while something is to be sent: how long that may take.
  private var stopLimit: Duration?
  var isStopping: Bool { stopLimit != nil }

  init(_ options: MQTTOptions) {
    choice = HostChoice(count: options.brokers.count, returnAfter: options.returnAfter)
    connectTimeout = options.connectTimeout
    probeInterval = options.probeInterval
    backOff = options.backOff
    refusalBackOff = options.refusalBackOff
  }

  /// Whether packets can be sent.
  var isUp: Bool { state == .connected || state == .flushing }

  mutating func start() -> [Action] {
    guard state == .idle else { return [] }
    return dial()
  }

  /// Whether an attempt is under way.
  var isTrying: Bool { state == .dialling || state == .handshaking }

  /// The attempt has failed at one address of the host, and begins anew at the next.
  mutating func triesNextAddress() -> [Action] {
    state = .dialling
    // The timer of `stop` keeps running.
    return isStopping ? [.drop, .dial] : [.drop] + dial()
  }

  mutating func dialled() -> [Action] {
    guard state == .dialling else { return [] }
    state = .handshaking
    // However long the look-up took, the broker gets its full time to answer.
    return isStopping ? [] : [.setTimer(connectTimeout)]
  }

  /// The broker has accepted the connection.
  mutating func accepted(at now: Moment) -> [Action] {
    guard state == .handshaking else { return [] }
    if isStopping {
      // The timer of `stop` keeps running.
      state = .flushing
      return [.begin]
    }
    state = .connected
    connectedSince = now
    return [choice.probesFirst ? .setTimer(probeInterval) : .cancelTimer, .begin]
  }

  /// The attempt has failed, or the connection has ended.
  mutating func failed(_ error: MQTTError, at now: Moment, jitter: Double) -> [Action] {
    switch state {
    case .dialling, .handshaking:
      if isStopping { return finish() }
      state = .waiting
      let delay = choice.failed() ? .zero : delay(after: error, jitter)
      return [.drop, .setTimer(delay), .reportFailure(error, retryIn: delay)]
    case .connected:
      if hasLasted(until: now, error) {
        backOff.reset()
        refusalBackOff.reset()
        choice.ended()
      } else {
        _ = choice.failed()
      }
      state = .waiting
      let delay = delay(after: error, jitter)
      return [.drop, .setTimer(delay), .reportLoss(error, retryIn: delay)]
    case .draining(let delay), .disconnecting(let delay?):
      return wait(for: delay)
    case .flushing, .disconnecting(nil):
      return finish()
    case .idle, .waiting, .stopped:
      return []
    }
  }

  /// The timer has fired; of an attempt with a socket, that is a failure.
  mutating func timeout(jitter: Double) -> [Action] {
    switch state {
    case .waiting:
      return dial()
    case .dialling:
      if isStopping { return finish() }
      // The thread cannot be interrupted, and a second one would be delayed in the same way.
      return [.reportFailure(.timedOut(.lookUp), retryIn: nil)]
    case .draining(let delay):
      return disconnect(for: delay)
    case .disconnecting(let delay?):
      return wait(for: delay)
    case .flushing, .disconnecting(nil):
      // DISCONNECT is not sent if messages are left, so that the broker publishes the will.
      return finish()
    case .connected:
      // Spread, so that the gateways of a broker do not all leave it at once.
      return [.setTimer(probeInterval * (0.75 + jitter / 2)), .probe]
    case .handshaking:
      return isStopping ? finish() : []
    case .idle, .stopped:
      return []
    }
  }

  /// Disconnects, and connects again after `delay`; `isInFlight`: there are messages that are not acknowledged.
  mutating func reconnect(after delay: Duration, isInFlight: Bool) -> [Action] {
    guard state == .connected else { return [] }
    guard isInFlight else { return disconnect(for: delay) }
    state = .draining(for: delay)
    return [.setTimer(Self.disconnectTimeout)]
  }

  private mutating func disconnect(for delay: Duration) -> [Action] {
    state = .disconnecting(for: delay)
    return [.setTimer(Self.disconnectTimeout), .disconnect]
  }

  private mutating func wait(for delay: Duration) -> [Action] {
    if let stopLimit { return [.drop, .reportEnd] + dial(within: stopLimit) }
    state = .waiting
    return [.drop, .setTimer(delay), .reportEnd]
  }

  /// The first broker has accepted a connection, or has not.
  mutating func probed(isWell: Bool, at now: Moment, isInFlight: Bool) -> [Action] {
    guard state == .connected, choice.probed(isWell: isWell, at: now) else { return [] }
    return reconnect(after: .zero, isInFlight: isInFlight)
  }

  /// Stops within `deadline`; `isWaiting`: something is to be sent, if only state: what the broker retains may be outdated.
  mutating func stop(isWaiting: Bool, deadline: Duration) -> [Action] {
    switch state {
    case .idle:
      return finish()
    case .waiting:
      guard isWaiting else { return finish() }
      stopLimit = deadline
      return dial(within: deadline)
    case .dialling, .handshaking:
      guard isWaiting else { return finish() }
      stopLimit = deadline
      return [.setTimer(deadline)]
    case .connected, .draining:
      if isWaiting {
        state = .flushing
        return [.setTimer(deadline)]
      }
      state = .disconnecting(for: nil)
      return [.setTimer(deadline), .disconnect]
    case .disconnecting(.some):
      if isWaiting {
        stopLimit = deadline
        return []
      }
      state = .disconnecting(for: nil)
      return [.setTimer(deadline)]
    case .flushing, .disconnecting(nil), .stopped:
      return []
    }
  }

  /// The queue is empty, and all is acknowledged.
  mutating func drained() -> [Action] {
    guard state == .flushing else { return [] }
    state = .disconnecting(for: nil)
    return [.disconnect]
  }

  /// All that was sent is acknowledged.
  mutating func acknowledged() -> [Action] {
    guard case .draining(let delay) = state else { return [] }
    return disconnect(for: delay)
  }

  /// Stops at once, without DISCONNECT.
  mutating func abandon() -> [Action] {
    state == .stopped ? [] : finish()
  }

  /// Whether the connection has lasted. One on which nothing is acknowledged ends only after a minute, and does not count.
  private func hasLasted(until now: Moment, _ error: MQTTError) -> Bool {
    if case .unacknowledged = error { return false }
    return connectedSince.map { $0.duration(to: now) >= Self.stableAfter } ?? false
  }

  private mutating func delay(after error: MQTTError, _ jitter: Double) -> Duration {
    error.needsChange ? refusalBackOff.next(chance: jitter) : backOff.next(chance: jitter)
  }

  private mutating func dial() -> [Action] { dial(within: connectTimeout) }

  private mutating func dial(within limit: Duration) -> [Action] {
    state = .dialling
    return [.setTimer(limit), .dial]
  }

  private mutating func finish() -> [Action] {
    state = .stopped
    return [.cancelTimer, .drop, .finish]
  }
}
