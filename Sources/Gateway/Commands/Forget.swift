import Bridge
import Configuration
import EventLoop
import Glibc
import HomeAssistant
import JSON
import MQTT
import Store

/// `forget`: clears what the broker retains of this gateway and of its devices, so that nothing of it is left in MQTT and
/// Home Assistant.
struct Forget: Sendable {
  let values: Arguments.Values
  /// Whether it does not ask.
  private var isConfirmed: Bool { values.has(.yes) }

  @LoopActor func run() async throws(CommandFailure) {
    let stored = try StoredGateway(configuredBy: values[.config])
    let (configuration, id) = (stored.configuration, stored.id)
    guard isConfirmed || isatty(STDIN_FILENO) != 0 else {
      throw CommandFailure(
        .usage, "forget asks before it clears anything: run it at a terminal, or add --yes")
    }
    if let running = try GatewayAccess.open(id.description) {
      running.close()
      throw Self.running(id)
    }
    // A gateway that is stopping has closed its socket, and may still publish.
    let database = StateFolder.databaseToRead(id, StateFolder.environment)
    for path in [database?.path, database?.ofService].compactMap({ $0 })
    where StateDatabase.isInUse(path: path) {
      throw Self.running(id)
    }
    let mqtt = configuration.mqtt
    var options = MQTTOptions(mqtt, clientID: "microbit-gateway-\(id)-forget", will: nil)
    options.maximumIncomingPacket = 2 << 20
    let topics = TopicMap(base: mqtt.baseTopic, gateway: id)
    let prefix = configuration.homeAssistant.prefix
    let messages = RetainedMessages(
      brokers: options.brokers[...], barrier: topics.bridgeResponse(to: "forget"),
      found: ForgottenTopics(topics, discoveryPrefix: prefix))
    let broker = BrokerSession(options, messages) { $0.add($1) }
    broker.start(["\(mqtt.baseTopic)/#", "\(prefix)/device/+/config"].compactMap { TopicFilter($0) })
    do throws(CommandFailure) {
      try await clear(broker, id)
    } catch {
      await broker.stop()
      throw error
    }
    await broker.stop()
  }

  /// The limit for the connection, for the retained messages, and for each 1000 messages that are cleared.
  private static let limit = Duration.seconds(15)

  @LoopActor private func clear(
    _ broker: BrokerSession<RetainedMessages>, _ id: GatewayID
  ) async throws(CommandFailure) {
    broker.client.publish(MQTTMessage(topic: broker.state.barrier, payload: [1]))
    try await wait(Self.limit, broker, "the broker has not sent its retained messages", until: \.isComplete)
    let found = broker.state.found
    guard !found.isOnline else { throw Self.running(id) }
    let topics = found.topicsToClear.compactMap { TopicName($0) }
    let place = broker.client.broker
    guard !topics.isEmpty else { return printOutput("\(place) retains nothing of the gateway \(id)") }
    let devices = found.devices.count
    let text =
      "\(topics.count) retained messages of the gateway \(id) and its \(devices) \(devices == 1 ? "device" : "devices")"
    if !isConfirmed {
      let question = "\(place) has \(text).\nClear them? Home Assistant removes the devices too. (y/n): "
      let answer = await Console().ask(question)
      guard ["y", "yes"].contains(answer?.lowercased()) else {
        throw CommandFailure(.refused, "nothing was cleared")
      }
    }
    broker.state.uncleared = Set(topics)
    for topic in topics { broker.client.clearState(topic) }
    try await wait(
      Self.limit * (1 + topics.count / 1000), broker,
      "the broker has not confirmed that all messages are cleared", until: \.uncleared.isEmpty)
    printOutput("cleared \(text)")
  }

  @LoopActor private func wait(
    _ limit: Duration, _ broker: BrokerSession<RetainedMessages>, _ problem: String,
    until isDone: @escaping (RetainedMessages) -> Bool
  ) async throws(CommandFailure) {
    let isDecided = await broker.wait(limit) { isDone($0) || $0.failure != nil }
    if let failure = broker.state.failure { throw CommandFailure(.unavailable, failure) }
    if !isDecided { throw CommandFailure(.unavailable, problem) }
  }

  private static func running(_ id: GatewayID) -> CommandFailure {
    CommandFailure(
      .unavailable,
      "the gateway \(id) is running, or still stopping, and would publish everything again: stop it first (sudo systemctl disable --now microbit-gateway)"
    )
  }
}

/// The retained messages at the broker, and which of them are those of one gateway.
struct ForgottenTopics: Sendable {
  private let topics: TopicMap
  private let discovery: String
  private var retained: [String: [UInt8]] = [:]

  init(_ topics: TopicMap, discoveryPrefix: String) {
    self.topics = topics
    discovery = "\(discoveryPrefix)/device/"
  }

  /// A retained message that the broker has sent for a subscription.
  mutating func add(_ topic: String, _ payload: [UInt8]) { retained[topic] = payload }

  /// Whether a gateway with this id is connected to the broker.
  var isOnline: Bool { retained[topics.bridgeState.string] == Array("online".utf8) }

  /// The ids of the devices that the gateway owns.
  var devices: Set<String> {
    var devices: Set<String> = []
    for (topic, payload) in retained {
      let levels = topic.dropFirst(topics.base.count + 1).split(separator: "/")
      guard topic.hasPrefix("\(topics.base)/"), levels.count == 2, levels[1] == "info",
        let info = try? JSONParser.parse(payload), info["owner"] == .string(topics.gateway.description)
      else { continue }
      devices.insert(String(levels[0]))
    }
    return devices
  }

  /// The topics that the gateway has published, in order.
  var topicsToClear: [String] {
    let devices = devices
    let own = "\(topics.base)/bridge/\(topics.gateway)/"
    return retained.filter { topic, payload in
      if topic.hasPrefix(own) { return true }
      // The entities of this gateway need its `state`.
      if topic.hasPrefix(discovery) {
        return Discovery.availability(in: payload).contains(topics.bridgeState.string)
      }
      guard topic.hasPrefix("\(topics.base)/") else { return false }
      let device = topic.dropFirst(topics.base.count + 1).prefix { $0 != "/" }
      return devices.contains(String(device))
    }.keys.sorted()
  }
}

/// What the broker has sent, and which messages it has still to clear.
private struct RetainedMessages {
  /// The brokers that have not failed.
  var brokers: ArraySlice<MQTTBroker>
  /// Comes back after the retained messages.
  let barrier: TopicName
  var found: ForgottenTopics
  /// Whether the broker has sent all retained messages.
  private(set) var isComplete = false
  /// The topics whose clearing the broker has not confirmed yet: it sends the empty message to all subscribers.
  var uncleared: Set<TopicName> = []
  private(set) var failure: String?

  mutating func add(_ event: MQTTEvent) {
    switch event {
    case .connected, .disconnected(nil), .undelivered, .completed: break
    case .connectFailed(let error), .disconnected(let error?):
      guard let broker = brokers.popFirst(), brokers.isEmpty else { return }
      failure = "\(error)\(error.hint(at: broker).map { ": \($0)" } ?? "")"
    case .subscriptionRefused(let filter, let reason):
      failure = "the broker refused the subscription to \(filter): \(reason)"
    case .publicationRefused(let topic, let reason, _):
      failure = "the broker refused to clear \(topic): \(reason)"
    case .message(let message) where message.retain: found.add(message.topic.string, message.payload)
    case .message(let message) where message.topic == barrier: isComplete = true
    case .message(let message): if message.payload.isEmpty { uncleared.remove(message.topic) }
    }
  }
}
