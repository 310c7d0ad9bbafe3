import EventLoop
import MQTT
import Synchronization
import TestSupport

/// A subscriber to everything on a broker, and a publisher.
final class Observer: Sendable {
  struct Message: Sendable {
    /// Counts this observer's messages, from 1.
    let number: Int
    /// With `#link` after it for what connects a device with its gateway in Home Assistant, seconds after each document.
    let topic: String
    let payload: [UInt8]
    let qos: QoS
    /// Retained by the broker before the subscription.
    let retain: Bool
    let correlationData: [UInt8]?
    let arrived: ContinuousClock.Instant

    var text: String { String(decoding: payload, as: UTF8.self) }
    func json() throws -> JSON { try JSON.parse(payload) }
  }

  private static let created = Mutex(0)

  private let client: MQTTClient
  private let task: Task<Void, Never>
  private let name: String
  private let record = Record<Message>()

  /// Connects, and waits until the subscription is active.
  init(port: UInt16, username: String? = nil, password: String? = nil) async throws {
    let number = Self.created.withLock { created in
      created += 1
      return created
    }
    name = "observer-\(number)"
    var options = MQTTOptions(
      [MQTTBroker(host: "127.0.0.1", port: port)], clientID: name, username: username, password: password)
    options.backOff = BackOff(first: .milliseconds(20), longest: .milliseconds(100))
    options.maximumIncomingPacket = 16 << 20
    let client = await MQTTClient(options: options, log: { _, _ in })
    self.client = client
    let record = record
    await client.setHandler { event in
      guard case .message(let message) = event else { return }
      var topic = message.topic.string
      if topic.hasSuffix("/config"),
        String(decoding: message.payload, as: UTF8.self).contains("via_device")
      {
        topic += "#link"
      }
      record.append { [topic] index in
        Message(
          number: index + 1, topic: topic, payload: message.payload, qos: message.qos,
          retain: message.retain, correlationData: message.correlationData, arrived: .now)
      }
    }
    let all = try filter("#")
    loop.onLoop { client.subscribe([all]) }
    task = Task { await client.run() }
    try await synchronize()
  }

  deinit { task.cancel() }

  /// Returns when the subscription is active and all earlier messages have arrived, also after a restart of the broker.
  func synchronize() async throws {
    let mark = mark
    try await publish("\(name)/here", "")
    _ = try await message("\(name)/here", after: mark, within: Fixture.patience) { _ in true }
  }

  /// The number of the last message so far.
  var mark: Int { record.count }

  /// All messages so far, except those of ``synchronize()``.
  var messages: [Message] { record.elements.filter { !$0.topic.hasPrefix("observer-") } }

  func messages(on topic: String, after mark: Int = 0) -> [Message] {
    record.elements.dropFirst(mark).filter { $0.topic == topic }
  }

  /// The first message on `topic` after number `mark` that satisfies `condition`.
  func message(
    _ topic: String, after mark: Int = 0, within limit: Duration,
    where condition: @escaping @Sendable (Message) -> Bool
  ) async throws -> Message {
    try await record.first(from: mark, within: limit, "a message on \(topic)") {
      $0.topic == topic && condition($0)
    }
  }

  func publish(
    _ topic: String, _ payload: [UInt8], retain: Bool = false, responseTopic: String? = nil,
    correlationData: [UInt8]? = nil
  ) async throws {
    let message = MQTTMessage(
      topic: try name(topic), payload: payload, retain: retain, responseTopic: try responseTopic.map(name),
      correlationData: correlationData)
    loop.onLoop { [client] in client.publish(message) }
  }

  func publish(_ topic: String, _ payload: String, retain: Bool = false) async throws {
    try await publish(topic, Array(payload.utf8), retain: retain)
  }

  private func name(_ text: String) throws -> TopicName {
    guard let name = TopicName(text) else { throw Failure("no topic: \(text)") }
    return name
  }
}

private func filter(_ text: String) throws -> TopicFilter {
  guard let filter = TopicFilter(text) else { throw Failure("no filter: \(text)") }
  return filter
}
