/// The quality of service of a message.
public enum QoS: UInt8, Sendable {
  /// Sent once, unacknowledged.
  case atMostOnce = 0
  /// Sent until acknowledged: may be received twice.
  case atLeastOnce = 1
}

/// Options of a subscription (MQTT 5, 3.8.3.1). With 3.1.1 all but ``atMostOnce`` are ignored.
public struct SubscribeOptions: OptionSet, Sendable, Hashable {
  /// The Subscription Options byte without the QoS in its lowest two bits; above it, what is not part of it.
  public let rawValue: Int32
  /// The lowest byte of `rawValue` is sent to the broker unchanged: bits 6 and 7 and the QoS must be 0.
  public init(rawValue: Int32) { self.rawValue = rawValue }

  /// Do not receive messages published by this client.
  public static let noLocal = SubscribeOptions(rawValue: 0x04)
  /// Receive with QoS 0: for many retained messages, of which brokers with QoS 1 may drop those that do not fit into a
  /// queue (mosquitto: 1000).
  public static let atMostOnce = SubscribeOptions(rawValue: 0x100)
  /// Do not receive messages retained before the subscription.
  public static let noRetained = SubscribeOptions(rawValue: 0x20)
  /// Messages keep the retain flag that they were published with.
  public static let retainAsPublished = SubscribeOptions(rawValue: 0x08)
}

/// A message to publish.
public struct MQTTMessage: Sendable {
  /// The topic to publish to.
  public var topic: TopicName
  /// Any bytes. An empty retained payload deletes the retained message (MQTT 5, 3.3.1.3).
  public var payload: [UInt8]
  /// How it is sent to the broker.
  public var qos: QoS
  /// Whether the broker retains it for later subscribers. For state that is to be published again after every connect,
  /// use ``MQTTClient/setState(_:_:qos:isUrgent:)``.
  public var retain: Bool
  /// The topic for the reply. MQTT 5; omitted with 3.1.1.
  public var responseTopic: TopicName?
  /// Identifies the reply, at most 65535 bytes. MQTT 5; omitted with 3.1.1.
  public var correlationData: [UInt8]?
  /// See ``Undelivered``.
  public var undelivered = Undelivered.kept
  /// If not nil, ``MQTTEvent/completed(_:rejected:)`` names it when the message was acknowledged (with QoS 0: sent) or rejected.
  public var number: Int64?

  /// What becomes of a message if there is no connection, the connection ends before the broker has acknowledged it, or the queue
  /// is full.
  public enum Undelivered: Sendable {
    /// The message is sent on the next connection; of too many, the oldest are lost.
    case kept
    /// The message is lost.
    case dropped
    /// The message is given back by ``MQTTEvent/undelivered(_:)``; if the broker refuses it, by
    /// ``MQTTEvent/publicationRefused(_:_:_:)``.
    case returned
  }

  /// Creates a message without validating it: messages that are too large are counted as ``MQTTStatistics/rejected``.
  public init(
    topic: TopicName, payload: [UInt8], qos: QoS = .atLeastOnce, retain: Bool = false,
    responseTopic: TopicName? = nil, correlationData: [UInt8]? = nil, undelivered: Undelivered = .kept,
    number: Int64? = nil
  ) {
    self.topic = topic
    self.payload = payload
    self.qos = qos
    self.retain = retain
    self.responseTopic = responseTopic
    self.correlationData = correlationData
    self.undelivered = undelivered
    self.number = number
  }
}

/// A received message.
public struct MQTTReceived: Sendable, Equatable {
  /// The topic it was published to.
  public var topic: TopicName
  /// The payload, of at most ``MQTTOptions/maximumIncomingPacket`` bytes.
  public var payload: [UInt8]
  /// The lower of the publisher's and the subscription's QoS (MQTT 5, 3.8.4).
  public var qos: QoS
  /// Whether the message was retained before the subscription; with ``SubscribeOptions/retainAsPublished`` as
  /// published.
  public var retain: Bool
  /// The topic for the reply. MQTT 5.
  public var responseTopic: TopicName?
  /// Identifies the reply, to be returned unchanged. MQTT 5.
  public var correlationData: [UInt8]?
}
