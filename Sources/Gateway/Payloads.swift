import GATT
import JSON

/// The payloads of the device topics that are no more than a word or a few keys.
enum Payload {
  /// `21`: the value of a property, retained on its own topic.
  static func value(_ value: Int) -> [UInt8] { [UInt8](decimal: value) }

  /// `online` or `offline`: of a device, or of the gateway (its will as well).
  static func availability(_ isOnline: Bool) -> [UInt8] {
    Array((isOnline ? "online" : "offline").utf8)
  }

  /// What came of a command, for `…/{property}/result` and the sender's response topic.
  ///
  /// - Parameter requested: the value asked for; nil when the payload held none.
  static func result(
    _ outcome: Outcome, requested: Int?, transaction: String?, time: Timestamp
  ) -> [UInt8] {
    let json: JSONValue = [
      "status": .string(outcome.status),
      "requested": requested.map(JSONValue.integer),
      "actual": outcome.actual.map(JSONValue.integer),
      "reason": outcome.reason.map(JSONValue.string),
      "transaction": transaction.map(JSONValue.string),
      "time": .string(time.description),
    ]
    return json.bytes
  }

  /// The answer to a request on the bridge's topics, when it could be met.
  static func response(_ data: JSONValue? = nil, transaction: String?) -> [UInt8] {
    let json: JSONValue = [
      "status": .string("ok"), "data": data, "transaction": transaction.map(JSONValue.string),
    ]
    return json.bytes
  }

  /// The answer to a request on the bridge's topics, when it could not be met.
  static func response(error: String, transaction: String?) -> [UInt8] {
    let json: JSONValue = [
      "status": .string("error"), "error": .string(error),
      "transaction": transaction.map(JSONValue.string),
    ]
    return json.bytes
  }
}

extension Outcome {
  /// The word in `status`.
  var status: String {
    switch self {
    case .applied: "applied"
    case .adjusted: "adjusted"
    case .rejected: "rejected"
    case .pending: "pending"
    case .superseded: "superseded"
    case .failed: "failed"
    case .timeout: "timeout"
    }
  }

  /// What the device holds, where it said so.
  var actual: Int? {
    switch self {
    case .applied(let actual), .adjusted(let actual): actual
    case .rejected, .pending, .superseded, .failed, .timeout: nil
    }
  }

  var reason: String? {
    switch self {
    case .rejected(let reason), .failed(let reason), .timeout(let reason): reason
    case .applied, .adjusted, .pending, .superseded: nil
    }
  }
}
