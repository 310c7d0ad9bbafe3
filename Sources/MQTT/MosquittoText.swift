import CMosquitto
import Glibc

/// Conversion of the error codes and texts of libmosquitto and OpenSSL.
enum MosquittoText {
  /// The relevant parts of libmosquitto's error lines: the last part of OpenSSL's, as in
  /// `OpenSSL Error[0]: error:0A000086:SSL routines::certificate verify failed`. libmosquitto's own lines come before
  /// OpenSSL's.
  static func reason(ofLines lines: [String]) -> String? {
    var reasons: [String] = []
    for line in lines {
      var reason = line[...]
      if line.hasPrefix("OpenSSL Error") {
        reason = reason.split(separator: ":").last ?? reason
      } else if reason.hasPrefix("Error: ") {
        reason = reason.dropFirst("Error: ".count)
      }
      while let last = reason.last, last.isWhitespace || last == "." { reason.removeLast() }
      while reason.first?.isWhitespace == true { reason.removeFirst() }
      let text = String(reason)
      if !text.isEmpty, !reasons.contains(text) { reasons.append(text) }
    }
    return reasons.isEmpty ? nil : reasons.joined(separator: "; ")
  }

  /// The reasons of a connection that the other end has closed.
  static let closings = [
    MQTT.text(ofErrno: ECONNRESET), MQTT.text(ofErrno: EPIPE), "unexpected eof while reading",
  ]

  /// The error of a failed call to libmosquitto.
  /// - Parameters:
  ///   - lines: logged by libmosquitto: the only source of the reason of a TLS error.
  ///   - isTLSHandshake: the connection uses TLS, and the broker has not accepted it yet.
  static func error(_ code: Int32, errno: Int32, lines: [String], isTLSHandshake: Bool) -> MQTTError {
    let reason = reason(ofLines: lines)
    // OpenSSL 3 reports errors of the socket among its own.
    if isTLSHandshake, let reason, closings.contains(reason) { return .tlsClosed }
    // libmosquitto's EPROTO stands for any error of OpenSSL, which has reported none at the end of the connection.
    let isTLS =
      [MOSQ_ERR_TLS.code, MOSQ_ERR_TLS_HANDSHAKE.code].contains(code)
      || code == MOSQ_ERR_ERRNO.code && errno == EPROTO || lines.contains { $0.hasPrefix("OpenSSL Error") }
    if isTLS {
      guard isTLSHandshake else { return reason.map { .connectionLost(reason: $0) } ?? .closed }
      return reason.map { .tls(reason: $0) } ?? .tlsClosed
    }
    return switch code {
    case MOSQ_ERR_PROTOCOL.code, MOSQ_ERR_MALFORMED_PACKET.code, MOSQ_ERR_MALFORMED_UTF8.code,
      MOSQ_ERR_DUPLICATE_PROPERTY.code, MOSQ_ERR_NOT_SUPPORTED.code, MOSQ_ERR_TOPIC_ALIAS_INVALID.code:
      .protocolViolation(reason: reason ?? text(of: code))
    // libmosquitto's `return 1` for an AUTH packet without a reason code.
    case MOSQ_ERR_NOMEM.code: .protocolViolation(reason: "a packet is too short")
    case MOSQ_ERR_OVERSIZE_PACKET.code:
      .refused(
        reasonCode: Int(MQTT_RC_PACKET_TOO_LARGE.rawValue),
        reason: "it accepts only packets that are smaller than this gateway's")
    // OpenSSL has reported no error; errno is the result of closing the socket.
    case MOSQ_ERR_ERRNO.code where isTLSHandshake, MOSQ_ERR_CONN_LOST.code where isTLSHandshake: .tlsClosed
    case MOSQ_ERR_CONN_LOST.code, MOSQ_ERR_NO_CONN.code: .closed
    case MOSQ_ERR_ERRNO.code: .connectionLost(reason: MQTT.text(ofErrno: errno))
    case MOSQ_ERR_KEEPALIVE.code: .keepAliveTimedOut
    default: .library(code: code, reason: text(of: code))
    }
  }

  static func text(of code: Int32) -> String { String(cString: mosquitto_strerror(code)) }

  /// The error for a reason code of CONNACK: below 128 of 3.1.1, else of MQTT 5, with the broker's words.
  static func refusal(_ code: Int32, _ words: String = "") -> MQTTError {
    let reason = code < 128 ? connack(code) : reason(code) + words
    return switch code {
    case 1, Int32(MQTT_RC_UNSUPPORTED_PROTOCOL_VERSION.rawValue): .unsupportedProtocol
    case 4, 5, Int32(MQTT_RC_BAD_USERNAME_OR_PASSWORD.rawValue), Int32(MQTT_RC_NOT_AUTHORIZED.rawValue),
      Int32(MQTT_RC_BANNED.rawValue), Int32(MQTT_RC_BAD_AUTHENTICATION_METHOD.rawValue):
      .notAuthorised(reasonCode: Int(code), reason: reason)
    default: .refused(reasonCode: Int(code), reason: reason)
    }
  }

  /// The reason code of a PUBACK or SUBACK.
  static func refusal(ofMessage code: Int32) -> MQTTRefusal {
    switch code {
    case Int32(MQTT_RC_NOT_AUTHORIZED.rawValue): .notAuthorized
    case Int32(MQTT_RC_PACKET_TOO_LARGE.rawValue): .tooLarge(most: nil)
    case Int32(MQTT_RC_QUOTA_EXCEEDED.rawValue): .quotaExceeded
    case _: .other(reason(code))
    }
  }

  /// The name of a reason code of MQTT 5.
  static func reason(_ code: Int32) -> String { String(cString: mosquitto_reason_string(code)) }

  private static func connack(_ code: Int32) -> String {
    switch code {
    case 2: "client id rejected"
    case 3: "server unavailable"
    case 4: "bad user name or password"
    case 5: "not authorised"
    case _: "code \(code)"
    }
  }
}

func text(ofErrno number: Int32) -> String {
  // The text is in glibc's table, or in a buffer of this thread for an unknown number.
  String(cString: strerror(number))
}

extension MQTTError {
  static let closed = MQTTError.connectionLost(reason: "closed by the other end")
  static let tlsClosed = MQTTError.tls(
    reason: "the other end closed the connection: it may not use TLS, or require another client certificate")
}

extension mosq_err_t {
  var code: Int32 { Int32(rawValue) }
}
