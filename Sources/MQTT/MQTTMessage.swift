/// How hard a message is held on to on its way.
public enum QoS: UInt8, Sendable, Comparable {
  /// Sent once, and forgotten.
  case atMostOnce = 0
  /// Sent until the other side has said that it has it: it may arrive twice.
  case atLeastOnce = 1
  /// Arrives once. Nothing here asks for it; a broker may name it as the highest it offers.
  case exactlyOnce = 2

  /// Whether `a` is held on to less than `b`: a broker names the highest that it takes.
  public static func < (a: QoS, b: QoS) -> Bool { a.rawValue < b.rawValue }
}

/// What a subscription leaves out. MQTT 5 (3.8.3.1); with 3.1.1 everything comes.
public struct SubscribeOptions: OptionSet, Sendable, Hashable {
  /// The Subscription Options byte of MQTT 5 (3.8.3.1), but for the QoS in its lowest two bits.
  public let rawValue: Int32
  /// Goes to the broker as it is: bits 6 and 7 and the two of the QoS stay 0.
  public init(rawValue: Int32) { self.rawValue = rawValue }

  /// What this client publishes itself.
  public static let noLocal = SubscribeOptions(rawValue: 0x04)
  /// What the broker has retained until now.
  public static let noRetained = SubscribeOptions(rawValue: 0x20)
  /// Messages keep the retain flag that they were published with, not only those from the broker's store. MQTT 5.
  public static let retainAsPublished = SubscribeOptions(rawValue: 0x08)
}

/// A message to publish.
public struct MQTTMessage: Sendable {
  /// One topic, never a filter: the broker gives the message to whoever's filter matches.
  public var topic: TopicName
  /// Any bytes. None at all, retained: the broker forgets what it keeps for the topic (MQTT 5, 3.3.1.3).
  public var payload: [UInt8]
  /// Goes out lower where the broker takes less (``MQTTConnection/maximumQoS``).
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
  /// Whether it is dropped when it cannot be sent on the present connection: of no use later.
  public var endsWithConnection = false

  /// Nothing is checked here: what turns out too large to be sent is counted as ``MQTTStatistics/refused``.
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
  /// What it was published to; the filter that it came by is not told, and may be one of several.
  public var topic: TopicName
  /// As sent; at most ``MQTTOptions/maximumIncomingPacket`` bytes.
  public var payload: [UInt8]
  /// The lower of what its sender and the subscription asked for (MQTT 5, 3.8.4).
  public var qos: QoS
  /// Whether it comes from the broker's store because of a subscription, and is not fresh.
  public var retain: Bool
  /// Where the sender wants its answer. MQTT 5.
  public var responseTopic: TopicName?
  /// What the sender knows its answer by, to be sent back unchanged. MQTT 5.
  public var correlationData: [UInt8]?
}
