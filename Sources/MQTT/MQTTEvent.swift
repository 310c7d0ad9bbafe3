import EventLoop

/// An event of a client.
public enum MQTTEvent: Sendable {
  /// The broker has accepted the connection; subscriptions and retained state are being sent.
  case connected(MQTTConnection)
  /// The connection has ended; nil: from this side. The client connects again, unless it was stopped.
  case disconnected(MQTTError?)
  /// An attempt to connect has failed; the next one follows.
  case connectFailed(MQTTError)
  /// Messages with ``MQTTMessage/Undelivered/returned``, in the order in which they were published: they may have
  /// arrived, but were not acknowledged.
  case undelivered([MQTTMessage])
  /// Messages with these ``MQTTMessage/number``s need not be sent again; `rejected` counts those that no attempt can deliver.
  case completed([Int64], rejected: Int)
  /// A message for one of the subscriptions.
  case message(MQTTReceived)
  /// The broker has refused a subscription, which ``MQTTClient/subscribeRefusedAgain()`` repeats.
  case subscriptionRefused(TopicFilter, MQTTRefusal)
  /// The broker has refused a publication with QoS 1, or it is larger than the broker accepts (MQTT 5 only).
  case publicationRefused(TopicName, MQTTRefusal, RefusedMessage)
}

/// What becomes of a message that the broker does not take.
public enum RefusedMessage: Sendable {
  /// Only a quota is exceeded: a message with ``MQTTMessage/Undelivered/returned`` is given back.
  case returned(MQTTMessage)
  /// It is a state, or the deletion of one, which ``MQTTClient/publishRefusedStateAgain()`` sends again.
  case kept
  case dropped
}

/// Why a broker does not take a message, or a subscription.
public enum MQTTRefusal: Sendable, Equatable, CustomStringConvertible {
  case notAuthorized
  /// The broker takes packets of at most `most` bytes; nil: it has not said how many.
  case tooLarge(most: Int?)
  /// The broker ends the connection at a packet of this size.
  case endsConnection(bytes: Int)
  /// The client has sent too much for now: the broker takes the message later.
  case quotaExceeded
  case other(String)

  /// Whether the broker will never take the message.
  public var isOfSize: Bool {
    switch self {
    case .tooLarge, .endsConnection: true
    case .notAuthorized, .quotaExceeded, .other: false
    }
  }

  /// The words of the log.
  public var description: String {
    switch self {
    case .notAuthorized: "Not authorized"
    case .tooLarge(let most):
      "it is larger than the broker accepts" + (most.map { " (\($0) bytes)" } ?? "")
    case .endsConnection(let bytes): "the broker ends the connection when it is sent (\(bytes) bytes)"
    case .quotaExceeded: "Quota exceeded"
    case .other(let reason): reason
    }
  }
}

/// The parameters of a connection, from the broker's CONNACK.
public struct MQTTConnection: Sendable, Equatable {
  /// The maximum of unacknowledged QoS 1 messages.
  public var receiveMaximum: UInt16 = .max
  /// The maximum packet size in bytes; nil: unlimited.
  public var maximumPacketSize: UInt32?
  /// Overrides the client's keep-alive if it is shorter.
  public var serverKeepAlive: Duration?
}

/// Counters since the client was created, and the current length of its queue.
public struct MQTTStatistics: Sendable, Equatable {
  /// PUBLISH packets sent, including repetitions.
  public var sent: Int
  /// Messages dropped because the queue was full, the oldest first.
  public var lost: Int
  /// Messages that the broker rejected, or that are larger than it accepts.
  public var rejected: Int
  /// Messages waiting to be sent.
  public var queued: Int

  /// Without arguments, all at 0.
  public init(sent: Int = 0, lost: Int = 0, rejected: Int = 0, queued: Int = 0) {
    (self.sent, self.lost, self.rejected, self.queued) = (sent, lost, rejected, queued)
  }
}
