import Configuration
import Devices
import GATT
import JSON

/// The payloads of results, responses and availability topics.
package enum Payload {
  /// `online` or `offline`: of a device, or of the gateway (its will as well).
  static func availability(_ isOnline: Bool) -> [UInt8] {
    Array((isOnline ? "online" : "offline").utf8)
  }

  /// The outcome of a command, for `…/{property}/result` and the sender's response topic.
  ///
  /// - Parameter requested: nil when the payload held no value.
  static func result(
    _ outcome: Outcome, requested: JSONValue?, codec: Codec?, transaction: String?, time: Timestamp
  ) -> [UInt8] {
    resultJSON(outcome, requested: requested, codec: codec, transaction: transaction, time: time).bytes
  }

  static func resultJSON(
    _ outcome: Outcome, requested: JSONValue?, codec: Codec?, transaction: String? = nil, time: Timestamp
  ) -> JSONValue {
    [
      "status": .string(outcome.word),
      "requested": requested,
      "actual": outcome.actual.flatMap { codec?.json($0) },
      "reason": outcome.reason.map(JSONValue.string),
      "transaction": transaction.map(JSONValue.string),
      "time": .string(time.description),
    ]
  }
}
