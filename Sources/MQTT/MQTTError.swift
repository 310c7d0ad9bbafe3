/// Why there is no connection to the broker, or no longer one.
public enum MQTTError: Error, Equatable, Sendable {
  /// The host name leads to no address.
  case lookUpFailed(host: String, reason: String)
  /// No TCP connection: refused, no route, ….
  case unreachable(reason: String, errno: Int32)
  /// No answer within ``MQTTOptions/connectTimeout``.
  case timedOut(Phase)
  /// The broker does not take these credentials (MQTT 5 reason 134, 135, 138, 140; 3.1.1 code 4, 5).
  case notAuthorised(reasonCode: Int, reason: String)
  /// The broker does not take the connection for another reason, which its answer names.
  case refused(reasonCode: Int, reason: String)
  /// The broker speaks another version of the protocol.
  case unsupportedProtocol
  /// TLS does not come about: mostly a certificate that one of the two sides does not trust.
  case tls(reason: String)
  /// A certificate or key file that cannot be used.
  case file(path: String, reason: String)
  /// An option that cannot be meant.
  case invalidOption(String)
  /// What came from the other end is not MQTT.
  case protocolViolation(reason: String)
  /// The broker has gone silent: no answer to a ping within ``MQTTOptions/keepAlive``.
  case keepAliveTimedOut
  /// The connection broke without a word.
  case connectionLost(reason: String)
  /// The broker ended the connection, and said why (MQTT 5).
  case closedByBroker(reasonCode: Int, reason: String)
  /// Anything else that libmosquitto reports.
  case library(code: Int32, reason: String)

  /// How far an attempt to connect had come.
  public enum Phase: Sendable {
    /// From the start to the addresses of the host.
    case lookUp
    /// From the first SYN to the TCP connection.
    case connect
    /// From the TLS handshake to CONNACK.
    case tls
    /// From CONNECT to CONNACK, without TLS.
    case connack
  }

  /// What may help.
  enum Remedy: Sendable {
    /// Time: the same again may well succeed.
    case retry
    /// Someone at the broker or its configuration: it is there, and it refuses.
    case refused
    /// Another configuration of this client.
    case configuration
  }

  var remedy: Remedy {
    switch self {
    case .lookUpFailed, .unreachable, .timedOut, .keepAliveTimedOut, .connectionLost, .closedByBroker,
      .library, .protocolViolation:
      .retry
    case .notAuthorised, .refused, .unsupportedProtocol:
      .refused
    case .tls, .file, .invalidOption:
      .configuration
    }
  }
}

extension MQTTError: CustomStringConvertible {
  /// A line for the log, which escapes what it quotes of the broker.
  public var description: String {
    switch self {
    case .lookUpFailed(let host, let reason): "cannot resolve the broker's host name \(host): \(reason)"
    case .unreachable(let reason, _): "the broker cannot be reached: \(reason)"
    case .timedOut(.lookUp): "resolving the broker's host name is taking too long"
    case .timedOut(.connect): "the broker cannot be reached: no answer"
    case .timedOut(.tls):
      "the host accepts connections, but does not answer as a broker with TLS: check mqtt.port and mqtt.tls"
    case .timedOut(.connack):
      "the host accepts connections, but does not answer as a broker: check mqtt.port and mqtt.tls"
    case .notAuthorised(_, let reason):
      "the broker rejected the login: check mqtt.username and password_file (\(reason))"
    case .refused(_, let reason): "the broker refused the connection: \(reason)"
    case .unsupportedProtocol: "the broker does not support this version of MQTT: change mqtt.protocol"
    case .tls(let reason): "the TLS handshake with the broker failed: \(reason)"
    case .file(let path, let reason): "cannot use \(path): \(reason)"
    case .invalidOption(let what): what
    case .protocolViolation(let reason): "the answer is not valid MQTT: \(reason)"
    case .keepAliveTimedOut: "the broker stopped responding"
    case .connectionLost(let reason): "the connection to the broker was lost: \(reason)"
    case .closedByBroker(_, let reason): "the broker closed the connection: \(reason)"
    case .library(let code, let reason): "\(reason) (\(code))"
    }
  }
}
