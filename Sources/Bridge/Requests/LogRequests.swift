import Configuration
import Devices
import JSON

/// Reads the data log of a micro:bit V2.
struct ReadLog: GatewayRequest {
  static let verb = "device/log"
  static let own: [ConfigurationKey<Self>] = [.id(\.$id), ConfigurationKey("raw", \.isRaw, .bool)]
  @Required var id: DeviceID
  /// Whether the text is as the micro:bit has it, instead of a table with one line of headings.
  var isRaw = false

  func perform(_ call: RequestCall) throws(RequestError) {
    try call.checkUsable(id)
    call.later { () throws(RequestError) in
      let log = try await call.engine.log(of: id)
      return [
        "id": .string(id.description), "bytes": .integer(log.count),
        "csv": .string(isRaw ? String(decoding: log, as: UTF8.self) : LogTable.csv(log)),
      ]
    }
  }
}
