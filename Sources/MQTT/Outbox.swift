/// What is still to be said to the broker, in order, and what has been said and not yet acknowledged. Pure:
/// it knows no connection; its owner says when there is one, and asks for the next packet.
///
/// Two kinds of things go out. An *event* goes out once (or again, when the connection broke before its
/// PUBACK). Retained *state* is the newest payload of a topic: waiting twice makes no sense, so a topic waits
/// at most once and its payload is looked up when its turn comes; on every new connection all state goes out
/// again, ahead of the events that waited, since it says what is true now and is bounded by its topics.
/// Otherwise there is one order for both: the order in which they were given.
///
/// Every operation costs the same however much waits, apart from a new connection (all state is queued).
struct Outbox {
  /// What the broker on the other end can take.
  struct Peer {
    /// QoS 1 messages unacknowledged at most.
    var window: Int
    var maximumQoS = QoS.exactlyOnce
    /// The largest packet, in bytes; nil: any.
    var maximumPacketSize: Int?
    /// Whether a PUBLISH has properties: MQTT 5.
    var hasProperties = true
  }

  /// A PUBLISH to send now. It has left the queue: give it back to ``sent(_:as:)`` or ``unsent(_:)``.
  struct Packet {
    var topic: TopicName
    var payload: [UInt8]
    var qos: QoS
    var retain: Bool
    var responseTopic: TopicName?
    var correlationData: [UInt8]?
    fileprivate var source: Source
  }

  fileprivate enum Source {
    case event(Event)
    case state(TopicName, slot: Int, version: UInt64)
    /// For this connection only: never kept, never sent again.
    case once(TopicName)

    var topic: TopicName {
      switch self {
      case .event(let event): event.message.topic
      case .state(let topic, _, _), .once(let topic): topic
      }
    }
  }

  /// A class, as it is passed from hand to hand, and is large.
  fileprivate final class Event: Sendable {
    let message: MQTTMessage
    /// Its place in the order.
    let turn: UInt64
    /// The connection it was given in, or before whose successor: another one sends it as held.
    let epoch: UInt32

    init(_ message: MQTTMessage, turn: UInt64, epoch: UInt32) {
      self.message = message
      self.turn = turn
      self.epoch = epoch
    }

    var bytes: Int {
      message.topic.string.utf8.count + message.payload.count
        + (message.responseTopic?.string.utf8.count ?? 0) + (message.correlationData?.count ?? 0)
    }
  }

  private struct State {
    var topic: TopicName
    var payload: [UInt8]
    var qos: QoS
    /// Counts the values, so that a late PUBACK is not taken for one of a newer value.
    var version: UInt64
    /// Its place among the state that a new connection begins with: first set, first said.
    var order: UInt64
    /// The number of its turn in the queue, while it has one.
    var queued: UInt64?
    /// To be forgotten as soon as the broker has it.
    var isCleared = false

    func packet(qos: QoS, slot: Int) -> Packet {
      Packet(
        topic: topic, payload: payload, qos: qos, retain: true,
        source: .state(topic, slot: slot, version: version))
    }
  }

  private struct Turn {
    var slot: Int
    var turn: UInt64
  }

  private let limits: OutboxLimits
  private var peer: Peer?
  private var epoch: UInt32 = 0
  private var counter: UInt64 = 0
  private var events = Deque<Event>()
  private var eventBytes = 0
  /// State by its slot, which it keeps as long as it is there: a topic is looked up once, when it is given.
  private var states: [State] = []
  private var slots: [TopicName: Int] = [:]
  private var freeSlots: [Int] = []
  private var stateTurns = Deque<Turn>()
  private var inFlight = Deque<(packet: Int32, source: Source)>()

  /// Events given up because the queue was full, and messages that are larger than the broker takes or that it
  /// refused.
  private(set) var lost = 0
  private(set) var refused = 0
  /// Topics of the messages that turned out to be larger than the broker takes, until they are taken note of.
  private(set) var tooLarge: [TopicName] = []

  init(limits: OutboxLimits) {
    self.limits = limits
  }

  var queuedCount: Int { events.count + stateTurns.count }
  var inFlightCount: Int { inFlight.count }
  var isEmpty: Bool { events.isEmpty && stateTurns.isEmpty && inFlight.isEmpty }
  /// Whether the peer has to acknowledge something before it gets more of QoS 1.
  var isWindowFull: Bool { peer.map { inFlight.count >= $0.window } ?? false }

  // MARK: What is to be said

  mutating func append(_ message: MQTTMessage) {
    if message.endsWithConnection, peer == nil { return }
    let event = Event(message, turn: nextNumber(), epoch: epoch)
    eventBytes += event.bytes
    events.append(event)
    loseOldest()
  }

  mutating func setState(_ topic: TopicName, _ payload: [UInt8], qos: QoS) {
    change(topic, payload, qos, isCleared: false)
  }

  /// An empty retained payload is what makes a broker forget (MQTT 5, 3.3.1.3).
  mutating func clearState(_ topic: TopicName, qos: QoS) {
    change(topic, [], qos, isCleared: true)
  }

  /// The state of `topic` is somebody else's from now on: it is not said any more, and what the broker has stays.
  mutating func releaseState(_ topic: TopicName) {
    if let slot = slots[topic] { free(slot, of: topic) }
  }

  /// A message that is not queued: to be sent now or never.
  func packet(once message: MQTTMessage) -> Packet {
    var packet = Packet(
      topic: message.topic, payload: message.payload, qos: message.qos, retain: message.retain,
      source: .once(message.topic))
    if peer?.hasProperties == true { packet.responseTopic = message.responseTopic }
    return packet
  }

  private mutating func change(_ topic: TopicName, _ payload: [UInt8], _ qos: QoS, isCleared: Bool) {
    let number = nextNumber()
    let slot = slots[topic] ?? makeSlot(of: topic, order: number)
    states[slot].payload = payload
    states[slot].qos = qos
    states[slot].version = number
    states[slot].isCleared = isCleared
    // Without a connection there is nothing to queue for: the next one begins with all state.
    if peer != nil, states[slot].queued == nil {
      states[slot].queued = number
      stateTurns.append(Turn(slot: slot, turn: number))
    }
  }

  private mutating func makeSlot(of topic: TopicName, order: UInt64) -> Int {
    let state = State(topic: topic, payload: [], qos: .atMostOnce, version: order, order: order)
    let slot = freeSlots.popLast() ?? states.count
    if slot < states.count { states[slot] = state } else { states.append(state) }
    slots[topic] = slot
    return slot
  }

  // MARK: The connection

  mutating func connected(_ peer: Peer) {
    self.peer = peer
    epoch &+= 1
    stateTurns.removeAll()
    for slot in slots.values.sorted(by: { states[$0].order < states[$1].order }) {
      states[slot].queued = 0
      stateTurns.append(Turn(slot: slot, turn: 0))
    }
  }

  mutating func disconnected() {
    peer = nil
    // The unacknowledged events are older than all that wait. State is said anew anyway.
    while let (_, source) = inFlight.popLast() {
      if case .event(let event) = source { putBack(event) }
    }
    while let turn = stateTurns.popFirst() { states[turn.slot].queued = nil }
    loseOldest()
  }

  /// What to send now; nil when nothing waits, nobody listens, or the window is full.
  mutating func next() -> Packet? {
    guard let peer else { return nil }
    while true {
      let packet: Packet
      // Of equal turns there are none: events have theirs from 1, and each number is given once.
      if let turn = stateTurns.first, turn.turn < events.first?.turn ?? .max {
        guard states[turn.slot].queued == turn.turn else {
          // Forgotten since; the slot may be another's.
          _ = stateTurns.popFirst()
          continue
        }
        let qos = min(states[turn.slot].qos, peer.maximumQoS)
        if qos != .atMostOnce, isWindowFull { return nil }
        _ = stateTurns.popFirst()
        states[turn.slot].queued = nil
        packet = states[turn.slot].packet(qos: qos, slot: turn.slot)
      } else if let event = events.first {
        let qos = min(event.message.qos, peer.maximumQoS)
        if qos != .atMostOnce, isWindowFull { return nil }
        dropFirstEvent()
        if event.message.endsWithConnection, event.epoch != epoch { continue }
        packet = event.packet(qos: qos, isHeld: event.epoch != epoch, peer)
      } else {
        return nil
      }
      if let maximum = peer.maximumPacketSize, packet.size(hasProperties: peer.hasProperties) > maximum {
        refused += 1
        tooLarge.append(packet.topic)
        continue
      }
      return packet
    }
  }

  /// `packet` has gone out with the packet identifier `identifier`.
  mutating func sent(_ packet: Packet, as identifier: Int32) {
    if packet.qos == .atMostOnce {
      isDone(packet.source)
    } else {
      inFlight.append((identifier, packet.source))
    }
  }

  /// `packet` could not be sent, and is the next one again.
  mutating func unsent(_ packet: Packet) {
    switch packet.source {
    case .event(let event):
      putBack(event)
    case .state(let topic, let slot, _):
      guard slots[topic] == slot, states[slot].queued == nil else { return }
      states[slot].queued = 0
      stateTurns.prepend(Turn(slot: slot, turn: 0))
    case .once:
      break
    }
  }

  mutating func takeTooLarge() -> [TopicName] {
    defer { tooLarge = [] }
    return tooLarge
  }

  /// `packet` can be sent to no broker.
  mutating func unsendable(_ packet: Packet) {
    refused += 1
    isDone(packet.source)
  }

  /// The PUBACK for `identifier` has come; `isRefusal` when it says that the broker has not taken it. Returns
  /// the topic, or nil when no such packet is awaited.
  @discardableResult
  mutating func acknowledged(_ identifier: Int32, isRefusal: Bool = false) -> TopicName? {
    // Brokers acknowledge in order: it is the first one, but for the odd one.
    guard let index = (0..<inFlight.count).first(where: { inFlight[$0].packet == identifier }) else {
      return nil
    }
    let source = inFlight.remove(at: index).source
    if isRefusal { refused += 1 }
    isDone(source)
    return source.topic
  }

  private mutating func isDone(_ source: Source) {
    guard case .state(let topic, let slot, let version) = source, states[slot].isCleared,
      states[slot].version == version
    else { return }
    free(slot, of: topic)
  }

  /// A turn that the slot has in the queue is passed over.
  private mutating func free(_ slot: Int, of topic: TopicName) {
    states[slot].isCleared = false
    states[slot].queued = nil
    slots[topic] = nil
    freeSlots.append(slot)
  }

  // MARK: The queue

  private mutating func nextNumber() -> UInt64 {
    counter += 1
    return counter
  }

  private mutating func dropFirstEvent() {
    if let event = events.popFirst() { eventBytes -= event.bytes }
  }

  private mutating func putBack(_ event: Event) {
    events.prepend(event)
    eventBytes += event.bytes
  }

  private mutating func loseOldest() {
    while events.count > limits.events || eventBytes > limits.bytes {
      dropFirstEvent()
      lost += 1
    }
  }
}

extension Outbox.Event {
  fileprivate func packet(qos: QoS, isHeld: Bool, _ peer: Outbox.Peer) -> Outbox.Packet {
    var payload = message.payload
    if isHeld, let whenHeld = message.whenHeld { payload = whenHeld(payload) }
    var packet = Outbox.Packet(
      topic: message.topic, payload: payload, qos: qos, retain: message.retain, source: .event(self))
    if peer.hasProperties {
      packet.responseTopic = message.responseTopic
      packet.correlationData = message.correlationData
    }
    return packet
  }
}

extension Outbox.Packet {
  /// The whole PUBLISH packet in bytes (MQTT 5, 3.3; 3.1.1 has no properties).
  func size(hasProperties: Bool) -> Int {
    var remaining = 2 + topic.string.utf8.count + payload.count + (qos == .atMostOnce ? 0 : 2)
    if hasProperties {
      var properties = 0
      if let responseTopic { properties += 3 + responseTopic.string.utf8.count }
      if let correlationData { properties += 3 + correlationData.count }
      remaining += lengthOfLength(properties) + properties
    }
    return 1 + lengthOfLength(remaining) + remaining
  }

  /// Bytes of a Variable Byte Integer (MQTT 5, 1.5.5).
  private func lengthOfLength(_ value: Int) -> Int {
    switch value {
    case ..<128: 1
    case ..<16_384: 2
    case ..<2_097_152: 3
    default: 4
    }
  }
}
