import Configuration
import Devices
import JSON
import Recording

// Requests that record the readings of all devices.

struct StartRecording: GatewayRequest {
  static let verb = "record/start"
  static let own: [ConfigurationKey<Self>] = [ConfigurationKey("name", \.name, .optional(.text(longest: 64)))]
  /// What the recording is called; nil: by the time.
  var name: String?

  func perform(_ call: RequestCall) {
    call.later { () throws(RequestError) in try await call.host.recorder.record(name).json }
  }
}

struct StopRecording: GatewayRequest {
  static let verb = "record/stop"

  func perform(_ call: RequestCall) {
    call.later { () throws(RequestError) in try await call.host.recorder.finish().json }
  }
}

struct DeleteRecording: GatewayRequest {
  static let verb = "record/delete"
  static let own: [ConfigurationKey<Self>] = [
    ConfigurationKey(required: "name", \.$name, .text(longest: 255), hint: "as in record/list")
  ]
  @Required var name: String

  func perform(_ call: RequestCall) {
    call.later { () throws(RequestError) in
      try await call.host.recorder.delete(name)
      return ["name": .string(name)]
    }
  }
}

struct ListRecordings: GatewayRequest {
  static let verb = "record/list"

  func perform(_ call: RequestCall) {
    call.later { () throws(RequestError) in .array(try await call.host.recorder.list().map(\.json)) }
  }
}
