import EventLoop

/// A broker, as a client connects to it.
public struct MQTTBroker: Sendable, Hashable, CustomStringConvertible {
  /// A name, or an address of either family without brackets; looked up anew at each attempt.
  public let host: String
  /// The TCP port.
  public let port: UInt16

  /// - Parameter port: usually 1883 without TLS, 8883 with TLS.
  public init(host: String, port: UInt16 = 1883) {
    self.host = host
    self.port = port
  }

  /// `host:port`, for texts.
  public var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}

/// The options of a client: the brokers, the credentials and the limits.
public struct MQTTOptions: Sendable {
  /// The protocol version; if the broker does not support it: ``MQTTError/unsupportedProtocol``.
  public enum ProtocolVersion: Sendable {
    /// MQTT 3.1.1: without properties, and with few reason codes.
    case v311
    /// MQTT 5.0.
    case v5
  }

  /// TLS options. The broker's certificate and host name are always verified.
  public struct TLS: Sendable, Equatable {
    /// PEM file with the trusted certificates; nil: the system's.
    var caFile: String?
    /// PEM files with the client's certificate and key: both or neither. The key must not have a passphrase.
    var certFile: String?
    var keyFile: String?
    /// The application protocol to ask for (ALPN), for servers that have more than MQTT on the port; nil: none.
    var alpn: String?

    /// Paths of PEM files, read again for each attempt to connect.
    public init(
      caFile: String? = nil, certFile: String? = nil, keyFile: String? = nil, alpn: String? = nil
    ) {
      self.caFile = caFile
      self.certFile = certFile
      self.keyFile = keyFile
      self.alpn = alpn
    }
  }

  /// One broker or more: nodes of a cluster, or other ways to the same broker, in the order in which they are tried.
  public var brokers: [MQTTBroker]
  var protocolVersion: ProtocolVersion
  /// Identifies the client; another client with the same id would disconnect this one. Empty: the broker assigns one.
  var clientID: String
  var username: String?
  var password: String?
  /// Reads the password anew for each attempt to connect, on a thread that may block; nil: it is ``password``.
  public var readPassword: (@Sendable () throws(MQTTError) -> String)?
  /// The options of TLS; nil: no TLS.
  var tls: TLS?
  /// The longest silence before a ping; 5 s … 65535 s.
  var keepAlive: Duration = .seconds(30)
  /// Published by the broker when the connection ends without DISCONNECT.
  var will: MQTTMessage?
  /// The limit of connecting, to the CONNACK, for each address of a host. A look-up that takes longer is reported, and awaited.
  public var connectTimeout: Duration = .seconds(10)
  /// The delays between attempts if the broker is unreachable, or connections do not last. Fully random, so that the
  /// clients of a returning broker do not all connect at once, and short, so that a local broker is found within 5 s of
  /// its return.
  public var backOff = BackOff(first: .seconds(1), longest: .seconds(4), spread: 1)
  /// The delays between attempts if the broker rejects the connection, or the configuration is wrong.
  var refusalBackOff = BackOff(first: .seconds(1), longest: .seconds(30), spread: 1)
  /// The first of several brokers is well if this message, published there, arrives by the connection to the one that is
  /// used: a node that is cut off from its cluster accepts connections too. To be subscribed to; nil: if it accepts a
  /// connection.
  public var probe: MQTTMessage?
  /// How often the first broker is tried while another is used, and how long it must be well to be used again.
  var probeInterval: Duration = .seconds(15)
  var returnAfter: Duration = .seconds(60)
  /// Resolves a host name.
  var lookUp: @Sendable (String) throws(MQTTError) -> [HostAddress] = HostAddress.all
  /// A random number in 0..<1 for the back-off.
  var jitter: @Sendable () -> Double = { Double.random(in: 0..<1) }
  var outbox = OutboxLimits()
  /// Whether to send queued messages on a new connection only after ``MQTTClient/admit()``: for clients that first
  /// check what the broker retains.
  public var awaitsAdmission = false
  /// The largest packet accepted, in bytes. An MQTT 5 broker does not send larger ones; with 3.1.1 they are dropped
  /// here.
  public var maximumIncomingPacket: UInt32 = 256 * 1024
  /// How many bytes of the payload of a message are kept, by its topic: whoever may publish cannot fill the memory.
  public var keptBytes: @Sendable (TopicName) -> Int = { _ in .max }

  /// Creates options without validating them: each attempt to connect fails if libmosquitto refuses one. `password` without
  /// `username` requires MQTT 5.
  /// - Precondition: there is a broker, and no text contains NUL.
  public init(
    _ brokers: [MQTTBroker], protocolVersion: ProtocolVersion = .v5, clientID: String,
    username: String? = nil, password: String? = nil, tls: TLS? = nil, will: MQTTMessage? = nil
  ) {
    precondition(!brokers.isEmpty)
    self.brokers = brokers
    self.protocolVersion = protocolVersion
    self.clientID = clientID
    self.username = username
    self.password = password
    self.tls = tls
    self.will = will
  }
}

/// The limits of the queues for a broker that is away or slow.
struct OutboxLimits: Sendable, Equatable {
  /// Messages, and their bytes (topics and payloads). Beyond either, the oldest are dropped.
  var messages = 10_000
  var bytes = 4 * 1024 * 1024
  /// Unacknowledged QoS 1 messages; a broker may allow fewer.
  var inFlight = 64
}
