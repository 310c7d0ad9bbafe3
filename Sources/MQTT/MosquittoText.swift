import CMosquitto
import Glibc

/// libmosquitto's and OpenSSL's words, made fit to be read.
enum MosquittoText {
  /// The gist of libmosquitto's error lines, e.g. from
  /// `OpenSSL Error[0]: error:0A000086:SSL routines::certificate verify failed`: the last part. Its own words
  /// come before those of OpenSSL, which repeat them less clearly.
  static func reason(ofComplaints lines: [String]) -> String? {
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

  static func isAboutTLS(_ lines: [String]) -> Bool {
    lines.contains { $0.hasPrefix("OpenSSL Error") }
  }

  /// What a broker's refusal in CONNACK means. 3.1.1 counts its codes from 1, MQTT 5 from 128.
  static func refusal(_ code: Int32) -> MQTTError {
    switch code {
    case 1, Int32(MQTT_RC_UNSUPPORTED_PROTOCOL_VERSION.rawValue):
      return .unsupportedProtocol
    case 4, 5:
      return .notAuthorised(reasonCode: Int(code), reason: connack(code))
    case Int32(MQTT_RC_BAD_USERNAME_OR_PASSWORD.rawValue), Int32(MQTT_RC_NOT_AUTHORIZED.rawValue),
      Int32(MQTT_RC_BANNED.rawValue), Int32(MQTT_RC_BAD_AUTHENTICATION_METHOD.rawValue):
      return .notAuthorised(reasonCode: Int(code), reason: reason(code))
    case ..<128:
      return .refused(reasonCode: Int(code), reason: connack(code))
    case _:
      return .refused(reasonCode: Int(code), reason: reason(code))
    }
  }

  /// The name of a reason code of MQTT 5.
  static func reason(_ code: Int32) -> String {
    String(cString: mosquitto_reason_string(code))
  }

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
  // A table of glibc's; for a number beyond it, a buffer of this thread.
  String(cString: strerror(number))
}
