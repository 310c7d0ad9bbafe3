/// A part of ``Outbox``, the retained state: the newest payload of each topic, and the queue of topics to be sent.
///
/// A topic is queued at most once, in one of the two lanes, and its payload is read when it is sent.
struct StateTable {
  /// A payload of a topic.
  struct Version {
    fileprivate let state: State
    /// Distinguishes a late PUBACK from that of a newer payload.
    fileprivate let payloadNumber: UInt64

    var topic: TopicName { state.topic }
  }

  /// A class, so that a topic is looked up once, when its state is set.
  fileprivate final class State {
    let topic: TopicName
    /// The sequence number of the first payload: the order in which a new connection publishes the topics.
    let order: UInt64
    var payload: [UInt8] = []
    var qos = QoS.atMostOnce
    /// The sequence number of the payload.
    var payloadNumber: UInt64
    /// The topic's entry in a queue, if there is one.
    var queued: (sequence: UInt64, lane: Outbox.Lane)?
    /// Whether the broker has refused the payload.
    var isRefused = false

    init(_ topic: TopicName, order: UInt64) {
      self.topic = topic
      self.order = order
      payloadNumber = order
    }
  }

  private var states: [TopicName: State] = [:]
  /// The topics of states that are removed when the broker has acknowledged them.
  private var deletions: Set<TopicName> = []
  private var queue = Lanes<(state: State, sequence: UInt64)>()

  var isEmpty: Bool { states.isEmpty }
  var queuedCount: Int { queue.count }
  var bulkCount: Int { queue[.bulk].count }

  /// - Parameters:
  ///   - isLast: whether the state is removed when the broker has acknowledged it.
  ///   - sequence: its place among all that is queued.
  ///   - lane: nil: it is not to be sent before a new connection.
  mutating func set(
    _ topic: TopicName, _ payload: [UInt8], _ qos: QoS, isLast: Bool = false, sequence: UInt64,
    lane: Outbox.Lane?
  ) {
    // Its place, and its order on later connections, are not those of a state that was to be the last.
    if !isLast, deletions.contains(topic) { remove(topic) }
    let state = states[topic] ?? add(topic, order: sequence)
    state.payload = payload
    state.qos = qos
    state.payloadNumber = sequence
    state.isRefused = false
    if isLast { deletions.insert(topic) }
    guard let lane else { return }
    // An urgent one also if it is queued in the other lane: that entry is then skipped.
    if state.queued == nil || lane == .urgent && state.queued?.lane == .bulk {
      enqueue(state, sequence, in: lane)
    }
  }

  private mutating func add(_ topic: TopicName, order: UInt64) -> State {
    let state = State(topic, order: order)
    states[topic] = state
    return state
  }

  private mutating func enqueue(_ state: State, _ sequence: UInt64, in lane: Outbox.Lane) {
    state.queued = (sequence, lane)
    queue[lane].append((state, sequence))
  }

  /// Forgets the topic's state. If it is in the queue, it is skipped there.
  mutating func remove(_ topic: TopicName) {
    states.removeValue(forKey: topic)?.queued = nil
    deletions.remove(topic)
  }

  /// Forgets the states that are to be deleted, of the topics that begin with `prefix`.
  mutating func removeDeletions(under prefix: String) {
    for topic in deletions where topic.hasPrefix(prefix) { remove(topic) }
  }

  /// Forgets the states that are the last of their topics, but delete nothing: they may be outdated on the next connection.
  mutating func removeLastPayloads() {
    for topic in deletions where states[topic]?.payload.isEmpty == false { remove(topic) }
  }

  // MARK: The queue

  /// Queues every topic ahead of all messages, whose sequence numbers begin with 1.
  mutating func queueAll() {
    unqueueAll()
    for state in states.values.sorted(by: { $0.order < $1.order }) { enqueue(state, 0, in: .bulk) }
  }

  /// Queues what the broker has refused, in the order of the topics; they share a sequence number.
  mutating func queueRefused(_ sequence: UInt64) {
    let refused = states.values.filter { $0.isRefused && $0.queued == nil }
    for state in refused.sorted(by: { $0.order < $1.order }) { enqueue(state, sequence, in: .bulk) }
  }

  mutating func unqueueAll() {
    while let entry = queue[.urgent].popFirst() ?? queue[.bulk].popFirst() { entry.state.queued = nil }
  }

  mutating func first(_ lane: Outbox.Lane) -> (sequence: UInt64, qos: QoS)? {
    while let (state, sequence) = queue[lane].first {
      if let queued = state.queued, queued.lane == lane, queued.sequence == sequence {
        return (sequence, state.qos)
      }
      // The state was removed, or is in the other lane.
      queue[lane].popFirst()
    }
    return nil
  }

  /// The packet of the ``first(_:)`` state.
  mutating func takeFirst(_ lane: Outbox.Lane) -> Outbox.Packet? {
    guard let state = queue[lane].popFirst()?.state else { return nil }
    state.queued = nil
    return Outbox.Packet(
      message: MQTTMessage(topic: state.topic, payload: state.payload, qos: state.qos, retain: true),
      source: .state(Version(state: state, payloadNumber: state.payloadNumber)))
  }

  /// Makes a state that could not be sent the first again, unless a newer payload is queued.
  mutating func putBack(_ version: Version) {
    guard isKnown(version), version.state.queued == nil else { return }
    version.state.queued = (0, .bulk)
    queue[.bulk].prepend((version.state, 0))
  }

  /// The payload need not be sent again on this connection.
  mutating func complete(_ version: Version) {
    guard version.state.payloadNumber == version.payloadNumber, isKnown(version) else { return }
    version.state.isRefused = false
    if deletions.contains(version.topic) { remove(version.topic) }
  }

  /// The broker may take the payload later.
  /// - Returns: whether it has not refused the same payload before.
  func noteRefusal(of version: Version) -> Bool {
    guard version.state.payloadNumber == version.payloadNumber else { return true }
    defer { version.state.isRefused = true }
    return !version.state.isRefused
  }

  /// Whether the state was not removed meanwhile.
  private func isKnown(_ version: Version) -> Bool { states[version.topic] === version.state }
}
