/// The queue of messages to the broker, and those sent but not acknowledged. Pure: its owner reports the connection, and
/// asks for the next packet.
///
/// Two kinds of messages are queued. An *event* is sent once (or again, if the connection ends before its PUBACK).
/// Retained *state* is the newest payload of a topic: a topic is queued at most once, and its payload is read when it is
/// sent. On every new connection all state is sent again, ahead of the waiting events, as it is current and bounded by
/// the number of topics. Otherwise messages of both kinds are sent in the order in which they were queued.
///
/// The cost of every operation is independent of the queue's length, except for a new connection, which queues all state.
struct Outbox {
  /// The broker's limits.
  struct Peer {
    /// The maximum of unacknowledged QoS 1 messages.
    var window: Int
    var maximumQoS = QoS.exactlyOnce
    /// The largest packet, in bytes; nil: unlimited.
    var maximumPacketSize: Int?
    /// Whether PUBLISH has properties: MQTT 5.
    var hasProperties = true
  }

  /// A PUBLISH to send now. It has been removed from the queue: pass it to ``sent(_:as:)`` or ``unsent(_:)``.
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
    /// Not queued, and never sent again.
    case once(TopicName)

    var topic: TopicName {
      switch self {
      case .event(let event): event.message.topic
      case .state(let topic, _, _), .once(let topic): topic
      }
    }
  }

  /// A class, as it is large and often passed.
  fileprivate final class Event: Sendable {
    let message: MQTTMessage
    let sequence: UInt64
    /// The connection during or after which it was queued; on any other it is a replay.
    let epoch: UInt32

    init(_ message: MQTTMessage, sequence: UInt64, epoch: UInt32) {
      self.message = message
      self.sequence = sequence
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
    /// Counts the values, to tell a late PUBACK from that of a newer value.
    var version: UInt64
    /// The order in which topics were first set, in which a new connection publishes them.
    var order: UInt64
    /// The sequence number of its entry in the queue, if there is one.
    var queued: UInt64?
    /// To be removed when the broker has acknowledged it.
    var isCleared = false

    func packet(qos: QoS, slot: Int) -> Packet {
      Packet(
        topic: topic, payload: payload, qos: qos, retain: true,
        source: .state(topic, slot: slot, version: version))
    }
  }

  private struct QueuedState {
    var slot: Int
    var sequence: UInt64
  }

  private let limits: OutboxLimits
  private var peer: Peer?
  private var epoch: UInt32 = 0
  private var lastSequence: UInt64 = 0
  private var events = Deque<Event>()
  private var eventBytes = 0
  /// State by slot, which does not change: a topic is looked up once, when its state is set.
  private var states: [State] = []
  private var slots: [TopicName: Int] = [:]
  private var freeSlots: [Int] = []
  private var queuedStates = Deque<QueuedState>()
  private var inFlight = Deque<(packet: Int32, source: Source)>()

  /// Events dropped because the queue was full, and messages that are larger than the broker accepts or that it refused.
  private(set) var lost = 0
  private(set) var refused = 0
  /// Topics of messages larger than the broker accepts, until ``takeTooLarge()``.
  private(set) var tooLarge: [TopicName] = []

  init(limits: OutboxLimits) { self.limits = limits }

  var queuedCount: Int { events.count + queuedStates.count }
  var inFlightCount: Int { inFlight.count }
  var isEmpty: Bool { events.isEmpty && queuedStates.isEmpty && inFlight.isEmpty }
  /// Whether QoS 1 messages have to wait for a PUBACK.
  var isWindowFull: Bool { peer.map { inFlight.count >= $0.window } ?? false }

  // MARK: Queueing

  mutating func append(_ message: MQTTMessage) {
    if message.endsWithConnection, peer == nil { return }
    let event = Event(message, sequence: nextSequence(), epoch: epoch)
    eventBytes += event.bytes
    events.append(event)
    dropOldest()
  }

  mutating func setState(_ topic: TopicName, _ payload: [UInt8], qos: QoS) {
    change(topic, payload, qos, isCleared: false)
  }

  /// Publishes an empty retained payload, which deletes the retained message (MQTT 5, 3.3.1.3).
  mutating func clearState(_ topic: TopicName, qos: QoS) {
    change(topic, [], qos, isCleared: true)
  }

  /// Removes the state of `topic`, but leaves the retained message.
  mutating func releaseState(_ topic: TopicName) {
    if let slot = slots[topic] { free(slot, of: topic) }
  }

  /// A packet of a message that is not queued: to be sent now or never.
  func packet(once message: MQTTMessage) -> Packet {
    var packet = Packet(
      topic: message.topic, payload: message.payload, qos: message.qos, retain: message.retain,
      source: .once(message.topic))
    if peer?.hasProperties == true { packet.responseTopic = message.responseTopic }
    return packet
  }

  private mutating func change(_ topic: TopicName, _ payload: [UInt8], _ qos: QoS, isCleared: Bool) {
    let sequence = nextSequence()
    let slot = slots[topic] ?? makeSlot(of: topic, order: sequence)
    states[slot].payload = payload
    states[slot].qos = qos
    states[slot].version = sequence
    states[slot].isCleared = isCleared
    // Not queued without a connection, as the next one queues all state.
    if peer != nil, states[slot].queued == nil {
      states[slot].queued = sequence
      queuedStates.append(QueuedState(slot: slot, sequence: sequence))
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
    queuedStates.removeAll()
    for slot in slots.values.sorted(by: { states[$0].order < states[$1].order }) {
      states[slot].queued = 0
      queuedStates.append(QueuedState(slot: slot, sequence: 0))
    }
  }

  mutating func disconnected() {
    peer = nil
    // Unacknowledged events are older than the waiting ones. State is sent again anyway.
    while let (_, source) = inFlight.popLast() {
      if case .event(let event) = source { putBack(event) }
    }
    while let entry = queuedStates.popFirst() { states[entry.slot].queued = nil }
    dropOldest()
  }

  /// The next packet to send; nil if there is none, no connection, or the window is full.
  mutating func next() -> Packet? {
    guard let peer else { return nil }
    while true {
      let packet: Packet
      // Events start at 1, and each number is used once: they are never equal.
      if let entry = queuedStates.first, entry.sequence < events.first?.sequence ?? .max {
        guard states[entry.slot].queued == entry.sequence else {
          // The state was removed; the slot may be in use by another.
          _ = queuedStates.popFirst()
          continue
        }
        let qos = min(states[entry.slot].qos, peer.maximumQoS)
        if qos != .atMostOnce, isWindowFull { return nil }
        _ = queuedStates.popFirst()
        states[entry.slot].queued = nil
        packet = states[entry.slot].packet(qos: qos, slot: entry.slot)
      } else if let event = events.first {
        let qos = min(event.message.qos, peer.maximumQoS)
        if qos != .atMostOnce, isWindowFull { return nil }
        dropFirstEvent()
        if event.message.endsWithConnection, event.epoch != epoch { continue }
        packet = event.packet(qos: qos, isReplay: event.epoch != epoch, peer)
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

  /// `packet` was sent with the packet identifier `identifier`.
  mutating func sent(_ packet: Packet, as identifier: Int32) {
    if packet.qos == .atMostOnce {
      complete(packet.source)
    } else {
      inFlight.append((identifier, packet.source))
    }
  }

  /// `packet` could not be sent; it becomes the next one again.
  mutating func unsent(_ packet: Packet) {
    switch packet.source {
    case .event(let event):
      putBack(event)
    case .state(let topic, let slot, _):
      guard slots[topic] == slot, states[slot].queued == nil else { return }
      states[slot].queued = 0
      queuedStates.prepend(QueuedState(slot: slot, sequence: 0))
    case .once:
      break
    }
  }

  mutating func takeTooLarge() -> [TopicName] {
    defer { tooLarge = [] }
    return tooLarge
  }

  /// `packet` cannot be sent to any broker.
  mutating func unsendable(_ packet: Packet) {
    refused += 1
    complete(packet.source)
  }

  /// A PUBACK was received; `isRefusal`: the broker has not accepted the message. Returns the topic, or nil if no such
  /// packet is in flight.
  @discardableResult
  mutating func acknowledged(_ identifier: Int32, isRefusal: Bool = false) -> TopicName? {
    // Brokers usually acknowledge in order.
    guard let index = (0..<inFlight.count).first(where: { inFlight[$0].packet == identifier }) else {
      return nil
    }
    let source = inFlight.remove(at: index).source
    if isRefusal { refused += 1 }
    complete(source)
    return source.topic
  }

  private mutating func complete(_ source: Source) {
    guard case .state(let topic, let slot, let version) = source, states[slot].isCleared,
      states[slot].version == version
    else { return }
    free(slot, of: topic)
  }

  /// An entry of the slot in the queue is skipped.
  private mutating func free(_ slot: Int, of topic: TopicName) {
    states[slot].isCleared = false
    states[slot].queued = nil
    slots[topic] = nil
    freeSlots.append(slot)
  }

  // MARK: The queue

  private mutating func nextSequence() -> UInt64 {
    lastSequence += 1
    return lastSequence
  }

  private mutating func dropFirstEvent() {
    if let event = events.popFirst() { eventBytes -= event.bytes }
  }

  private mutating func putBack(_ event: Event) {
    events.prepend(event)
    eventBytes += event.bytes
  }

  private mutating func dropOldest() {
    while events.count > limits.events || eventBytes > limits.bytes {
      dropFirstEvent()
      lost += 1
    }
  }
}

extension Outbox.Event {
  fileprivate func packet(qos: QoS, isReplay: Bool, _ peer: Outbox.Peer) -> Outbox.Packet {
    var payload = message.payload
    if isReplay, let replayTransform = message.replayTransform { payload = replayTransform(payload) }
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
  /// The size of the PUBLISH packet in bytes (MQTT 5, 3.3; 3.1.1 has no properties).
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

  /// The size of a Variable Byte Integer (MQTT 5, 1.5.5).
  private func lengthOfLength(_ value: Int) -> Int {
    switch value {
    case ..<128: 1
    case ..<16_384: 2
    case ..<2_097_152: 3
    default: 4
    }
  }
}
