import Bridge
import Configuration
import EventLoop
import GATT
import Glibc
import JSON
import MQTT

/// `forget`: clears what the broker retains of this gateway and of its devices, so that nothing of it is left in MQTT and
/// Home Assistant.
public struct Forget: Sendable, Equatable {
  /// Nil: the default file.
  let configuration: String?
  /// Whether it does not ask.
  let isConfirmed: Bool

  /// - Parameters:
  ///   - configuration: nil: the default file.
  ///   - isConfirmed: whether it does not ask.
  public init(configuration: String?, isConfirmed: Bool) {
    self.configuration = configuration
    self.isConfirmed = isConfirmed
  }

  func run(on loop: EventLoop) async throws(CommandFailure) {
    let configuration = try GatewayAccess.configuration(configuration)
    let id = StateFolder.gatewayID(of: configuration)
    guard isConfirmed || isatty(STDIN_FILENO) != 0 else {
      throw CommandFailure(
        .usage, "forget asks before it clears anything: run it at a terminal, or add --yes")
    }
    if let (_, socket) = try GatewayAccess.running(id.description, isRequired: false) {
      close(socket)
      throw Self.running(id)
    }
    let broker = RetainedMessages(configuration, gateway: id, loop: loop)
    do throws(CommandFailure) {
      try await clear(broker, id, loop, "\(configuration.mqtt.host):\(configuration.mqtt.port)")
    } catch {
      await broker.stop()
      throw error
    }
    await broker.stop()
  }

  private func clear(
    _ broker: RetainedMessages, _ id: GatewayID, _ loop: EventLoop, _ place: String
  ) async throws(CommandFailure) {
    let found = try await broker.find()
    guard !found.isOnline else { throw Self.running(id) }
    let topics = found.topics
    guard !topics.isEmpty else { return print("\(place) retains nothing of the gateway \(id)") }
    let devices = found.devices.count
    let text =
      "\(topics.count) retained messages of the gateway \(id) and its \(devices) \(devices == 1 ? "device" : "devices")"
    if !isConfirmed {
      let question = "\(place) has \(text).\nClear them? Home Assistant removes the devices too. (y/n): "
      let answer = await Console(on: loop).ask(question)
      guard ["y", "yes"].contains(answer?.lowercased()) else {
        throw CommandFailure(.refused, "nothing was cleared")
      }
    }
    try await broker.clear(topics)
    print("cleared \(text)")
  }

  private static func running(_ id: GatewayID) -> CommandFailure {
    CommandFailure(
      .unavailable,
      "the gateway \(id) is running, and would publish everything again: stop it first (sudo systemctl disable --now microbit-gateway)"
    )
  }
}

/// Of the retained messages at the broker, those of one gateway.
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

  /// Those that the gateway has published, in order.
  var topicsToClear: [String] {
    let devices = devices
    let own = "\(topics.base)/bridge/\(topics.gateway)/"
    return retained.filter { topic, payload in
      if topic.hasPrefix(own) { return true }
      if topic.hasPrefix(discovery) { return isAnnouncement(payload) }
      guard topic.hasPrefix("\(topics.base)/") else { return false }
      let device = topic.dropFirst(topics.base.count + 1).prefix { $0 != "/" }
      return devices.contains(String(device))
    }.keys.sorted()
  }

  /// Whether the document is of this gateway: its entities need its `state`.
  private func isAnnouncement(_ payload: [UInt8]) -> Bool {
    let document = try? JSONParser.parse(payload)
    return document?["avty"]?.elements.contains { $0["t"] == .string(topics.bridgeState.string) } == true
  }
}

/// Finds and clears the retained messages of a gateway.
private final class RetainedMessages: @unchecked Sendable {
  // @unchecked: used on the loop's thread alone.

  struct Found {
    let topics: [TopicName]
    let devices: Set<String>
    let isOnline: Bool
  }

  private let mqtt: Configuration.MQTT
  private let client: MQTTClient
  private let loop: EventLoop
  private let filters: [TopicFilter]
  /// Comes back after the retained messages.
  private let barrier: TopicName
  private var found: ForgottenTopics
  /// The topics whose clearing the broker has not confirmed yet: it sends the empty message to all subscribers.
  private var uncleared: Set<TopicName> = []
  private var failure: String?
  private var waiter: Waiter<Void>?
  private var running: Task<Void, any Error>?

  /// For the connection, for the retained messages, and for each 1000 messages that are cleared.
  private static let limit = Duration.seconds(15)

  init(_ configuration: Configuration, gateway: GatewayID, loop: EventLoop) {
    self.loop = loop
    mqtt = configuration.mqtt
    let topics = TopicMap(base: mqtt.baseTopic, gateway: gateway)
    let prefix = configuration.homeAssistant.prefix
    found = ForgottenTopics(topics, discoveryPrefix: prefix)
    barrier = topics.bridgeResponse(to: "forget")
    filters = ["\(mqtt.baseTopic)/#", "\(prefix)/device/+/config"].compactMap { TopicFilter($0) }
    var options = MQTTOptions(mqtt, clientID: "microbit-gateway-\(gateway)-forget", will: nil)
    options.maximumIncomingPacket = 2 << 20
    client = MQTTClient(options: options, loop: loop) { _, _ in }
  }

  func stop() async {
    await client.stop(deadline: .seconds(2))
    running?.cancel()
  }

  func find() async throws(CommandFailure) -> Found {
    await client.setHandler { [weak self] in self?.receive($0) }
    client.subscribe(filters)
    client.publish(MQTTMessage(topic: barrier, payload: [1]))
    running = Task(executorPreference: loop) { [client] in try await client.run() }
    try await wait(Self.limit, "the broker has not sent its retained messages")
    return Found(
      topics: found.topicsToClear.compactMap { TopicName($0) }, devices: found.devices,
      isOnline: found.isOnline)
  }

  func clear(_ topics: [TopicName]) async throws(CommandFailure) {
    uncleared = Set(topics)
    for topic in topics { client.clearState(topic) }
    try await wait(
      Self.limit * (1 + topics.count / 1000), "the broker has not confirmed that all messages are cleared")
  }

  private func wait(_ limit: Duration, _ problem: String) async throws(CommandFailure) {
    let waiter = Waiter<Void>()
    self.waiter = waiter
    let timer = loop.timer(after: limit) { waiter.resume(.success(())) }
    try? await waiter.value()
    timer.cancel()
    let isDone = self.waiter == nil
    self.waiter = nil
    if let failure { throw CommandFailure(.unavailable, failure) }
    if !isDone { throw CommandFailure(.unavailable, problem) }
  }

  private func end() {
    waiter?.resume(.success(()))
    waiter = nil
  }

  private func receive(_ event: MQTTEvent) {
    switch event {
    case .connected: break
    case .connectFailed(let error), .disconnected(let error?):
      failure = "\(error)\(error.hint(host: mqtt.host, port: mqtt.port).map { ": \($0)" } ?? "")"
      end()
    case .disconnected(nil): break
    case .subscriptionRefused(let filter, let reason):
      failure = "the broker refused the subscription to \(filter): \(reason)"
      end()
    case .publicationRefused(let topic, let reason):
      failure = "the broker refused to clear \(topic): \(reason)"
      end()
    case .message(let message):
      if message.topic == barrier, !message.retain { return end() }
      if message.retain {
        found.add(message.topic.string, message.payload)
      } else if message.payload.isEmpty, uncleared.remove(message.topic) != nil, uncleared.isEmpty {
        end()
      }
    }
  }
}
