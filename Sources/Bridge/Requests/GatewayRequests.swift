import BlueZ
import Configuration
import Devices
import GATT
import JSON
import Log

// Requests about the gateway and its adapters.

struct ReportHealth: GatewayRequest {
  static let verb = "health"

  func perform(_ call: RequestCall) { call.answer(call.host.health.json) }
}

struct ReloadConfiguration: GatewayRequest {
  static let verb = "reload"

  func perform(_ call: RequestCall) {
    call.host.reload { call.reply($0.map { ["restart_required": .array($0.map(JSONValue.string))] }) }
  }
}

struct Scan: GatewayRequest {
  static let verb = "scan"
  static let own: [ConfigurationKey<Self>] = [ConfigurationKey("timeout", \.timeout, .integer(1...60))]
  /// How long to scan, in seconds.
  var timeout = 5

  func perform(_ call: RequestCall) {
    call.later { () throws(RequestError) in
      .array(try await call.engine.scan(for: .seconds(timeout)).map { $0.peripheral.json($0.device) })
    }
  }
}

struct PermitJoining: GatewayRequest {
  static let verb = "permit_join"
  static let own: [ConfigurationKey<Self>] = [
    ConfigurationKey("time", \.time, .integer(0...DeviceManager.longestPermitJoin)),
    ConfigurationKey("device", \.device, .optional(.address)),
  ]
  /// How long devices may join, in seconds.
  var time = 254
  var device: BluetoothAddress?

  func perform(_ call: RequestCall) {
    call.engine.permitJoin(seconds: time, device: device)
    call.answer(["time": .integer(time), "device": device.map { .string($0.description) }])
  }
}

struct NumberDevices: GatewayRequest {
  static let verb = "number"
  static let own: [ConfigurationKey<Self>] = [
    ConfigurationKey("time", \.time, .integer(0...DeviceManager.longestNumbering)),
    // A number follows, and a name has at most 128 characters.
    ConfigurationKey("prefix", \.prefix, .optional(.text(longest: 100, mayBeEmpty: true))),
    ConfigurationKey("next", \.next, .optional(.integer(0...9999))),
    ConfigurationKey("id", \.id, .optional(.deviceID)),
  ]
  /// How long micro:bits wait for the next press of a button, in seconds.
  var time = DeviceManager.longestNumbering
  var prefix: String?
  var next: Int?
  /// The device that gets the next number without a press; nil: none.
  var id: DeviceID?

  func perform(_ call: RequestCall) throws(RequestError) {
    if let id {
      guard prefix == nil, next == nil else {
        throw RequestError(.invalid, "\"id\" gets the next number: it goes without \"prefix\" and \"next\"")
      }
      try call.engine.number(id)
    } else {
      call.engine.permitNumbering(seconds: time, prefix: prefix, next: next)
    }
    call.answer(call.engine.numberingJSON ?? [:])
  }
}

struct SetLogLevel: GatewayRequest {
  static let verb = "log_level"
  static let own: [ConfigurationKey<Self>] = [
    ConfigurationKey(
      required: "level", \.$level, .choice { .string($0.name) },
      hint: LogLevel.allCases.map(\.name).joined(separator: ", "))
  ]
  @Required var level: LogLevel

  func perform(_ call: RequestCall) {
    Logger.level = level
    call.answer(["level": .string(level.name)])
  }
}

struct ReportAdapter: GatewayRequest {
  static let verb = "adapter/state"
  static let own: [ConfigurationKey<Self>] = [ConfigurationKey("adapter", \.adapter, .optional(.adapter))]
  /// The name of the adapter; nil: the only one.
  var adapter: String?

  func perform(_ call: RequestCall) throws(RequestError) {
    let adapter = try call.engine.adapter(named: adapter)
    call.answer((["adapter": .string(adapter.name)] as JSONValue).merging(adapter.stateJSON))
  }
}

struct ResetAdapter: GatewayRequest {
  static let verb = "adapter/reset"
  static let own: [ConfigurationKey<Self>] = [ConfigurationKey("adapter", \.adapter, .optional(.adapter))]
  /// The name of the adapter; nil: the only one.
  var adapter: String?

  func perform(_ call: RequestCall) throws(RequestError) {
    let name = try call.engine.adapter(named: adapter).name
    call.later { () throws(RequestError) in
      do throws(CentralError) {
        try await call.engine.resetAdapter(name)
      } catch {
        throw RequestError("\(error)")
      }
      return ["adapter": .string(name)]
    }
  }
}
