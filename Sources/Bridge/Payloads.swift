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
  /// - Parameters:
  ///   - requested: nil when the payload held no value.
  ///   - codec: nil for a property that the device does not have.
  static func result(
    _ outcome: Outcome, requested: Value? = nil, _ codec: Codec?, transaction: String?, time: Timestamp = .now
  ) -> [UInt8] {
    outcome.json(requested: requested, codec)
      .merging(["transaction": transaction.map(JSONValue.string), "time": .string(time.description)]).bytes
  }
}

extension Outcome {
  /// What all results have in common.
  func json(requested: Value?, _ codec: Codec?) -> JSONValue {
    [
      "status": .string(word), "requested": requested.flatMap { codec?.json($0) },
      "actual": actual.flatMap { codec?.json($0) }, "reason": reason.map(JSONValue.string),
    ]
  }
}
