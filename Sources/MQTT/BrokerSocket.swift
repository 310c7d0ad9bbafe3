import EventLoop
import Glibc

/// Drives a ``MosquittoHandle`` from the loop: reads and writes when the socket is ready, and calls libmosquitto
/// periodically for its pings.
@LoopActor final class BrokerSocket {
  /// The progress of the attempt; nil once the broker has accepted.
  private(set) var phase: MQTTError.Phase? = .connect
  let handle: MosquittoHandle
  private let usesTLS: Bool
  private let version: MQTTOptions.ProtocolVersion
  private var keepAlive: Duration
  /// Since when the broker is silent, if it has asked for a longer keep-alive than ours, or for none: libmosquitto then pings
  /// too late, or never.
  private var silentSince: Moment?
  /// When the broker was pinged, since when it is silent.
  private var pinged: Moment?
  private let activity: @LoopActor (BrokerSocket, MQTTError?) -> Void
  private var watch: Watch?
  private var ticker: LoopTimer?
  /// A call has failed, which `activity` is about to report.
  private(set) var hasFailed = false
  /// The CONNACK has been received in part.
  private var awaitsRest = false
  /// More packets are queued: call `activity` when the socket is writable, in the next iteration of the loop at the
  /// earliest.
  var hasMore = false

  /// - Parameter activity: called when there may be events, or the connection has ended: with an error, or
  ///   with ``isOpen`` being false.
  init(
    _ handle: MosquittoHandle, _ options: MQTTOptions,
    activity: @escaping @LoopActor (BrokerSocket, MQTTError?) -> Void
  ) {
    self.handle = handle
    usesTLS = options.tls != nil
    version = options.protocolVersion
    keepAlive = options.keepAlive
    self.activity = activity
  }

  func start() {
    watch = loop.watch(handle.socket, for: [.readable, .writable]) { [weak self] in self?.ready($0) }
    scheduleTick()
  }

  /// Stops driving the handle. The socket is closed with the last reference to the handle.
  func close() {
    watch?.cancel()
    watch = nil
    ticker?.cancel()
  }

  var isOpen: Bool { handle.socket >= 0 }

  /// While corked, packets are combined into full segments: each segment costs a system call and wakes the broker.
  func setCork(_ isCorked: Bool) {
    var flag: Int32 = isCorked ? 1 : 0
    // Fails harmlessly on a closed socket.
    setsockopt(handle.socket, Int32(IPPROTO_TCP), TCP_CORK, &flag, socklen_t(MemoryLayout<Int32>.size))
  }

  func accepted(_ connection: MQTTConnection) {
    phase = nil
    if let asked = connection.serverKeepAlive {
      if asked > .zero, asked <= keepAlive { keepAlive = asked } else { silentSince = .now }
    }
    handle.accepted()
  }

  func subscribe(_ request: Subscriptions.Request) throws(MQTTError) -> Int32 {
    // libmosquitto would send the options with 3.1.1 too, where the bits are reserved (3.8.3).
    try handle.subscribe(
      request.filters, version == .v5 ? request.options : request.options.intersection(.atMostOnce))
  }

  /// Sends DISCONNECT; `activity` is called when the connection is closed.
  func disconnect() {
    handle.disconnect()
    if isOpen { updateInterest() } else { fail(.connectionLost(reason: "closed here")) }
  }

  /// Ends the connection after a failed call. `activity` is called in a later iteration of the loop, so that the
  /// caller's state does not change during the call.
  func fail(_ error: MQTTError) {
    guard !hasFailed else { return }
    hasFailed = true
    close()
    loop.timer(after: .zero) { self.activity(self, error) }
  }

  /// Must be called after sending: data that the socket did not accept is written when it is writable.
  func updateInterest() {
    guard let watch, isOpen else { return }
    // During a handshake libmosquitto reports that it wants to write while it waits for the other end, which would make
    // the loop spin. Handshake data is written after each read.
    let writes = phase == .connect || (phase != .tls && (hasMore || handle.wantsWrite))
    var interest: Readiness = awaitsRest ? [] : .readable
    if writes { interest.insert(.writable) }
    watch.interest = interest
  }

  private func ready(_ readiness: Readiness) {
    guard watch != nil else { return }
    hasMore = false
    attempt { () throws(MQTTError) in try proceed(readiness) }
  }

  /// Runs `body`, and reports the activity.
  private func attempt(_ body: () throws(MQTTError) -> Void) {
    var failure: MQTTError?
    do throws(MQTTError) { try body() } catch { failure = error }
    // The descriptor may be closed: stop watching before its number is reused.
    if failure != nil || !isOpen { close() } else { updateInterest() }
    activity(self, failure)
  }

  private func proceed(_ readiness: Readiness) throws(MQTTError) {
    if phase == .connect {
      let error = handle.takeSocketError()
      // A reset implies that the connection had been established.
      if error == ECONNRESET {
        throw usesTLS ? .tlsClosed : .connectionLost(reason: text(ofErrno: error))
      }
      guard error == 0 else { throw .unreachable(reason: text(ofErrno: error), errno: error) }
      phase = usesTLS ? .tls : .connack
    }
    let isClosed = !readiness.isDisjoint(with: .closed)
    let isTLSHandshake = phase == .tls
    if isTLSHandshake || isClosed || readiness.contains(.readable), try mayRead() {
      try handle.read()
      if silentSince != nil { (silentSince, pinged) = (.now, nil) }
    }
    if isOpen, isTLSHandshake || readiness.contains(.writable) { try handle.write() }
    // 2.0.11 does not notice when the connection is closed during the TLS handshake.
    if isOpen, isClosed, phase != nil {
      throw isTLSHandshake ? .tlsClosed : .closed
    }
  }

  /// Whether libmosquitto may read. Without TLS: before the broker has accepted, only a valid CONNACK.
  private func mayRead() throws(MQTTError) -> Bool {
    guard phase == .connack else { return true }
    let bytes = handle.peek(ConnackCheck.mostBytes)
    if bytes.isEmpty { return true }
    switch ConnackCheck(bytes, version) {
    case .valid:
      return true
    case .olderProtocol:
      throw .unsupportedProtocol
    case .incomplete:
      // Rare; checked again by the next tick.
      awaitsRest = true
      return false
    case .invalid(let reason):
      throw .protocolViolation(reason: reason)
    }
  }

  private func scheduleTick() {
    // Rarely while connected, as each tick may wake up the processor.
    ticker = loop.timer(after: phase == nil ? max(.seconds(1), keepAlive / 10) : .seconds(1)) { [weak self] in
      self?.tick()
    }
  }

  private func tick() {
    guard watch != nil else { return }
    scheduleTick()
    attempt { () throws(MQTTError) in
      if phase == .tls { try proceed([]) }
      if awaitsRest {
        awaitsRest = false
        try proceed(.readable)
      }
      if isOpen { try handle.tick() }
      if isOpen, let silentSince { try ping(since: silentSince, at: .now) }
    }
  }

  private func ping(since silentSince: Moment, at now: Moment) throws(MQTTError) {
    if let pinged {
      if pinged.duration(to: now) > keepAlive { throw .keepAliveTimedOut }
    } else if silentSince.duration(to: now) > keepAlive {
      pinged = now
      try handle.ping()
    }
  }
}
