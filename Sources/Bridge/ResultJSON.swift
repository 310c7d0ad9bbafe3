import Configuration
import Devices
import JSON
import Log

extension CommandResult {
  /// The payload of `…/{property}/result`, and of the sender's response topic.
  func payload(transaction: String?, time: Timestamp = .now) -> [UInt8] {
    json.merging(["transaction": transaction.map(JSONValue.string), "time": .string(time.description)]).bytes
  }

  /// What all results have in common.
  var json: JSONValue {
    [
      "status": .string(outcome.word), "requested": requested.flatMap { codec?.json($0) },
      "actual": outcome.actual.flatMap { codec?.json($0) }, "reason": outcome.reason.map(JSONValue.string),
    ]
  }
}
