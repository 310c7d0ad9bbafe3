import Configuration
import Devices
import GATT
import JSON

/// The payloads of the device topics that are no more than a word or a few keys.
enum Payload {
  /// The value of a property as its retained topic has it: a number, a word, a text as it is, JSON for a record or a list.
  static func value(_ value: Value, _ codec: Codec) -> [UInt8] {
    switch value {
    case .integer(let number): [UInt8](decimal: number)
    case .text(let text): Array(text.utf8)
    case .bytes: Self.unquoted(codec.json(value))
    case .number, .bool, .record, .list: codec.json(value).bytes
    }
  }

  private static func unquoted(_ json: JSONValue) -> [UInt8] {
    if case .string(let text) = json { Array(text.utf8) } else { json.bytes }
  }

  /// `online` or `offline`: of a device, or of the gateway (its will as well).
  static func availability(_ isOnline: Bool) -> [UInt8] {
    Array((isOnline ? "online" : "offline").utf8)
  }

  /// What came of a command, for `…/{property}/result` and the sender's response topic.
  ///
  /// - Parameter requested: the value asked for; nil when the payload held none.
  static func result(
    _ outcome: Outcome, requested: JSONValue?, codec: Codec?, transaction: String?, time: Timestamp
  ) -> [UInt8] {
    let json: JSONValue = [
      "status": .string(outcome.word),
      "requested": requested,
      "actual": outcome.actual.flatMap { codec?.json($0) },
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
