import Glibc

/// Why a connection to the broker failed or ended.
public enum MQTTError: Error, Equatable, Sendable {
  /// The host name has no address.
  case lookUpFailed(host: String, reason: String)
  /// No TCP connection: refused, no route, ….
  case unreachable(reason: String, errno: Int32)
  /// No answer within ``MQTTOptions/connectTimeout``.
  case timedOut(Phase)
  /// The broker rejects the credentials (MQTT 5 reason 134, 135, 138, 140; 3.1.1 code 4, 5).
  case notAuthorised(reasonCode: Int, reason: String)
  /// The broker rejects the connection for another reason.
  case refused(reasonCode: Int, reason: String)
  /// The broker does not support this version of the protocol.
  case unsupportedProtocol
  /// The TLS handshake failed, usually because of a certificate that one side does not trust.
  case tls(reason: String)
  /// The file of the password, a certificate or a key cannot be used.
  case file(path: String, reason: String)
  /// An invalid option.
  case invalidOption(String)
  /// The other end did not send valid MQTT.
  case protocolViolation(reason: String)
  /// The broker did not answer a ping within ``MQTTOptions/keepAlive``.
  case keepAliveTimedOut
  /// The broker has answered pings, but for twice ``MQTTOptions/keepAlive`` not acknowledged a message to this topic.
  case unacknowledged(TopicName)
  /// The connection was closed without DISCONNECT.
  case connectionLost(reason: String)
  /// The broker closed the connection with a reason code (MQTT 5).
  case closedByBroker(reasonCode: Int, reason: String)
  /// Any other error of libmosquitto.
  case library(code: Int32, reason: String)

  /// The progress of an attempt to connect.
  public enum Phase: Sendable {
    /// The look-up: from the start to the addresses of the host.
    case lookUp
    /// The TCP connection: from the first SYN on.
    case connect
    /// TLS: from the handshake to CONNACK.
    case tls
    /// MQTT without TLS: from CONNECT to CONNACK.
    case connack
  }

  /// Whether the configuration of this client, or of the broker, has to be changed; otherwise the next attempt may succeed.
  var needsChange: Bool {
    switch self {
    case .lookUpFailed, .unreachable, .timedOut, .keepAliveTimedOut, .connectionLost, .closedByBroker,
      .library, .protocolViolation, .file:
      false
    case .notAuthorised, .refused, .unsupportedProtocol, .tls, .invalidOption, .unacknowledged: true
    }
  }

  /// Whether the broker may have ended the connection because of a message, or libmosquitto because of its PUBACK.
  func mayBeOfAMessage(_ version: MQTTOptions.ProtocolVersion) -> Bool {
    switch self {
    case .protocolViolation, .closedByBroker(reasonCode: 149, _): true
    case .connectionLost(let reason):
      version == .v311 && (self == .closed || MosquittoText.closings.contains(reason))
    default: false
    }
  }
}

extension MQTTError: CustomStringConvertible {
  /// What is wrong, for the user; it may quote the broker.
  public var description: String {
    switch self {
    case .lookUpFailed(let host, let reason): "cannot resolve the broker's host name \(host): \(reason)"
    case .unreachable(let reason, _): "the broker cannot be reached: \(reason)"
    case .timedOut(.lookUp): "resolving the broker's host name is taking too long"
    case .timedOut(.connect): "the broker cannot be reached: no answer"
    case .timedOut(.tls): "the host accepts connections, but does not answer as a broker with TLS"
    case .timedOut(.connack): "the host accepts connections, but does not answer as a broker"
    case .notAuthorised(_, let reason): "the broker rejected the login: \(reason)"
    case .refused(_, let reason): "the broker refused the connection: \(reason)"
    case .unsupportedProtocol: "the broker does not support this version of MQTT"
    case .tls(let reason): "the TLS handshake with the broker failed: \(reason)"
    case .file(let path, let reason): "cannot use \(path): \(reason)"
    case .invalidOption(let what): what
    case .protocolViolation(let reason): "the answer is not valid MQTT: \(reason)"
    case .keepAliveTimedOut: "the broker stopped responding"
    case .unacknowledged(let topic): "the broker has not acknowledged messages, such as one to \(topic)"
    case .connectionLost(let reason): "the connection to the broker was lost: \(reason)"
    case .closedByBroker(_, let reason): "the broker closed the connection: \(reason)"
    case .library(let code, let reason): "\(reason) (\(code))"
    }
  }

  /// The key of the hint for translations; nil: there is no hint.
  public var code: String? {
    switch self {
    case .lookUpFailed, .timedOut(.lookUp): "broker_unknown"
    case .unreachable, .timedOut: "broker_silent"
    case .notAuthorised: "broker_login"
    case .tls: "broker_tls"
    case .keepAliveTimedOut, .connectionLost, .closedByBroker: "broker_lost"
    case .refused, .unsupportedProtocol, .file, .invalidOption, .protocolViolation, .unacknowledged,
      .library:
      nil
    }
  }

  /// What the user can do about the error; nil if that is not known.
  /// - Parameter broker: as configured.
  public func hint(at broker: MQTTBroker) -> String? {
    let (host, port) = (broker.host, broker.port)
    switch self {
    case .unreachable(_, ECONNREFUSED):
      let isLocal = ["localhost", "::1"].contains(host) || host.hasPrefix("127.")
      if isLocal, ![1883, 8883].contains(port) {
        return
          "check mqtt.port (usual: 1883, with TLS 8883); is a broker running here? sudo systemctl enable --now mosquitto"
      }
      return isLocal
        ? "is a broker running here? sudo apt install mosquitto; sudo systemctl enable --now mosquitto"
        : "check mqtt.host and mqtt.port, and whether the broker listens on the network: by default mosquitto 2 does not"
    case .lookUpFailed, .timedOut(.lookUp): return "check mqtt.host and the name server: getent hosts \(host)"
    case .unreachable, .timedOut(.connect):
      return "check mqtt.host and mqtt.port, and the network: ping \(host)"
    case .timedOut(.tls), .timedOut(.connack), .protocolViolation: return "check mqtt.port and mqtt.tls"
    case .notAuthorised: return "set mqtt.username and mqtt.password_file, or correct them"
    case .unsupportedProtocol: return "change mqtt.protocol"
    case .tls(let reason)
    where reason.hasSuffix("certificate has expired") || reason.hasSuffix("certificate is not yet valid"):
      return "check the clock of this computer (date), and renew the broker's certificate"
    case .tls(let reason) where reason.hasSuffix("key values mismatch"):
      return "mqtt.tls.key_file is not the key of the certificate in mqtt.tls.cert_file"
    case .tls(let reason) where reason.split(separator: " ").contains("alert"):
      return "check mqtt.tls.cert_file and key_file: the broker requires a certificate that it accepts"
    case .tls:
      return "check mqtt.port, mqtt.tls.ca_file, and that mqtt.host is a name in the broker's certificate"
    case .refused(reasonCode: 149, _):
      return "allow larger packets in the broker's configuration, in that of mosquitto by max_packet_size"
    case .refused(reasonCode: 154, _): return "allow retained messages in the broker's configuration"
    case .file: return "check mqtt.password_file and the files in mqtt.tls, and their permissions"
    case .unacknowledged: return "check the network: ping \(host); if it answers, see the broker's log"
    case .invalidOption: return "correct mqtt in config.json"
    case .refused, .keepAliveTimedOut, .connectionLost, .closedByBroker, .library: return nil
    }
  }
}
