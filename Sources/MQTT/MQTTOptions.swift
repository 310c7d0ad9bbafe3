import EventLoop

/// Everything a client is told once: which broker, who it is there, and how patient and how big it may be.
public struct MQTTOptions: Sendable {
  /// What is spoken to the broker; one that does not is ``MQTTError/unsupportedProtocol``.
  public enum ProtocolVersion: Sendable {
    /// MQTT 3.1.1: without properties, and with little said about why something is refused.
    case v311
    /// MQTT 5.0.
    case v5
  }

  /// What TLS needs. The broker's certificate and host name are always verified.
  public struct TLS: Sendable, Equatable {
    /// PEM file with the certificates to trust; nil: those the system trusts.
    var caFile: String?
    /// PEM files with the client's own certificate and its key: both or neither. The key has no passphrase.
    var certFile: String?
    var keyFile: String?

    /// Paths of PEM files; see the members. They are read anew at each attempt to connect.
    public init(caFile: String? = nil, certFile: String? = nil, keyFile: String? = nil) {
      self.caFile = caFile
      self.certFile = certFile
      self.keyFile = keyFile
    }
  }

  var host: String
  var port: UInt16
  var protocolVersion: ProtocolVersion
  /// By what the broker knows the client; another client of the same name would push this one out. Empty:
  /// the broker chooses.
  var clientID: String
  var username: String?
  var password: String?
  /// Nil: no TLS.
  var tls: TLS?
  /// The longest silence before the broker is asked whether it is there; 5 s … 65535 s.
  var keepAlive: Duration = .seconds(30)
  /// What the broker publishes when the client is gone without having said good-bye.
  var will: MQTTMessage?
  /// From the first look-up of the host name to the broker's answer to CONNECT.
  var connectTimeout: Duration = .seconds(10)
  /// Between two attempts where the broker cannot be reached, or its connections do not last. All of it is left to
  /// chance, so that a returning broker is not run over by all its clients at once. Never long, whatever went before: a
  /// broker on the local network is to be found again within 5 s of its return.
  public var backOff = BackOff(first: .seconds(1), longest: .seconds(4), spread: 1)
  /// Between two attempts where the broker answers, and refuses; or where the configuration is at fault.
  var refusalBackOff = BackOff(first: .seconds(1), longest: .seconds(30), spread: 1)
  /// A number in 0..<1, new at each call: what spreads the attempts of many clients.
  var jitter: @Sendable () -> Double = { Double.random(in: 0..<1) }
  var outbox = OutboxLimits()
  /// Whether on each connection all that is to be said waits for ``MQTTClient/admit()``: for an owner who has to
  /// hear first what the broker retains.
  public var awaitsAdmission = false
  /// The largest packet that is accepted, in bytes. With MQTT 5 the broker is told, and holds back what is
  /// larger; with 3.1.1 it arrives and is dropped here.
  public var maximumIncomingPacket: UInt32 = 256 * 1024

  /// Nothing is checked here: what cannot be meant is told as ``MQTTError/invalidOption(_:)`` by the first attempt to
  /// connect, and by each after it. `password` without `username` is for MQTT 5 alone.
  /// - Parameters:
  ///   - host: a name or an address of either family, looked up anew at each attempt.
  ///   - port: 1883 is usual without TLS, 8883 with it; `tls` does not change it.
  public init(
    host: String, port: UInt16 = 1883, protocolVersion: ProtocolVersion = .v5, clientID: String,
    username: String? = nil, password: String? = nil, tls: TLS? = nil, will: MQTTMessage? = nil
  ) {
    self.host = host
    self.port = port
    self.protocolVersion = protocolVersion
    self.clientID = clientID
    self.username = username
    self.password = password
    self.tls = tls
    self.will = will
  }
}

/// How much may wait for a broker that is away or slow.
struct OutboxLimits: Sendable, Equatable {
  /// Events, and their bytes (topics and payloads). Beyond either the oldest event is lost.
  var events = 10_000
  var bytes = 4 * 1024 * 1024
  /// QoS 1 messages sent and not yet acknowledged; a broker may allow fewer.
  var inFlight = 64
}
