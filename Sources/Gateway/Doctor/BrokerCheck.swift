import Bridge
import Configuration
import EventLoop
import Findings
import MQTT

/// Connects to one broker as the gateway does, and tries every kind of topic that the gateway needs.
///
/// The check uses a client id and topics of its own, so that a running gateway is not disturbed, and leaves nothing retained:
/// what it publishes is empty or not retained, except one message, which is also removed if the connection is lost.
struct BrokerCheck {
  /// `mqtt` and `home_assistant` of it are used.
  let configuration: Configuration
  /// The broker that is tried.
  let broker: MQTTBroker
  /// The id whose topics are tried.
  let gateway: GatewayID
  /// How long a connection may take, with all attempts.
  var patience = Duration.seconds(25)

  /// The limit of one attempt to connect, at one address of the host.
  private static let connectLimit = Duration.seconds(5)
  /// The limit for the test messages to come back.
  private static let returnLimit = Duration.seconds(3)

  /// If the broker cannot be used, the only finding says why. Takes at most about 30 s.
  @LoopActor func run() async -> [Finding] {
    let probes = TopicProbes(configuration, gateway: gateway)
    // An empty retained message: removes the one that the check leaves if it is interrupted.
    let will = MQTTMessage(topic: probes.retained, payload: [], retain: true)
    var options = MQTTOptions(configuration.mqtt, clientID: "microbit-gateway-\(probes.name)", will: will)
    options.brokers = [broker]
    options.connectTimeout = Self.connectLimit
    options.backOff = BackOff(first: .milliseconds(100), longest: .milliseconds(100), spread: 0)
    let session = BrokerSession(options, BrokerReplies(status: probes.status)) { $0.add($1) }
    session.start(probes.filters)
    let findings = await check(session, probes)
    await session.stop()
    return findings
  }

  @LoopActor private func check(
    _ session: BrokerSession<BrokerReplies>, _ probes: TopicProbes
  ) async -> [Finding] {
    guard await session.wait(patience, until: \.isDecided), session.state.isConnected else {
      return [fault(session.state.failure ?? .timedOut(.connect))]
    }
    let (messages, list) = (probes.messages, probes.list)
    for message in messages { session.client.publish(message) }
    let isMQTT5 = probes.isMQTT5
    _ = await session.wait(Self.returnLimit) { replies in
      !replies.isConnected
        || replies.acknowledged.count == messages.count
          && list.allSatisfy { replies.outcome(of: $0).isDecided(isMQTT5) }
    }
    if session.state.isConnected, !session.state.hasAnswered { return [silence] }
    let unacknowledged = messages.first { !session.state.acknowledged.contains($0.number ?? 0) }
    let outcomes = list.map { session.state.outcome(of: $0) }
    let retained = await checkRetained(session, probes)
    // A broker may end the connection of a client that publishes what it may not.
    if let failure = session.state.failure {
      return [
        .fault(
          .broker, "the connection ended while topics were tried: \(failure)",
          remedy: "\(probes.aclRemedy(for: list)), and see the broker's log")
      ]
    }
    let size = await checkSize(session, probes)
    let connection = unacknowledged.map { fault(.unacknowledged($0.topic)) } ?? .ok(.broker, connectedText)
    return [connection] + probes.findings(outcomes)
      + [size, retained, homeAssistant(session)].compactMap { $0 }
  }

  /// What announces a device to Home Assistant has about so many bytes.
  private static let size = 16 << 10

  /// Whether the broker takes a message of the size that the gateway sends.
  @LoopActor private func checkSize(
    _ session: BrokerSession<BrokerReplies>, _ probes: TopicProbes
  ) async -> Finding? {
    // If the topic is not allowed, that has been found already.
    guard session.state.has(probes.barrier) else { return nil }
    let payload = [UInt8](repeating: UInt8(ascii: " "), count: Self.size)
    session.client.publish(MQTTMessage(topic: probes.barrier, payload: payload))
    _ = await session.wait(Self.returnLimit) {
      !$0.isConnected || $0.has(probes.barrier, payload) || $0.refusals[probes.barrier] != nil
    }
    let replies = session.state
    guard !replies.has(probes.barrier, payload) else { return nil }
    let what =
      switch replies.refusals[probes.barrier] {
      case .tooLarge(let most?)?: "takes messages of at most \(most) bytes"
      case let reason?: "does not take a message of \(Self.size) bytes: \(reason)"
      case nil where !replies.isConnected: "ends the connection at a message of \(Self.size) bytes"
      case nil: "does not return a message of \(Self.size) bytes"
      }
    return .fault(
      .topics, "the broker \(what): devices and what announces them need more", remedy: Finding.sizeRemedy)
  }

  private func fault(_ error: MQTTError) -> Finding {
    .fault(.broker, error.description, remedy: error.hint(at: broker) ?? "see the broker's log")
      .coded("no_broker", ["reason": error.description, "cause": error.code])
  }

  private var silence: Finding {
    let text = "the broker does not answer after the login: long packets may be lost on the way (MTU)"
    return .fault(
      .broker, text,
      remedy:
        "ping -M do -s 1400 \(broker.host): if that fails, lower the MTU of the network or VPN; see the broker's log"
    ).coded("no_broker", ["reason": text, "cause": "broker_lost"])
  }

  var connectedText: String {
    let mqtt = configuration.mqtt
    let login =
      mqtt.username.map { " as the user \($0)" }
      ?? (mqtt.tls?.certFile == nil ? " without a login" : " with a client certificate")
    return "connected to \(broker) with MQTT \(mqtt.protocolVersion.rawValue)"
      + (mqtt.tls == nil ? "" : " and TLS") + login
  }

  /// Whether a message that is retained reaches a later subscription with a wildcard, and before what is published after
  /// the subscription: on that order the gateway relies.
  @LoopActor private func checkRetained(
    _ session: BrokerSession<BrokerReplies>, _ probes: TopicProbes
  ) async -> Finding? {
    // If the topic is not allowed, that has been found already.
    guard session.state.has(probes.retained) else { return nil }
    let payload = Array("offline".utf8)
    session.client.publish(MQTTMessage(topic: probes.retained, payload: payload, retain: true))
    // Retained before the subscription.
    _ = await session.wait(Self.returnLimit) { !$0.isConnected || $0.has(probes.retained, payload) }
    session.client.subscribe([probes.retainedFilter])
    session.client.publish(MQTTMessage(topic: probes.barrier, payload: payload))
    let isDelivered = await session.wait(Self.returnLimit) {
      !$0.isConnected || $0.has(probes.retained, payload, retained: true)
    }
    session.client.publish(MQTTMessage(topic: probes.retained, payload: [], retain: true))
    if isDelivered {
      return session.state.has(probes.barrier, payload, beforeRetained: probes.retained)
        ? .warning(
          .retained,
          "the broker delivers retained messages late: gateways may not know in time which of them owns a device",
          remedy: "with several gateways, use a broker that keeps the order, such as mosquitto")
        : .ok(.retained, "retained messages and subscriptions with wildcards work")
    }
    return .fault(
      .retained,
      "the broker does not deliver retained messages to subscriptions with wildcards: Home Assistant would find no device",
      remedy: "use a broker that does, such as mosquitto (RabbitMQ does not)")
  }

  @LoopActor private func homeAssistant(_ session: BrokerSession<BrokerReplies>) -> Finding? {
    guard configuration.homeAssistant.discovery else { return nil }
    return .ok(
      .homeAssistant,
      session.state.isHomeAssistantOnline
        ? "Home Assistant is online"
        : "Home Assistant was not seen, which is normal: it sends a message only when it starts")
  }
}
