import Devices
import JSON
import Log
import MQTT

extension LogRow {
  /// The payload of `…/log`.
  /// - Parameter measured: when the row was written; nil: that is not certain.
  func payload(measured: Timestamp?) -> [UInt8] {
    let json: JSONValue = [
      "row": .integer(row), "run": .integer(run), "time": time?.value,
      "time_unit": time.map { .string($0.unit.rawValue) }, "values": values,
      "measured": measured.map { .string($0.description) },
    ]
    return json.bytes
  }
}

extension DevicePublisher {
  package func logged(_ row: LogRow, measured: Timestamp?) {
    if owner.isOther { return }
    context.mqtt.publish(
      MQTTMessage(
        topic: topics.log, payload: row.payload(measured: measured), qos: context.qos, undelivered: .returned)
    )
  }
}
