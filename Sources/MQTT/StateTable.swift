/// A part of ``Outbox``, the retained state: the newest payload of each topic, and the queue of topics to be sent.
///
/// A topic has a slot, which does not change: it is looked up once, when its state is set. It is queued at most once, in
/// one of the two lanes, and its payload is read when it is sent.
struct StateTable {
  /// A payload of a topic.
  struct Version {
    let topic: TopicName
    fileprivate let slot: Int
    /// Distinguishes a late PUBACK from that of a newer payload.
    fileprivate let number: UInt64
  }

  private struct State {
    var topic: TopicName
    var payload: [UInt8]
    var qos: QoS
    /// The sequence number of the payload.
    var version: UInt64
    /// The sequence number of the first payload: the order in which a new connection publishes the topics.
    var order: UInt64
    /// The topic's entry in a queue, if there is one.
    var queued: (sequence: UInt64, lane: Outbox.Lane)?
    /// Whether to remove the state when the broker has acknowledged it.
    var isCleared = false
  }

  private var states: [State] = []
  private var slots: [TopicName: Int] = [:]
  private var freeSlots: [Int] = []
  private var queue = Lanes<(slot: Int, sequence: UInt64)>()

  var queuedCount: Int { queue.count }
  var bulkCount: Int { queue[.bulk].count }

  /// - Parameters:
  ///   - sequence: its place among all that is queued.
  ///   - lane: nil: it is not to be sent before a new connection.
  mutating func set(
    _ topic: TopicName, _ payload: [UInt8], _ qos: QoS, isCleared: Bool, sequence: UInt64, lane: Outbox.Lane?
  ) {
    let slot = slots[topic] ?? makeSlot(of: topic, order: sequence)
    states[slot].payload = payload
    states[slot].qos = qos
    states[slot].version = sequence
    states[slot].isCleared = isCleared
    guard let lane else { return }
    let queued = states[slot].queued
    // An urgent one also if it is queued in the other lane: that entry is then skipped.
    if queued == nil || lane == .urgent && queued?.lane == .bulk { enqueue(slot, sequence, in: lane) }
  }

  private mutating func enqueue(_ slot: Int, _ sequence: UInt64, in lane: Outbox.Lane) {
    states[slot].queued = (sequence, lane)
    queue[lane].append((slot, sequence))
  }

  mutating func remove(_ topic: TopicName) {
    if let slot = slots[topic] { free(slot, of: topic) }
  }

  // MARK: The queue

  /// Queues every topic ahead of all messages, whose sequence numbers begin with 1.
  mutating func queueAll() {
    unqueueAll()
    for slot in slots.values.sorted(by: { states[$0].order < states[$1].order }) {
      enqueue(slot, 0, in: .bulk)
    }
  }

  mutating func unqueueAll() {
    while let entry = queue[.urgent].popFirst() ?? queue[.bulk].popFirst() { states[entry.slot].queued = nil }
  }

  /// What is first in the lane.
  mutating func first(_ lane: Outbox.Lane) -> (sequence: UInt64, qos: QoS)? {
    while let (slot, sequence) = queue[lane].first {
      if let queued = states[slot].queued, queued.lane == lane, queued.sequence == sequence {
        return (sequence, states[slot].qos)
      }
      // The state was removed, or is in the other lane; the slot may be in use by another.
      queue[lane].popFirst()
    }
    return nil
  }

  /// The packet of the ``first(_:)`` state.
  mutating func takeFirst(_ lane: Outbox.Lane, for peer: Outbox.Peer) -> Outbox.Packet? {
    guard let slot = queue[lane].popFirst()?.slot else { return nil }
    states[slot].queued = nil
    let state = states[slot]
    return Outbox.Packet(
      message: MQTTMessage(
        topic: state.topic, payload: state.payload, qos: min(state.qos, peer.maximumQoS), retain: true),
      source: .state(Version(topic: state.topic, slot: slot, number: state.version)))
  }

  /// Makes a state that could not be sent the first again, unless a newer payload is queued.
  mutating func putBack(_ version: Version) {
    let slot = version.slot
    guard slots[version.topic] == slot, states[slot].queued == nil else { return }
    states[slot].queued = (0, .bulk)
    queue[.bulk].prepend((slot, 0))
  }

  /// The payload need not be sent again on this connection.
  mutating func complete(_ version: Version) {
    let slot = version.slot
    guard states[slot].isCleared, states[slot].version == version.number else { return }
    free(slot, of: version.topic)
  }

  // MARK: Slots

  private mutating func makeSlot(of topic: TopicName, order: UInt64) -> Int {
    let state = State(topic: topic, payload: [], qos: .atMostOnce, version: order, order: order)
    let slot = freeSlots.popLast() ?? states.count
    if slot < states.count { states[slot] = state } else { states.append(state) }
    slots[topic] = slot
    return slot
  }

  /// An entry of the slot in the queue is skipped.
  private mutating func free(_ slot: Int, of topic: TopicName) {
    states[slot].isCleared = false
    states[slot].queued = nil
    slots[topic] = nil
    freeSlots.append(slot)
  }
}
