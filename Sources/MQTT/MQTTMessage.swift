/// How hard a message is held on to on its way.
public enum QoS: UInt8, Sendable, Comparable {
  /// Sent once, and forgotten.
  case atMostOnce = 0
  /// Sent until the other side has said that it has it: it may arrive twice.
  case atLeastOnce = 1
  /// Arrives once. Nothing here asks for it; a broker may name it as the highest it offers.
  case exactlyOnce = 2

  public static func < (a: QoS, b: QoS) -> Bool { a.rawValue < b.rawValue }
}

/// What a subscription leaves out. MQTT 5 (3.8.3.1); with 3.1.1 everything comes.
public struct SubscribeOptions: OptionSet, Sendable, Hashable {
  public let rawValue: Int32
  public init(rawValue: Int32) { self.rawValue = rawValue }

  /// What this client publishes itself.
  public static let noLocal = SubscribeOptions(rawValue: 0x04)
  /// What the broker has retained until now.
  public static let noRetained = SubscribeOptions(rawValue: 0x20)
}

/// A message to publish.
public struct MQTTMessage: Sendable {
  public var topic: TopicName
  public var payload: [UInt8]
  public var qos: QoS
  /// Whether the broker keeps it for those who subscribe later. What is to stay true through a broker's
  /// restart is better given to ``MQTTClient/setState(_:_:qos:atOnce:)``.
  public var retain: Bool
  /// Where the answer is wanted. MQTT 5; left out for 3.1.1.
  public var responseTopic: TopicName?
  /// What the asker knows its answer by, at most 65535 bytes. MQTT 5; left out for 3.1.1.
  public var correlationData: [UInt8]?
  /// What makes of the payload what is to be sent when the message has waited through a disconnection.
  public var whenHeld: (@Sendable ([UInt8]) -> [UInt8])?

  public init(
    topic: TopicName, payload: [UInt8], qos: QoS = .atLeastOnce, retain: Bool = false,
    responseTopic: TopicName? = nil, correlationData: [UInt8]? = nil,
    whenHeld: (@Sendable ([UInt8]) -> [UInt8])? = nil
  ) {
    self.topic = topic
    self.payload = payload
    self.qos = qos
    self.retain = retain
    self.responseTopic = responseTopic
    self.correlationData = correlationData
    self.whenHeld = whenHeld
  }
}

/// A message that has arrived.
public struct MQTTReceived: Sendable, Equatable {
  public var topic: TopicName
  public var payload: [UInt8]
  public var qos: QoS
  /// Whether it comes from the broker's store because of a subscription, and is not fresh.
  public var retain: Bool
  /// Where the sender wants its answer, and what it knows the answer by. MQTT 5.
  public var responseTopic: TopicName?
  public var correlationData: [UInt8]?
}
