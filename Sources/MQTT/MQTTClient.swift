import EventLoop
import Log

/// A client of a broker, or of a cluster of them, which reconnects automatically and queues messages meanwhile.
///
/// Subscriptions and messages belong to the client, not to a connection: every new connection begins with the
/// subscriptions, then all retained state, then the waiting messages.
@LoopActor public final class MQTTClient: IterationEndHandler {
  private let options: MQTTOptions
  /// The dialling of each broker.
  private var diallings: [Dialling]
  /// The broker of the current or last attempt to connect.
  public private(set) var broker: MQTTBroker
  /// Finds out whether the first of several brokers is well, while another is used.
  private var probe: FirstBrokerProbe?
  let log: MQTTLog
  var handler: (@LoopActor (MQTTEvent) -> Void)?

  private var link: BrokerLink
  var outbox: Outbox
  var outages: OutageLog
  var subscriptions = Subscriptions()
  /// PUBLISH packets sent.
  private var sent = 0

  /// The socket of the current attempt or connection.
  private var socket: BrokerSocket?
  /// Whether queued messages may be sent on this connection.
  private var isAdmitted = false
  private var timer = DeadlineTimer()
  private var pacing: LoopTimer?
  private var lasting: LoopTimer?
  /// How many clients, this one among them, connect again when the broker is back. With several, each sends for the
  /// first 15 s of a connection no more than its share of 670 messages a second, of those that are not urgent: all
  /// states of a fleet at once are many times what a broker is used to.
  public var reconnectingClients = 1
  private var endWaiters: [CheckedContinuation<Void, Never>] = []

  /// Messages and subscriptions are queued until ``run()``.
  /// - Parameter log: must not call the client.
  public init(options: MQTTOptions, log: @escaping MQTTLog = MQTTClient.standardLog) {
    self.options = options
    diallings = options.brokers.map { Dialling(options, $0) }
    broker = options.brokers[0]
    self.log = log
    link = BrokerLink(options)
    outbox = Outbox(limits: options.outbox, hasProperties: options.protocolVersion == .v5)
    outages = OutageLog(options.brokers)
  }

  /// Sets the handler of events, called synchronously, but never during a call of ``publish(_:isUrgent:)`` or
  /// a similar method. It may call the client.
  public func setHandler(_ handler: @escaping @LoopActor (MQTTEvent) -> Void) { self.handler = handler }

  // MARK: Running

  /// Connects, and reconnects whenever the connection is lost, until ``stop(deadline:)``. Cancellation closes the
  /// connection without DISCONNECT, so that the broker publishes the will.
  public func run() async {
    perform(link.start())
    await withTaskCancellationHandler {
      await end()
    } onCancel: {
      loop.onLoop { self.perform(self.link.abandon()) }
    }
  }

  /// Sends queued messages and awaits their PUBACKs, for at most `deadline`, then disconnects; the broker does not
  /// publish the will. ``run()`` returns.
  public func stop(deadline: Duration) async {
    pace(for: .zero)
    perform(link.stop(isWaiting: !outbox.isEmpty, deadline: deadline))
    await end()
  }

  /// Starts sending queued messages on the current connection, if ``MQTTOptions/awaitsAdmission`` is set.
  public func admit() {
    guard openSocket != nil else { return }
    isAdmitted = true
    schedule()
  }

  /// Disconnects, and connects again after `delay`.
  public func reconnect(after delay: Duration) {
    perform(link.reconnect(after: delay, isInFlight: outbox.isInFlight))
  }

  private func end() async {
    await withCheckedContinuation { continuation in
      // Checked inside the closure: the client may stop between the call and the closure.
      if link.state == .stopped { continuation.resume() } else { endWaiters.append(continuation) }
    }
  }

  /// The current values.
  public var statistics: MQTTStatistics {
    MQTTStatistics(sent: sent, lost: outbox.lost, rejected: outbox.rejected, queued: outbox.queuedCount)
  }

  /// Whether there is a connection, and what is not urgent comes faster than it is sent: long messages would fill the queue.
  public var hasBacklog: Bool { openSocket != nil && outbox.hasBacklog }

  /// The topic of a message that the broker has not acknowledged for 20 s, while it answers pings.
  public var unacknowledged: TopicName? { outbox.unacknowledged(for: .seconds(20), at: .now) }

  // MARK: Sending

  /// Publishes `message`, as soon as the broker takes it; if too many wait, the oldest is dropped. Without a connection, the
  /// message's `undelivered` says what becomes of it.
  ///
  /// - Parameter isUrgent: a reading or a result: sent ahead of much else that waits.
  public func publish(_ message: MQTTMessage, isUrgent: Bool = false) {
    let lost = outbox.lost
    if !outbox.append(message, isUrgent: isUrgent) {
      write(outages.refused(message.topic, "it is larger than the queue for the broker"))
    } else if outbox.lost != lost {
      write(outages.lost())
    }
    schedule()
  }

  /// Sends `message` now, ahead of the queue and before ``admit()``; without a connection it is dropped. If the broker's Receive
  /// Maximum is in flight, libmosquitto keeps it until the next PUBACK.
  public func send(_ message: MQTTMessage) {
    guard let socket = openSocket else { return }
    send(Outbox.Packet(message: message, source: .once(message.topic)), over: socket)
    socket.updateInterest()
  }

  /// What is queued in an iteration of the loop is sent together at its end, in as few segments as possible.
  func schedule() {
    if isAdmitted && openSocket != nil || outbox.hasOutcomes { loop.atEndOfIteration(self) }
  }

  /// Called by the loop.
  public func iterationEnds() { flush() }

  private func flush() {
    pump()
    reportOutcomes()
  }

  /// Tells the publisher what has become of messages.
  private func reportOutcomes() {
    let outcomes = outbox.takeOutcomes()
    for (topic, reason) in outcomes.tooLarge { refused(topic, reason, .dropped) }
    if !outcomes.completed.isEmpty { handler?(.completed(outcomes.completed, rejected: outcomes.rejected)) }
    if !outcomes.returned.isEmpty { handler?(.undelivered(outcomes.returned)) }
  }

  private func refused(_ topic: TopicName, _ reason: MQTTRefusal, _ fate: RefusedMessage) {
    write(outages.refused(topic, "\(reason)", fate))
    handler?(.publicationRefused(topic, reason, fate))
  }

  /// Sends as many packets as the broker and the socket accept now.
  private func pump() {
    guard isAdmitted, let socket = openSocket else { return }
    let isCorked = outbox.queuedCount > 1 && !outbox.isWindowFull && !socket.handle.wantsWrite
    if isCorked { socket.setCork(true) }
    defer { if isCorked { socket.setCork(false) } }
    // Bounded: other handlers of the loop wait for at most a millisecond or two.
    var budget = 128
    while budget > 0, !socket.handle.wantsWrite, let packet = outbox.next() {
      budget -= 1
      guard send(packet, over: socket) else { return }
    }
    socket.hasMore = budget == 0
    socket.updateInterest()
    if outbox.isEmpty { perform(link.drained()) }
  }

  /// Sends `packet`; false if the connection has failed.
  @discardableResult
  func send(_ packet: Outbox.Packet, over socket: BrokerSocket) -> Bool {
    do throws(MQTTError) {
      if let identifier = try socket.handle.publish(packet.message) {
        outbox.sent(packet, as: identifier)
        sent += 1
      } else {
        outbox.reject(packet.source)
        write(outages.refused(packet.message.topic, "libmosquitto cannot send it"))
      }
      return true
    } catch {
      outbox.unsent(packet)
      socket.fail(error)
      return false
    }
  }

  /// Limits what is not urgent.
  private func pace(for rest: Duration) {
    pacing?.cancel()
    outbox.allowBulk(rest > .zero ? 10 : nil)
    schedule()
    guard rest > .zero else { return }
    let interval = Duration.milliseconds(15) * min(reconnectingClients, 40)
    pacing = loop.timer(after: interval) { [weak self] in self?.pace(for: rest - interval) }
  }

  // MARK: Connection

  /// The socket of the connection, if packets can be sent.
  var openSocket: BrokerSocket? {
    guard link.isUp, let socket, !socket.hasFailed else { return nil }
    return socket
  }

  private func perform(_ actions: [BrokerLink.Action]) {
    for action in actions {
      switch action {
      case .dial: dial()
      case .probe: startProbe()
      case .setTimer(let duration): timer.set(.now + duration) { [weak self] in self?.timeout() }
      case .cancelTimer: timer.set(nil) {}
      case .begin: sendSubscriptions(subscriptions.all)
      case .drop: drop()
      case .disconnect: socket?.disconnect()
      case .reportFailure(let error, let delay):
        write(outages.failed(error, at: broker, retryIn: delay))
        handler?(.connectFailed(error))
      case .reportLoss(let error, let delay):
        write(outages.failed(error, at: broker, retryIn: delay))
        handler?(.disconnected(error))
      case .reportEnd: handler?(.disconnected(nil))
      case .finish:
        for waiter in endWaiters { waiter.resume() }
        endWaiters = []
      }
    }
  }

  func write(_ entry: OutageLog.Entry) { log(entry.level, entry.line) }

  private func timeout() {
    if link.state == .handshaking, !link.isStopping { return failed(.timedOut(socket?.phase ?? .connect)) }
    perform(link.timeout(jitter: options.jitter()))
  }

  private func dial() {
    let index = link.choice.index
    let dialling = diallings[index]
    broker = dialling.broker
    loop.task {
      let (result, choice) = await EventLoop.blocking { dialling() }
      self.diallings[index].choice = choice
      switch result {
      case .success(let handle): self.dialled(handle)
      case .failure(let error): self.failed(error)
      }
    }
  }

  private func startProbe() {
    guard probe == nil else { return }
    let new = FirstBrokerProbe(options)
    probe = new
    loop.task {
      let isWell = await new.result()
      let actions = self.link.probed(isWell: isWell, at: .now, isInFlight: self.outbox.isInFlight)
      if !actions.isEmpty { self.log(.notice, "going back to \(new.broker)") }
      // At once: the link counts as ending from here on.
      self.perform(actions)
      self.probe = nil
      await new.stop()
    }
  }

  private func dialled(_ handle: MosquittoHandle) {
    // Stopped meanwhile: the handle is released, which closes the socket.
    guard link.state == .dialling else { return }
    let socket = BrokerSocket(handle, options) { [weak self] in self?.handleActivity(of: $0, $1) }
    self.socket = socket
    isAdmitted = !options.awaitsAdmission
    perform(link.dialled())
    socket.start()
  }

  private func failed(_ error: MQTTError) {
    guard link.isTrying else {
      if case .unacknowledged = error { diallings[link.choice.index].choice.leave() }
      if link.state == .connected {
        outbox.ended(mayBeOfAMessage: error.mayBeOfAMessage(options.protocolVersion))
      }
      return perform(link.failed(error, at: .now, jitter: options.jitter()))
    }
    if let error = diallings[link.choice.index].choice.failed(error) {
      perform(link.failed(error, at: .now, jitter: options.jitter()))
    } else {
      log(.debug, "\(error); trying the next address of \(broker.host)")
      // That took seconds, in which nothing was logged.
      if case .timedOut = error { write(outages.failed(error, at: broker, retryIn: nil)) }
      perform(link.triesNextAddress())
    }
  }

  private func drop() {
    guard let socket else { return }
    socket.close()
    self.socket = nil
    pacing?.cancel()
    lasting?.cancel()
    guard socket.phase == nil else { return }
    subscriptions.disconnected()
    outbox.disconnected()
    reportOutcomes()
    if link.state == .stopped { handler?(.disconnected(nil)) }
  }

  /// Handles the events of `socket`, and the end of its connection.
  private func handleActivity(of socket: BrokerSocket, _ error: MQTTError?) {
    guard socket === self.socket else { return }
    let events = socket.handle.takeEvents()
    var error = error ?? (socket.isOpen ? nil : .closed)
    if let reason = events.disconnectReason {
      error = .closedByBroker(reasonCode: Int(reason), reason: MosquittoText.reason(reason))
    }
    if let connack = events.connack, socket.phase != nil {
      if connack.reason != 0 {
        error = MosquittoText.refusal(connack.reason, connack.words)
      } else if connack.connection.receiveMaximum == 0 {
        error = .protocolViolation(reason: "Receive Maximum of 0")
      } else if error == nil {
        accepted(connack.connection, socket)
      }
    }
    handle(events)
    // The handler may have stopped the client.
    guard socket === self.socket else { return }
    if error == nil, let topic = outbox.unacknowledged(for: options.keepAlive * 2, at: .now) {
      error = .unacknowledged(topic)
    }
    if let error { failed(error) } else { flush() }
  }

  private func accepted(_ connection: MQTTConnection, _ socket: BrokerSocket) {
    socket.accepted(connection)
    outbox.connected(connection, to: link.choice.index)
    diallings[link.choice.index].choice.connected()
    write(outages.connected(to: broker))
    awaitLasting()
    pace(for: reconnectingClients > 1 ? .seconds(15) : .zero)
    perform(link.accepted(at: .now))
    if socket === self.socket { handler?(.connected(connection)) }
  }

  /// A connection lasts if the broker also acknowledges. A message that may end it is awaited for five minutes.
  private func awaitLasting(searches: Int = 10) {
    lasting = loop.timer(after: BrokerLink.stableAfter) { [weak self] in
      guard let self else { return }
      if unacknowledged != nil { return awaitLasting(searches: searches) }
      if outbox.isSizeSought, searches > 0 { return awaitLasting(searches: searches - 1) }
      outbox.lasted()
      if let entry = outages.lasted(at: broker) { write(entry) }
    }
  }

  private func handle(_ events: MosquittoHandle.Events) {
    for (packet, reason) in events.acknowledgements {
      let refusal = reason < 0x80 ? nil : MosquittoText.refusal(ofMessage: reason)
      guard let (topic, fate) = outbox.acknowledged(packet, refusal), let refusal, let fate else { continue }
      refused(topic, refusal, fate)
    }
    if !outbox.isInFlight { perform(link.acknowledged()) }
    for (packet, reasons) in events.subscriptions {
      for (filter, reason) in subscriptions.acknowledged(packet, reasons) { acknowledged(filter, reason) }
    }
    reportOutcomes()
    for message in events.messages where probe?.received(message) != true { handler?(.message(message)) }
  }
}
