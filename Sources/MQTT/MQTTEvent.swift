/// What a client tells its owner, on the loop.
public enum MQTTEvent: Sendable {
  /// The broker has accepted; subscriptions and retained state are on their way to it again.
  case connected(MQTTConnection)
  /// The connection is over. It is being made again by itself, except after `nil`: the client was stopped.
  case disconnected(MQTTError?)
  /// An attempt to connect did not succeed; the next one follows by itself.
  case connectFailed(MQTTError, retryIn: Duration)
  /// Something came for one of the subscriptions.
  case message(MQTTReceived)
  /// The broker does not let this client subscribe to `filter`.
  case subscriptionRefused(TopicFilter, reason: String)
}

/// What the broker said when it accepted.
public struct MQTTConnection: Sendable, Equatable {
  /// The highest QoS that it takes; what is published above goes out at it.
  public var maximumQoS = QoS.exactlyOnce
  /// Whether it keeps retained messages at all; one that does not may refuse them.
  public var retainAvailable = true
  /// How many QoS 1 messages it wants to have unacknowledged at most.
  public var receiveMaximum: UInt16 = .max
  /// The largest packet it takes, in bytes; nil: any.
  public var maximumPacketSize: UInt32?
  /// The keep-alive that it imposes, instead of ours.
  public var serverKeepAlive: Duration?
}

/// Counters since the client was made, and the present length of its queues.
public struct MQTTStatistics: Sendable, Equatable {
  /// PUBLISH packets handed to the network, repetitions included.
  public var sent = 0
  /// PUBACKs received.
  public var acknowledged = 0
  /// Messages that arrived, for any subscription.
  public var received = 0
  /// Connections that came about.
  public var connects = 0
  /// Events given up because the queue was full: the oldest each time.
  public var lost = 0
  /// Messages the broker refused, or that are larger than it takes.
  public var refused = 0
  /// Messages that arrived and were larger than is accepted here, or had an impossible topic.
  public var ignored = 0
  /// Now waiting to be sent.
  public var queued = 0
  /// Now sent and not yet acknowledged.
  public var inFlight = 0

  /// All at 0: to learn of the counters without a client.
  public init() {}
}
