import GATT
import MQTT

/// What a check of the broker has learned from it so far. Pure.
struct BrokerReplies {
  /// Where Home Assistant publishes that it is online.
  private let status: TopicName?
  private(set) var isConnected = false
  /// Why there is no connection, or no more.
  private(set) var failure: MQTTError?
  private(set) var isHomeAssistantOnline = false
  private var messages: [MQTTReceived] = []
  private(set) var refusals: [TopicName: MQTTRefusal] = [:]
  private var refusedSubscriptions: [TopicFilter: MQTTRefusal] = [:]
  /// The numbers of the messages that the broker has acknowledged.
  private(set) var acknowledged: Set<Int64> = []

  /// Retained messages of other clients may come first.
  private static let mostMessages = 1000

  init(status: TopicName?) { self.status = status }

  /// Connected, or failed for good.
  var isDecided: Bool { isConnected || failure != nil }

  /// - Parameter payload: nil: any.
  func has(_ topic: TopicName, _ payload: [UInt8]? = nil, retained: Bool = false) -> Bool {
    messages.contains {
      $0.topic == topic && (payload == nil || $0.payload == payload) && (!retained || $0.retain)
    }
  }

  /// Whether the first message on `topic` with this payload arrived before any retained one on `retained`.
  func has(_ topic: TopicName, _ payload: [UInt8], beforeRetained retained: TopicName) -> Bool {
    let first = messages.first {
      ($0.topic == topic && $0.payload == payload) || ($0.topic == retained && $0.retain)
    }
    return first?.topic == topic
  }

  func outcome(of probe: TopicProbe) -> TopicProbe.Outcome {
    TopicProbe.Outcome(
      probe: probe, hasArrived: has(probe.topic), publishRefusal: refusals[probe.topic],
      subscribeRefusal: refusedSubscriptions[probe.filter])
  }

  /// Whether the broker has answered anything after the login.
  var hasAnswered: Bool {
    !(messages.isEmpty && acknowledged.isEmpty && refusals.isEmpty && refusedSubscriptions.isEmpty)
  }

  mutating func add(_ event: MQTTEvent) {
    switch event {
    case .connected: isConnected = true
    case .connectFailed(let error): failure = failure ?? error
    case .disconnected(let error):
      isConnected = false
      failure = failure ?? error
    case .subscriptionRefused(let filter, let reason): refusedSubscriptions[filter] = reason
    case .publicationRefused(let topic, let reason, _): refusals[topic] = reason
    case .message(let message): add(message)
    case .completed(let numbers, _): acknowledged.formUnion(numbers)
    case .undelivered: break
    }
  }

  private mutating func add(_ message: MQTTReceived) {
    if message.topic == status {
      isHomeAssistantOnline = message.payload.elementsEqual("online".utf8)
    } else if messages.count < Self.mostMessages, message.topic.string.hasOccurrence(of: TopicProbes.marker) {
      messages.append(message)
    }
  }
}
