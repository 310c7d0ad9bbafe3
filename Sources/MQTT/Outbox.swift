import EventLoop

/// What waits to be sent to the broker, and what was sent but is not acknowledged. Pure: its owner reports the
/// connection, and asks for the next packet.
///
/// Two kinds are queued. A *message* is sent once (or again, if the connection ends before its PUBACK). Retained
/// *state* is the newest payload of a topic. On every new connection all state is sent again, ahead of the waiting
/// messages, as it is current and bounded by the number of topics. Otherwise both kinds are sent in the order in which
/// they were queued, except that urgent ones (readings, results) overtake a backlog of others (1000 devices that change at
/// once): fifteen for each of the backlog. The order on each topic is kept, but for messages that the spool repeats.
///
/// The cost of every operation is, on average, independent of the queue's length, except for a new connection, which queues all
/// state.
struct Outbox {
  enum Lane: Int, CaseIterable {
    /// Readings, results and responses.
    case urgent
    /// Everything else: what describes devices, announcements, all state on a new connection.
    case bulk
  }

  /// What has become of messages.
  struct Outcomes {
    /// Numbers of messages that need not be sent again, and how many of them no attempt can deliver.
    var completed: [Int64] = []
    var rejected = 0
    /// Messages to give back.
    var returned: [MQTTMessage] = []
    /// Topics of messages larger than the broker accepts.
    var tooLarge: [(topic: TopicName, reason: MQTTRefusal)] = []

    fileprivate var isEmpty: Bool { completed.isEmpty && returned.isEmpty && tooLarge.isEmpty }
  }

  private var peer: MQTTConnection?
  /// The maximum of unacknowledged QoS 1 messages; a broker may allow fewer.
  private let window: Int
  /// Whether PUBLISH has properties: MQTT 5.
  private let hasProperties: Bool
  private var lastSequence: UInt64 = 0
  /// The last sequence number before this connection.
  private var lastBefore: UInt64 = 0
  private var messages: MessageQueue
  private var states = StateTable()
  /// What may wait in the bulk lane before the urgent lane overtakes it.
  static let backlog = 64
  /// What is sent of the urgent lane for each of the backlog.
  private static let urgentShare = 15
  private var sentUrgent = 0
  /// What may still be sent of the bulk lane; nil: all.
  private var bulkAllowance: Int?
  private var inFlight: [(packet: Int32, source: Source, bytes: Int)] = []
  private var sizeLimit = SizeLimit()
  /// The broker that `sizeLimit` is of, by its place among several.
  private var broker = 0
  /// The largest state that was sent with QoS 0 on this connection: whether it has arrived is not known. A message is not sent
  /// again, so that it ends no other connection.
  private var largestUnconfirmed: (topic: TopicName, bytes: Int)?
  /// The oldest packet in flight, and since when it was seen to be that.
  private var oldest: (packet: Int32, since: Moment)?

  /// Messages that are larger than the broker accepts, or that it rejected; a payload of a state counts once.
  private(set) var rejected = 0

  init(limits: OutboxLimits, hasProperties: Bool = true) {
    messages = MessageQueue(limits: limits)
    window = limits.inFlight
    self.hasProperties = hasProperties
  }

  var lost: Int { messages.lost }
  var queuedCount: Int { messages.count + states.queuedCount }
  /// Whether nothing is to be sent; without a connection, also no state, all of which the next one sends.
  var isEmpty: Bool { queuedCount == 0 && !isInFlight && (peer != nil || states.isEmpty) }
  /// Whether what is not urgent comes faster than it is sent: the urgent overtakes it.
  var hasBacklog: Bool { states.bulkCount + messages.bulkCount > Self.backlog }
  /// Whether there are messages that were sent and not acknowledged.
  var isInFlight: Bool { !inFlight.isEmpty }
  /// Whether QoS 1 messages have to wait for a PUBACK.
  var isWindowFull: Bool {
    peer.map { inFlight.count >= (sizeLimit.isSought ? 1 : min(window, Int($0.receiveMaximum))) } ?? false
  }

  // MARK: Queueing

  /// - Parameter isUrgent: a reading or a result: it may overtake what is not. The same for all messages of a topic, but
  ///   those that the spool repeats.
  /// - Returns: false if the message is larger than the queue: it is dropped.
  @discardableResult
  mutating func append(_ message: MQTTMessage, isUrgent: Bool = false) -> Bool {
    guard peer != nil || message.undelivered == .kept else {
      messages.notDelivered(message)
      return true
    }
    return messages.append(message, sequence: nextSequence(), lane: isUrgent ? .urgent : .bulk)
  }

  mutating func setState(_ topic: TopicName, _ payload: [UInt8], qos: QoS, isUrgent: Bool = false) {
    states.set(topic, payload, qos, sequence: nextSequence(), lane: laneOfState(isUrgent))
  }

  /// Publishes a retained payload until it is acknowledged: an empty one, which deletes the retained message (MQTT 5,
  /// 3.3.1.3), also on later connections, another one on this connection.
  mutating func clearState(_ topic: TopicName, leaving payload: [UInt8] = []) {
    states.set(topic, payload, .atLeastOnce, isLast: true, sequence: nextSequence(), lane: laneOfState(false))
  }

  /// Without a connection the state is not queued, as the next connection queues all state.
  private func laneOfState(_ isUrgent: Bool) -> Lane? { peer == nil ? nil : isUrgent ? .urgent : .bulk }

  mutating func releaseState(_ topic: TopicName) { states.remove(topic) }

  mutating func releaseDeletions(under prefix: String) { states.removeDeletions(under: prefix) }

  mutating func queueRefusedState() {
    if peer != nil { states.queueRefused(nextSequence()) }
  }

  private mutating func nextSequence() -> UInt64 {
    lastSequence += 1
    return lastSequence
  }

  // MARK: The connection

  /// - Parameter count: how much of the bulk lane may be sent until the next call; nil: all.
  mutating func allowBulk(_ count: Int?) { bulkAllowance = count }

  /// - Parameter broker: its place among several; another one has other limits.
  mutating func connected(_ connection: MQTTConnection, to broker: Int = 0) {
    peer = connection
    if broker != self.broker { (self.broker, sizeLimit) = (broker, SizeLimit()) }
    lastBefore = lastSequence
    states.queueAll()
  }

  /// Whether the message that ended the last connections is still to be sent.
  var isSizeSought: Bool { sizeLimit.isSought && !isEmpty }

  mutating func lasted() { sizeLimit.lasted() }

  /// The connection has ended by an error: ``disconnected()`` follows.
  /// - Parameter mayBeOfAMessage: whether one that was sent may be why.
  mutating func ended(mayBeOfAMessage: Bool) {
    guard mayBeOfAMessage else { return sizeLimit.ended([]) }
    let suspects = inFlight.filter { $0.source.isQueued }.map { (topic: $0.source.topic, bytes: $0.bytes) }
    sizeLimit.ended(suspects + (largestUnconfirmed.map { [$0] } ?? []))
  }

  mutating func disconnected() {
    peer = nil
    // Unacknowledged messages are older than the waiting ones. State is sent again anyway.
    while let source = inFlight.popLast()?.source {
      if case .message(let entry) = source { messages.putBack(entry) }
    }
    (oldest, largestUnconfirmed) = (nil, nil)
    states.removeLastPayloads()
    states.unqueueAll()
    messages.disconnected()
  }

  var hasOutcomes: Bool { !messages.outcomes.isEmpty }

  mutating func takeOutcomes() -> Outcomes {
    defer { messages.outcomes = Outcomes() }
    return messages.outcomes
  }

  /// The next packet to send; nil if there is none, no connection, or the window is full.
  mutating func next() -> Packet? {
    guard let peer else { return nil }
    while queuedCount > 0, let first = first() {
      guard !isWindowFull || qos(first.qos) == .atMostOnce else { return nil }
      let next = first.isState ? states.takeFirst(first.lane) : messages.takeFirst(first.lane)
      if first.lane == .bulk {
        sentUrgent = 0
        bulkAllowance = bulkAllowance.map { $0 - 1 }
      } else {
        sentUrgent += 1
      }
      guard var next else { continue }
      next.message.qos = qos(next.message.qos)
      if !hasProperties { (next.message.responseTopic, next.message.correlationData) = (nil, nil) }
      guard let reason = refusal(of: next, by: peer) else { return next }
      messages.outcomes.tooLarge.append((next.message.topic, reason))
      reject(next.source)
    }
    return nil
  }

  /// What ends the connection is found by what is acknowledged.
  private func qos(_ qos: QoS) -> QoS { sizeLimit.isSought ? .atLeastOnce : qos }

  private func refusal(of packet: Packet, by peer: MQTTConnection) -> MQTTRefusal? {
    if let most = peer.maximumPacketSize.map({ Int($0) }), packet.size > most { return .tooLarge(most: most) }
    let bytes = countedBytes(of: packet)
    return sizeLimit.forbids(bytes) ? .endsConnection(bytes: bytes) : nil
  }

  /// What the ``SizeLimit`` counts: mosquitto's `message_size_limit` the payload, `max_packet_size` the packet, here always the one
  /// with QoS 1: a limit that was found with QoS 1 holds for the same message with QoS 0.
  private func countedBytes(of packet: Packet) -> Int {
    guard !hasProperties else { return packet.message.payload.count }
    var packet = packet
    packet.message.qos = .atLeastOnce
    // Without the length of the properties.
    return packet.size - 1
  }

  /// Where the next packet is.
  private mutating func first() -> (isState: Bool, lane: Lane, qos: QoS, sequence: UInt64)? {
    var first: (isState: Bool, lane: Lane, qos: QoS, sequence: UInt64)?
    // Numbers start at 1, and each is used once, but for state that is queued together: they are never equal.
    func offer(_ isState: Bool, _ lane: Lane, _ qos: QoS, _ sequence: UInt64) {
      if sequence < first?.sequence ?? .max { first = (isState, lane, qos, sequence) }
    }
    let mayOvertake = hasBacklog && sentUrgent < Self.urgentShare
    for lane in Lane.allCases {
      if lane == .bulk, mayOvertake && first != nil || bulkAllowance == 0 { break }
      if let state = states.first(lane) { offer(true, lane, state.qos, state.sequence) }
      // A message of an earlier connection does not overtake the state of this one, unless no state may be sent now: it would
      // hold up later messages.
      if let message = messages.first(lane),
        lane == .bulk || !mayOvertake || bulkAllowance == 0 || message.sequence > lastBefore
      {
        offer(false, lane, message.message.qos, message.sequence)
      }
    }
    return first
  }

  /// `packet` was sent with the packet identifier `identifier`.
  mutating func sent(_ packet: Packet, as identifier: Int32) {
    if packet.message.qos == .atMostOnce {
      let bytes = countedBytes(of: packet)
      if case .state = packet.source, bytes > largestUnconfirmed?.bytes ?? 0 {
        largestUnconfirmed = (packet.source.topic, bytes)
      }
      complete(packet.source)
    } else {
      inFlight.append((identifier, packet.source, countedBytes(of: packet)))
    }
  }

  /// `packet` could not be sent; it becomes the next one again.
  mutating func unsent(_ packet: Packet) {
    switch packet.source {
    case .message(let entry): messages.putBack(entry)
    case .state(let version): states.putBack(version)
    case .once: break
    }
  }

  /// A PUBACK was received; `refusal`: why the broker has not accepted the message. Returns the topic, and what becomes of a message
  /// that is refused; nil if no such packet is in flight.
  @discardableResult
  mutating func acknowledged(
    _ identifier: Int32, _ refusal: MQTTRefusal? = nil
  ) -> (topic: TopicName, fate: RefusedMessage?)? {
    // Brokers usually acknowledge in order.
    guard let index = inFlight.firstIndex(where: { $0.packet == identifier }) else { return nil }
    let (_, source, bytes) = inFlight.remove(at: index)
    sizeLimit.acknowledged(source.topic, bytes)
    guard let refusal else {
      complete(source)
      return (source.topic, nil)
    }
    if refusal == .quotaExceeded, let message = source.returned { return (source.topic, .returned(message)) }
    if case .state(let version) = source, !refusal.isOfSize {
      if states.noteRefusal(of: version) { rejected += 1 }
      return (source.topic, .kept)
    }
    reject(source)
    return (source.topic, .dropped)
  }

  /// The message, which is not queued, can be sent to no broker, or to none that accepts it.
  mutating func reject(_ source: Source) {
    rejected += 1
    sizeLimit.rejected(source.topic)
    let count = messages.outcomes.completed.count
    complete(source)
    messages.outcomes.rejected += messages.outcomes.completed.count - count
  }

  /// The topic of the oldest packet in flight, if it was that for `limit` or longer: however slowly a broker acknowledges, each
  /// has its turn, but for those that it never acknowledges. Must be called from time to time.
  mutating func unacknowledged(for limit: Duration, at now: Moment) -> TopicName? {
    guard let first = inFlight.first else {
      oldest = nil
      return nil
    }
    if oldest?.packet != first.packet { oldest = (first.packet, now) }
    guard let oldest, oldest.since.duration(to: now) >= limit else { return nil }
    return first.source.topic
  }

  private mutating func complete(_ source: Source) {
    switch source {
    case .state(let version): states.complete(version)
    case .message(let entry):
      if let number = entry.message.number { messages.outcomes.completed.append(number) }
    case .once: break
    }
  }
}
