import Bridge
import Configuration
import EventLoop
import Findings
import MQTT

/// Tries each broker that is configured; of several, whether they are a cluster.
struct ClusterCheck {
  /// `mqtt` and `home_assistant` of it are used.
  let configuration: Configuration
  /// The id whose topics are tried.
  let gateway: GatewayID
  /// How long a connection to a broker may take.
  var patience = Duration.seconds(15)

  var brokers: [MQTTBroker] { configuration.mqtt.addresses }

  /// The limit for a connection, and for a message.
  private static let limit = Duration.seconds(5)

  /// Takes at most about 30 s for each broker.
  @LoopActor func run() async -> [Finding] {
    var results: [(broker: MQTTBroker, findings: [Finding])] = []
    for broker in brokers {
      let check = BrokerCheck(
        configuration: configuration, broker: broker, gateway: gateway, patience: patience)
      results.append((broker, await check.run()))
    }
    if results.count == 1 { return results[0].findings }
    let usable = results.filter { !$0.findings.contains { $0.check == .broker && $0.level == .fault } }
    var found = results.flatMap { broker, findings in
      findings.compactMap { finding -> Finding? in
        let text = "\(broker): \(finding.text)"
        switch finding.level {
        // Usable topics are reported once.
        case .ok: return finding.check == .broker || broker == usable.first?.broker ? finding : nil
        case .fault where finding.check != .broker || usable.isEmpty:
          return .fault(finding.check, text, remedy: finding.remedy ?? "")
        case .warning, .fault:
          return .warning(finding.check, text, remedy: finding.remedy ?? "")
        }
      }
    }
    guard let first = usable.first?.broker else { return found }
    for (other, _) in usable.dropFirst() where await !isReached(other, from: first) {
      found.append(
        .fault(
          .broker, "what is published at \(first) does not arrive at \(other)",
          remedy: "mqtt.hosts is for the nodes of one cluster: join them, or choose one, with mqtt.host"))
    }
    return found
  }

  /// Whether a message that is published at one broker arrives at the other.
  @LoopActor private func isReached(_ other: MQTTBroker, from first: MQTTBroker) async -> Bool {
    let probes = TopicProbes(configuration, gateway: gateway)
    let (sender, receiver) = (session(at: first, probes, "-sender"), session(at: other, probes, "-receiver"))
    sender.start([])
    receiver.start([TopicFilter(probes.barrier)])
    // The receiver's own message comes back after the subscription is made.
    receiver.client.publish(MQTTMessage(topic: probes.barrier, payload: [0]))
    _ = await receiver.wait(Self.limit) { $0.has(probes.barrier, [0]) }
    sender.client.publish(MQTTMessage(topic: probes.barrier, payload: [1]))
    let isReached = await receiver.wait(Self.limit) { $0.has(probes.barrier, [1]) }
    await sender.stop()
    await receiver.stop()
    return isReached
  }

  @LoopActor private func session(
    at broker: MQTTBroker, _ probes: TopicProbes, _ role: String
  ) -> BrokerSession<BrokerReplies> {
    var options = MQTTOptions(
      configuration.mqtt, clientID: "microbit-gateway-\(probes.name)\(role)", will: nil)
    options.brokers = [broker]
    return BrokerSession(options, BrokerReplies(status: nil)) { $0.add($1) }
  }
}
