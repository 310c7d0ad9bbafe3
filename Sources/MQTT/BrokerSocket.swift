import EventLoop
import Glibc

/// Drives one ``MosquittoHandle`` by the loop: reads and writes when the socket is ready, gives libmosquitto the time
/// for its pings, and says after each of these that something may have happened.
final class BrokerSocket: @unchecked Sendable {
  // @unchecked: touched on the loop's thread alone, which the loop checks.

  /// How far the attempt has come; nil when the broker has accepted.
  private(set) var phase: MQTTError.Phase? = .connect
  private let handle: MosquittoHandle
  private let usesTLS: Bool
  private let version: MQTTOptions.ProtocolVersion
  private var keepAlive: Duration
  private let loop: EventLoop
  private let activity: @Sendable (BrokerSocket, MQTTError?) -> Void
  private var watch: Watch?
  private var ticker: LoopTimer?
  /// A call has failed, and the owner is about to be told.
  private(set) var isBroken = false
  /// A part of the CONNACK is there.
  private var awaitsRest = false
  /// The owner has more to say: `activity` follows as soon as the socket takes it, in the next turn of the loop at the
  /// earliest.
  var hasMore = false

  /// - Parameter activity: called on the loop whenever there may be events, or the connection has ended: with
  ///   an error, or with ``isOpen`` being false.
  init(
    _ handle: MosquittoHandle, _ options: MQTTOptions, loop: EventLoop,
    activity: @escaping @Sendable (BrokerSocket, MQTTError?) -> Void
  ) {
    self.handle = handle
    usesTLS = options.tls != nil
    version = options.protocolVersion
    keepAlive = options.keepAlive
    self.loop = loop
    self.activity = activity
  }

  func start() {
    watch = loop.watch(handle.socket, for: [.readable, .writable]) { [weak self] readiness in
      self?.ready(readiness)
    }
    scheduleTick()
  }

  /// No more of it. The socket is closed with the last reference to the handle.
  func close() {
    watch?.cancel()
    watch = nil
    ticker?.cancel()
  }

  var isOpen: Bool { handle.socket >= 0 }

  /// Between `true` and `false` what is sent is gathered into full segments: each segment is a system call's worth of
  /// work here and wakes the broker.
  func gather(_ begins: Bool) {
    var flag: Int32 = begins ? 1 : 0
    // Fails harmlessly on a socket that is closed.
    setsockopt(handle.socket, Int32(IPPROTO_TCP), TCP_CORK, &flag, socklen_t(MemoryLayout<Int32>.size))
  }

  var wantsWrite: Bool { handle.wantsWrite }

  func takeEvents() -> MosquittoHandle.Events { handle.takeEvents() }

  func accepted(_ connection: MQTTConnection) {
    phase = nil
    keepAlive = connection.serverKeepAlive ?? keepAlive
    handle.accepted()
  }

  func publish(_ packet: Outbox.Packet) throws(MQTTError) -> Int32? { try handle.publish(packet) }
  func subscribe(
    _ filter: TopicFilter, qos: QoS, _ options: SubscribeOptions
  ) throws(MQTTError) -> Int32 {
    // The bits are reserved in 3.1.1 (3.8.3), and libmosquitto would send them.
    try handle.subscribe(filter, qos: qos, version == .v5 ? options : [])
  }
  func unsubscribe(_ filter: TopicFilter) throws(MQTTError) { try handle.unsubscribe(filter) }

  /// Says good-bye; `activity` follows when the connection is closed.
  func disconnect() {
    handle.disconnect()
    if isOpen { updateInterest() } else { breakOff(.connectionLost(reason: "closed here")) }
  }

  /// Ends it because of a call that failed. `activity` follows in a later turn of the loop: whoever made the
  /// call must not find everything changed when it returns.
  func breakOff(_ error: MQTTError) {
    guard !isBroken else { return }
    isBroken = true
    close()
    loop.timer(after: .zero) { self.activity(self, error) }
  }

  /// To be called after having sent something: what the socket did not take is written when it is ready.
  func updateInterest() {
    guard let watch, isOpen else { return }
    // In a handshake libmosquitto says that it wants to write while it waits for the other end; to believe it
    // would be to spin. What a handshake writes is written along with each read.
    let writes = phase == .connect || (phase != .tls && (hasMore || handle.wantsWrite))
    var interest: Readiness = awaitsRest ? [] : .readable
    if writes { interest.insert(.writable) }
    watch.interest = interest
  }

  private func ready(_ readiness: Readiness) {
    guard watch != nil else { return }
    hasMore = false
    do throws(MQTTError) {
      try proceed(readiness)
      settle(nil)
    } catch {
      settle(error)
    }
  }

  private func proceed(_ readiness: Readiness) throws(MQTTError) {
    if phase == .connect {
      let error = handle.takeSocketError()
      // A reset can only come after the connection was made.
      if error == ECONNRESET {
        throw usesTLS ? .brokenOffTLS : .connectionLost(reason: text(ofErrno: error))
      }
      guard error == 0 else { throw .unreachable(reason: text(ofErrno: error), errno: error) }
      phase = usesTLS ? .tls : .connack
    }
    let isClosed = !readiness.isDisjoint(with: .closed)
    let joinsTLS = phase == .tls
    if joinsTLS || isClosed || readiness.contains(.readable), try mayRead() { try handle.read() }
    if isOpen, joinsTLS || readiness.contains(.writable) { try handle.write() }
    // 2.0.11 takes a connection that breaks in the TLS handshake for one that is still in it.
    if isOpen, isClosed, phase != nil {
      throw joinsTLS ? .brokenOffTLS : .connectionLost(reason: "closed by the other end")
    }
  }

  /// Whether libmosquitto may read what has come: before it has met a broker, not everything.
  private func mayRead() throws(MQTTError) -> Bool {
    guard phase == .connack else { return true }
    let bytes = handle.peek()
    if bytes.isEmpty { return true }
    switch ConnackCheck(bytes, version) {
    case .plausible:
      return true
    case .olderProtocol:
      throw .unsupportedProtocol
    case .incomplete:
      // Hardly ever; look again at the next tick rather than all the time.
      awaitsRest = true
      return false
    case .nonsense(let reason):
      throw .protocolViolation(reason: reason)
    }
  }

  private func settle(_ error: MQTTError?) {
    // The descriptor may be closed: leave the loop before anyone opens another of its number.
    if error != nil || !isOpen { close() } else { updateInterest() }
    activity(self, error)
  }

  private func scheduleTick() {
    // Each is a wake-up of the processor, and nothing else may be to be done.
    ticker = loop.timer(after: phase == nil ? max(.seconds(1), keepAlive / 10) : .seconds(1)) { [weak self] in
      self?.tick()
    }
  }

  private func tick() {
    guard watch != nil else { return }
    scheduleTick()
    do throws(MQTTError) {
      if phase == .tls { try proceed([]) }
      if awaitsRest {
        awaitsRest = false
        try proceed(.readable)
      }
      if isOpen { try handle.tick() }
      settle(nil)
    } catch {
      settle(error)
    }
  }
}
