import EventLoop
import Log

/// What a client writes about itself: level and line.
public typealias MQTTLog = @Sendable (_ level: LogLevel, _ line: String) -> Void

extension MQTTClient {
  /// To stderr, as component `mqtt`.
  public static let standardLog: MQTTLog = { Logger(component: "mqtt").write($0, $1) }
}

/// A client of one broker: connects, stays connected, and keeps what it is told to say until it is said.
///
/// What it says and subscribes to belongs to the client, not to a connection: every new connection begins with
/// the subscriptions, then all retained state, then the events that waited. Another actor on the same loop may
/// call it synchronously by `assumeIsolated`.
public actor MQTTClient: TurnEnding {
  nonisolated let loop: EventLoop
  /// The loop's thread: who is on it may enter the actor by `assumeIsolated`.
  public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  private let options: MQTTOptions
  private let log: MQTTLog
  private var handler: (@Sendable (MQTTEvent) -> Void)?

  private var link: BrokerLink
  private var outbox: Outbox
  private var troubles: TroubleLog
  private struct Subscription {
    let filter: TopicFilter
    let qos: QoS
    let options: SubscribeOptions
  }
  private var subscriptions: [Subscription] = []
  /// SUBSCRIBEs whose SUBACK is awaited, by packet identifier.
  private var subscribing: [Int32: TopicFilter] = [:]
  private var counters = MQTTStatistics()

  private var socket: BrokerSocket?
  /// Whether this connection may say what is to be said.
  private var isAdmitted = false
  private var isPumpPlanned = false
  /// How often something did not wait for the end of the turn of the loop, in the last one where that was so.
  private var hurried = (turn: UInt64(0), count: 0)
  private var timer: LoopTimer?
  private var takesSecondFamily = false
  private var awaitingEnd: [CheckedContinuation<Void, Never>] = []

  /// Nothing happens before ``run()``; what is said and subscribed to until then is kept.
  /// - Parameters:
  ///   - loop: what the client runs on, as must all who call it by `assumeIsolated`.
  ///   - log: gets its lines, on the loop; it must not call the client.
  public init(options: MQTTOptions, loop: EventLoop, log: @escaping MQTTLog = MQTTClient.standardLog) {
    self.options = options
    self.loop = loop
    self.log = log
    link = BrokerLink(
      connectTimeout: options.connectTimeout, backOff: options.backOff, refusalBackOff: options.refusalBackOff
    )
    outbox = Outbox(limits: options.outbox)
    troubles = TroubleLog(options)
  }

  /// Who is told what happens: called on the loop, synchronously, but never from inside a call of ``publish(_:atOnce:)``
  /// and its like. It may call this client.
  public func setHandler(_ handler: @escaping @Sendable (MQTTEvent) -> Void) { self.handler = handler }

  // MARK: Life

  /// Connects, and connects again whenever the connection is lost, until ``stop(deadline:)``. Trouble with the
  /// broker never ends it; cancellation closes the connection as a crash would, so that the will is published.
  public func run() async throws {
    perform(link.start())
    await withTaskCancellationHandler {
      await end()
    } onCancel: {
      loop.onLoop { self.assumeIsolated { $0.perform($0.link.abandon()) } }
    }
    try Task.checkCancellation()
  }

  /// Sends what waits and awaits its PUBACKs, at most for `deadline`, then says good-bye to the broker, which
  /// therefore does not publish the will. ``run()`` returns.
  public func stop(deadline: Duration) async {
    perform(link.stop(isWaiting: !outbox.isEmpty, deadline: deadline))
    await end()
  }

  /// On a connection that awaits it (``MQTTOptions/awaitsAdmission``): what is to be said may be said.
  public func admit() {
    guard session != nil, !isAdmitted else { return }
    isAdmitted = true
    pumpSoon()
  }

  /// Leaves the broker in peace for `delay`, with a good-bye, and connects again after that.
  public func withdraw(for delay: Duration) { perform(link.withdraw(for: delay)) }

  private func end() async {
    await withCheckedContinuation { continuation in
      // Asked inside: between the call and this there may be a turn of the loop, and in it the end.
      if link.state == .stopped { continuation.resume() } else { awaitingEnd.append(continuation) }
    }
  }

  /// As they are now, put together at each call.
  public var statistics: MQTTStatistics {
    var result = counters
    result.lost = outbox.lost
    result.refused = outbox.refused
    result.queued = outbox.queuedCount
    result.inFlight = outbox.inFlightCount
    return result
  }

  // MARK: Saying

  /// Publishes `message`; what cannot be sent now waits, and of too many the oldest is lost.
  ///
  /// - Parameter atOnce: somebody waits for it. Else it goes when the present turn of the loop ends, together with
  ///   what else that brings.
  public func publish(_ message: MQTTMessage, atOnce: Bool = false) {
    let lost = outbox.lost
    outbox.append(message)
    if outbox.lost != lost { say(troubles.lost()) }
    pumpSoon(atOnce)
  }

  /// Publishes `payload` as retained state of `topic`, now and after every CONNACK, until another value
  /// follows. Every value goes out as long as the broker keeps up; else only the newest does.
  public func setState(
    _ topic: TopicName, _ payload: [UInt8], qos: QoS = .atLeastOnce, atOnce: Bool = false
  ) {
    outbox.setState(topic, payload, qos: qos)
    pumpSoon(atOnce)
  }

  /// Takes the retained state of `topic` away from the broker, as soon as it can be told.
  public func clearState(_ topic: TopicName, qos: QoS = .atLeastOnce) {
    outbox.clearState(topic, qos: qos)
    pumpSoon()
  }

  /// Forgets the retained state of `topic`, and leaves what the broker has: it is somebody else's now.
  public func releaseState(_ topic: TopicName) { outbox.releaseState(topic) }

  /// Sends `message` now, past all that waits and unasked whether it is admitted; without a connection it is lost.
  public func send(_ message: MQTTMessage) {
    guard let socket = session else { return }
    send(outbox.packet(once: message), over: socket)
    socket.updateInterest()
  }

  /// What the events of one turn bring goes to the broker together, in as few segments as it fits into, unless somebody
  /// waits for it. In a crowd of those that, too, is quicker: only the first few go at once.
  private func pumpSoon(_ atOnce: Bool = false) {
    guard isAdmitted, session != nil else { return }
    if atOnce, mayHurry() { return pump() }
    guard !isPumpPlanned else { return }
    isPumpPlanned = true
    loop.atEndOfTurn(self)
  }

  private func mayHurry() -> Bool {
    if hurried.turn != loop.turn { hurried = (loop.turn, 0) }
    hurried.count += 1
    return hurried.count <= Self.few
  }

  private static let few = 4

  /// For the loop.
  public nonisolated func turnEnds() {
    loop.enter(self, ()) { client, _ in
      client.isPumpPlanned = false
      client.pump()
    }
  }

  /// Sends what the broker and the socket take now.
  private func pump() {
    guard isAdmitted, let socket = session else { return }
    let isMany = outbox.queuedCount > 1 && !outbox.isWindowFull && !socket.wantsWrite
    if isMany { socket.gather(true) }
    send(over: socket)
    if isMany { socket.gather(false) }
  }

  private func send(over socket: BrokerSocket) {
    // So many in a row: who waits for the loop's other ends waits for less than a millisecond or two.
    var budget = 128
    while budget > 0, !socket.wantsWrite, let packet = outbox.next() {
      budget -= 1
      guard send(packet, over: socket) else { return }
    }
    socket.hasMore = budget == 0
    socket.updateInterest()
    if !outbox.tooLarge.isEmpty {
      for topic in outbox.takeTooLarge() {
        say(troubles.refused(topic, "it is larger than the broker accepts"))
      }
    }
    if link.isFlushing, outbox.isEmpty { perform(link.drained()) }
  }

  /// False when the connection has ended over it.
  @discardableResult
  private func send(_ packet: Outbox.Packet, over socket: BrokerSocket) -> Bool {
    do throws(MQTTError) {
      if let identifier = try socket.publish(packet) {
        outbox.sent(packet, as: identifier)
        counters.sent += 1
      } else {
        outbox.unsendable(packet)
        say(troubles.refused(packet.topic, "libmosquitto cannot send it"))
      }
      return true
    } catch {
      outbox.unsent(packet)
      socket.breakOff(error)
      return false
    }
  }

  // MARK: Hearing

  /// Subscribes, now and after every CONNACK.
  public func subscribe(
    _ filter: TopicFilter, qos: QoS = .atLeastOnce, options: SubscribeOptions = []
  ) {
    let subscription = Subscription(filter: filter, qos: qos, options: options)
    // At the end: what the broker retains for it is to come after that of all those before, at the next connection too.
    subscriptions.removeAll { $0.filter == filter }
    subscriptions.append(subscription)
    if let session { send(subscription, to: session) }
  }

  /// Takes ``subscribe(_:qos:options:)`` back, for the connections to come too. What is on its way still arrives.
  public func unsubscribe(_ filter: TopicFilter) {
    guard let index = subscriptions.firstIndex(where: { $0.filter == filter }) else { return }
    subscriptions.remove(at: index)
    guard let session else { return }
    do throws(MQTTError) {
      try session.unsubscribe(filter)
      session.updateInterest()
    } catch {
      session.breakOff(error)
    }
  }

  private func send(_ subscription: Subscription, to socket: BrokerSocket) {
    do throws(MQTTError) {
      let identifier = try socket.subscribe(
        subscription.filter, qos: subscription.qos, subscription.options)
      subscribing[identifier] = subscription.filter
      socket.updateInterest()
    } catch {
      socket.breakOff(error)
    }
  }

  // MARK: The connection

  /// The socket to a broker that listens to us.
  private var session: BrokerSocket? {
    guard link.isUp, let socket, !socket.isBroken else { return nil }
    return socket
  }

  private func perform(_ actions: [BrokerLink.Action]) {
    for action in actions {
      switch action {
      case .dial: dial()
      case .setTimer(let duration): setTimer(duration)
      case .cancelTimer: timer?.cancel()
      case .begin:
        if let socket { for subscription in subscriptions { send(subscription, to: socket) } }
      case .drop: drop()
      case .sayGoodBye: socket?.disconnect()
      case .reportFailure(let error, let delay):
        say(troubles.trouble(error, retryIn: delay))
        handler?(.connectFailed(error, retryIn: delay))
      case .reportLoss(let error, let delay):
        say(troubles.trouble(error, retryIn: delay))
        handler?(.disconnected(error))
      case .reportOverdue(let error):
        say(troubles.trouble(error, retryIn: nil))
        handler?(.connectFailed(error, retryIn: .zero))
      case .finish:
        for continuation in awaitingEnd { continuation.resume() }
        awaitingEnd = []
      }
    }
  }

  private func say(_ entry: (level: LogLevel, line: String)) { log(entry.level, entry.line) }

  private func setTimer(_ duration: Duration) {
    timer?.cancel()
    timer = loop.timer(after: duration) { [weak self] in self?.assumeIsolated { $0.timeout() } }
  }

  private func timeout() {
    let phase = socket?.phase ?? .lookUp
    perform(link.timeout(in: phase, at: .now, jitter: options.jitter()))
    if phase == .connect { takesSecondFamily.toggle() }
  }

  private func dial() {
    let dialling = Dialling(options: options, takesSecondFamily: takesSecondFamily)
    loop.task(of: self) { client in
      switch await EventLoop.blocking({ dialling() }) {
      case .success(let handle): client.dialled(handle)
      case .failure(let error): client.failed(error)
      }
    }
  }

  private func dialled(_ handle: MosquittoHandle) {
    // Stopped meanwhile: the handle goes, and the socket with it.
    guard case .dialling = link.state else { return }
    let socket = BrokerSocket(handle, options, loop: loop) { [weak self] socket, error in
      self?.assumeIsolated { $0.settle(socket, error) }
    }
    self.socket = socket
    perform(link.dialled())
    socket.start()
  }

  private func failed(_ error: MQTTError) {
    if case .unreachable = error { takesSecondFamily.toggle() }
    perform(link.failed(error, at: .now, jitter: options.jitter()))
  }

  private func drop() {
    let wasConnected = socket.map { $0.phase == nil } ?? false
    socket?.close()
    socket = nil
    isAdmitted = false
    subscribing = [:]
    guard wasConnected else { return }
    outbox.disconnected()
    if link.state == .stopped { handler?(.disconnected(nil)) }
  }

  /// Something may have come, or the connection has ended.
  private func settle(_ socket: BrokerSocket, _ error: MQTTError?) {
    guard socket === self.socket else { return }
    let events = socket.takeEvents()
    var error = error ?? (socket.isOpen ? nil : .connectionLost(reason: "closed by the other end"))
    if let reason = events.disconnectReason {
      error = .closedByBroker(reasonCode: Int(reason), reason: MosquittoText.reason(reason))
    }
    if let connack = events.connack, socket.phase != nil {
      if connack.reason != 0 {
        error = MosquittoText.refusal(connack.reason)
      } else if connack.connection.receiveMaximum == 0 {
        error = .protocolViolation(reason: "Receive Maximum of 0")
      } else if error == nil {
        accepted(connack.connection, socket)
      }
    }
    take(events)
    // The owner may have stopped the client, or a PUBLISH of its may have met the end.
    guard socket === self.socket else { return }
    if let error { failed(error) } else { pump() }
  }

  private func accepted(_ connection: MQTTConnection, _ socket: BrokerSocket) {
    socket.accepted(connection)
    isAdmitted = !options.awaitsAdmission
    counters.connects += 1
    outbox.connected(
      Outbox.Peer(
        window: min(options.outbox.inFlight, Int(connection.receiveMaximum)),
        maximumQoS: connection.maximumQoS, maximumPacketSize: connection.maximumPacketSize.map { Int($0) },
        hasProperties: options.protocolVersion == .v5))
    say(troubles.over())
    if !connection.retainAvailable {
      log(
        .warning,
        "the broker does not support retained messages: clients that subscribe later do not see the current values"
      )
    }
    perform(link.accepted(at: .now))
    if socket === self.socket { handler?(.connected(connection)) }
  }

  private func take(_ events: MosquittoHandle.Events) {
    for (packet, reason) in events.acknowledgements {
      guard let topic = outbox.acknowledged(packet, isRefusal: reason >= 0x80) else { continue }
      counters.acknowledged += 1
      if reason >= 0x80 { say(troubles.refused(topic, MosquittoText.reason(reason))) }
    }
    for (packet, reason) in events.subscriptions {
      guard let filter = subscribing.removeValue(forKey: packet) else { continue }
      guard reason >= 0x80 else {
        if Logger.isEnabled(.debug) { log(.debug, "subscribed to \(filter)") }
        continue
      }
      let text = MosquittoText.reason(reason)
      log(.error, "the broker refused the subscription to \(filter): \(text)")
      handler?(.subscriptionRefused(filter, reason: text))
    }
    counters.ignored += events.ignored
    for message in events.messages {
      counters.received += 1
      handler?(.message(message))
    }
  }
}
