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
  /// A certificate or key file cannot be used.
  case file(path: String, reason: String)
  /// An invalid option.
  case invalidOption(String)
  /// The other end did not send valid MQTT.
  case protocolViolation(reason: String)
  /// The broker did not answer a ping within ``MQTTOptions/keepAlive``.
  case keepAliveTimedOut
  /// The connection was closed without DISCONNECT.
  case connectionLost(reason: String)
  /// The broker closed the connection with a reason code (MQTT 5).
  case closedByBroker(reasonCode: Int, reason: String)
  /// Any other error of libmosquitto.
  case library(code: Int32, reason: String)

  /// The progress of an attempt to connect.
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

  /// What can be done about an error.
  enum Remedy: Sendable {
    /// Retry: the next attempt may succeed.
    case retry
    /// Change the broker's configuration.
    case refused
    /// Change this client's configuration.
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
  /// A line for the log; it may quote the broker.
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
