import Bridge
import Configuration
import Findings
import GATT
import MQTT

/// A topic of a kind that the gateway needs, with a name that no gateway uses.
struct TopicProbe: Sendable {
  enum Need: Sendable {
    case publish, receive, both
  }

  let topic: TopicName
  /// The filter as the gateway subscribes to it.
  let filter: TopicFilter
  let need: Need
  /// What the user reads: the topic with wildcards.
  let shown: String
  var payload: [UInt8] = []
  var isRetained = false

  /// What happened to the message on this topic.
  struct Outcome {
    let probe: TopicProbe
    let hasArrived: Bool
    var publishRefusal: MQTTRefusal?
    var subscribeRefusal: MQTTRefusal?
    private var need: Need { probe.need }

    /// Whether the result is final. With MQTT 5 a refused publication is reported before later messages come back.
    func isDecided(_ isMQTT5: Bool) -> Bool {
      hasArrived || publishRefusal != nil || subscribeRefusal != nil || (need == .publish && isMQTT5)
    }

    /// What is wrong; nil: nothing, as far as it can be known.
    func problem(_ isMQTT5: Bool) -> Problem? {
      if hasArrived { return nil }
      if let publishRefusal {
        return need == .receive ? nil : publishRefusal == .notAuthorized ? .publish : .refused
      }
      if let subscribeRefusal {
        // MQTT 3.1.1 has no reasons.
        return need == .publish ? nil : subscribeRefusal == .notAuthorized || !isMQTT5 ? .receive : .refused
      }
      switch need {
      case .both: return isMQTT5 ? .receive : .either
      case .receive: return isMQTT5 ? .receive : .unknown
      case .publish: return isMQTT5 ? nil : .unknown
      }
    }
  }

  enum Problem: Sendable, CaseIterable {
    /// The gateway may not publish.
    case publish
    /// What is published does not reach the gateway.
    case receive
    /// The broker refuses one of the two: MQTT 3.1.1 does not report which.
    case either
    /// The broker refuses it for another reason than its ACL.
    case refused
    /// MQTT 3.1.1: a message did not come back, but the gateway only needs the other direction.
    case unknown
  }
}

/// The topics that the gateway needs, with names that no gateway uses, and the findings about them.
struct TopicProbes: Sendable {
  /// A part of every topic of a probe.
  static let marker = "doctor-"

  /// The name of a device and a gateway that do not exist.
  let name = marker + RunID().description
  private let configuration: Configuration
  private let own: TopicMap

  init(_ configuration: Configuration, gateway: GatewayID) {
    self.configuration = configuration
    own = TopicMap(base: configuration.mqtt.baseTopic, gateway: gateway)
  }

  var isMQTT5: Bool { configuration.mqtt.protocolVersion == .v5 }
  private var base: String { own.base }
  private var prefix: String? {
    configuration.homeAssistant.discovery ? configuration.homeAssistant.prefix : nil
  }
  /// A topic for a retained message, and a filter with a wildcard for it, which no probe of the list uses.
  var retained: TopicName { topicName("\(base)/bridge/\(name)/state") }
  var retainedFilter: TopicFilter { topicFilter("\(base)/bridge/\(name)/+") }
  /// Where a message comes back that is published after a subscription.
  var barrier: TopicName { own.bridgeResponse(to: word) }
  /// No gateway accepts it as a request or has it as a property: those that receive it ignore it.
  private var word: String { "\(name).test" }

  var list: [TopicProbe] {
    guard let id = try? DeviceID(name) else { preconditionFailure("\(name) is no id") }
    let device = own.topics(of: id, .microbit)
    let value = device.properties[0]
    func probe(
      _ topic: TopicName, by filter: String? = nil, _ need: TopicProbe.Need, _ shown: String,
      _ payload: String = "", retain: Bool = false
    ) -> TopicProbe {
      TopicProbe(
        topic: topic, filter: filter.map(topicFilter) ?? TopicFilter(topic), need: need, shown: shown,
        payload: Array(payload.utf8), isRetained: retain)
    }
    let get = topicName("\(base)/\(name)/temperature/get")
    let all = topicName("\(base)/all/\(word)/set")
    let bridge = "\(base)/bridge/\(own.gateway)"
    // The gateway also receives it: that a user has deleted the device, and that another gateway has announced it.
    let announcement = prefix.map { prefix in
      probe(topicName("\(prefix)/device/\(name)/config"), .both, "\(prefix)/device/+/config", retain: true)
    }
    return [
      probe(value.value, .publish, "\(base)/+/temperature", retain: true),
      probe(value.result, .publish, "\(base)/+/+/result"),
      probe(device.readings, .publish, "\(base)/+/readings", "{}"),
      probe(device.availability, .both, "\(base)/+/availability", retain: true),
      probe(device.info, .both, "\(base)/+/info", retain: true),
      probe(value.set, by: "\(base)/\(name)/+/set", .receive, "\(base)/+/+/set"),
      probe(get, by: "\(base)/\(name)/+/get", .receive, "\(base)/+/+/get"),
      probe(all, by: "\(base)/all/+/set", .receive, "\(base)/all/+/set"),
      probe(own.bridgeRequest(word), by: "\(bridge)/request/#", .both, "\(bridge)/request/#"),
      probe(barrier, .both, "\(bridge)/response/#"),
      probe(retained, by: "\(base)/bridge/+/state", .both, "\(base)/bridge/+/state", retain: true),
    ] + [announcement].compactMap { $0 }
  }

  /// Where Home Assistant publishes that it is online; nil if nothing is announced to it.
  var status: TopicName? { prefix.map { topicName("\($0)/status") } }

  /// The filters, without those of topics that the gateway only publishes to, if the broker reports refused
  /// publications.
  var filters: [TopicFilter] {
    list.filter { !isMQTT5 || $0.need != .publish }.map(\.filter) + (status.map { [TopicFilter($0)] } ?? [])
  }

  /// The messages, numbered; first those that need not come back: a refusal is then reported before others have come back.
  var messages: [MQTTMessage] {
    let sorted = list.filter { $0.need == .publish } + list.filter { $0.need != .publish }
    return sorted.enumerated().map { number, probe in
      MQTTMessage(
        topic: probe.topic, payload: probe.payload, retain: probe.isRetained, number: Int64(number))
    }
  }

  func findings(_ outcomes: [TopicProbe.Outcome]) -> [Finding] {
    let problems = Dictionary(grouping: outcomes) { $0.problem(isMQTT5) }
    let found = TopicProbe.Problem.allCases.compactMap { kind in problems[kind].map { finding(kind, $0) } }
    return found.isEmpty ? [.ok(.topics, "the gateway may publish and receive all that it needs")] : found
  }

  private func finding(_ problem: TopicProbe.Problem, _ outcomes: [TopicProbe.Outcome]) -> Finding {
    let probes = outcomes.map(\.probe)
    let reason = outcomes.first.flatMap { $0.publishRefusal ?? $0.subscribeRefusal }
    let topics = probes.map(\.shown).joined(separator: ", ")
    let remedy = aclRemedy(for: probes)
    func refused(_ what: String) -> Finding {
      .fault(.topics, "the broker does not let the gateway \(what) \(topics)", remedy: remedy)
    }
    switch problem {
    case .publish: return refused("publish to")
    case .receive: return refused("receive")
    case .either: return refused("publish or receive")
    case .refused:
      return .fault(
        .topics, "the broker refuses \(topics)" + (reason.map { ": \($0)" } ?? ""),
        remedy: "see the broker's log")
    case .unknown:
      return .warning(
        .topics, "test messages did not come back, so the broker may not allow \(topics)", remedy: remedy)
    }
  }

  /// The lines of mosquitto's ACL file that allow the topics.
  func aclRemedy(for probes: [TopicProbe]) -> String {
    let isOwn = probes.contains { $0.shown.hasPrefix("\(base)/") }
    return Finding.aclRemedy(base: isOwn ? base : nil, prefix: prefix, user: configuration.mqtt.username)
  }
}
