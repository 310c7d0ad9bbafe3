import Configuration
import Devices
import GATT
import JSON

// Requests that add, change or examine a device.

struct ListDevices: GatewayRequest {
  static let verb = "devices"

  func perform(_ call: RequestCall) {
    call.answer(.array(call.engine.devices.map { call.host.listing(of: $0) }))
  }
}

struct AddDevice: GatewayRequest {
  static let verb = "device/add"
  static let own: [ConfigurationKey<Self>] =
    [
      ConfigurationKey(
        required: "identifier", \.$identifier, .address,
        hint: "the Bluetooth address, like C5:A1:B2:C3:D4:E5")
    ] + DeviceOptionTable.all.filter(\.requests.includesAdd).map { ConfigurationKey($0, \.options.options) }
  static var elsewhere: [String: String] { DeviceOptionsPatch.elsewhere }
  @Required var identifier: BluetoothAddress
  var options = DeviceOptionsPatch()

  func problems(at path: ConfigurationPath) -> [ConfigurationError] { options.problems(at: path) }

  func perform(_ call: RequestCall) throws(RequestError) {
    call.answer(call.host.listing(of: try call.engine.add(identifier, options)))
  }
}

struct RemoveDevice: GatewayRequest {
  static let verb = "device/remove"
  static let own: [ConfigurationKey<Self>] = [.id(\.$id)]
  @Required var id: DeviceID

  func perform(_ call: RequestCall) throws(RequestError) {
    let address = try call.engine.remove(id)
    call.answer(["id": .string(id.description), "identifier": .string(address.description)])
  }
}

struct ReconnectDevice: GatewayRequest {
  static let verb = "device/reconnect"
  static let own: [ConfigurationKey<Self>] = [.id(\.$id)]
  @Required var id: DeviceID

  func perform(_ call: RequestCall) throws(RequestError) {
    let state = try call.engine.reconnect(id)
    call.answer(["id": .string(id.description), "session": .string(state.rawValue)])
  }
}

struct RenameDevice: GatewayRequest {
  static let verb = "device/rename"
  static let own: [ConfigurationKey<Self>] = [
    .id(\.$id), ConfigurationKey("to", \.to, .optional(.deviceID)),
    ConfigurationKey("name", \.name, .optional(.label)),
  ]
  @Required var id: DeviceID
  /// The new id; nil: the one that follows from the name.
  var to: DeviceID?
  var name: String?

  func problems(at path: ConfigurationPath) -> [ConfigurationError] {
    to == nil && name == nil
      ? [path.key("to").error("this is missing", hint: "the new id; or name, which it follows from")] : []
  }

  func perform(_ call: RequestCall) throws(RequestError) {
    _ = try call.engine.description(of: id)
    var new = to ?? id
    let elsewhere = call.host.idElsewhere(of: id)
    if let name {
      new = try call.engine.rename(id, name: name, to: to, elsewhere: elsewhere)
    } else if new != id {
      try call.engine.rename(id, to: new, elsewhere: elsewhere)
    }
    call.answer([
      "from": .string(id.description), "to": .string(new.description), "name": name.map(JSONValue.string),
    ])
  }
}

struct ChangeOptions: GatewayRequest {
  static let verb = "device/options"
  static let own: [ConfigurationKey<Self>] = [
    .id(\.$id),
    ConfigurationKey(
      required: "options", \.$options, .section,
      hint: "an object of \(DeviceOptionsPatch.keys.map(\.name).joined(separator: ", "))"),
  ]
  @Required var id: DeviceID
  @Required var options: DeviceOptionsPatch

  func perform(_ call: RequestCall) throws(RequestError) {
    let device = try call.engine.change(id, options)
    call.answer(device.map { call.host.listing(of: $0) } ?? ["id": .string(id.description)])
  }
}

struct PairDevice: GatewayRequest {
  static let verb = "device/pair"
  static let own: [ConfigurationKey<Self>] =
    DeviceSelector.keys.map { ConfigurationKey($0, in: \.device) }
    + [ConfigurationKey("passkey", \.passkey, .optional(.passkey))]
  var device = DeviceSelector()
  var passkey: Int?

  func problems(at path: ConfigurationPath) -> [ConfigurationError] { device.problems(at: path) }

  func perform(_ call: RequestCall) throws(RequestError) {
    try call.engine.pair(device.reference, passkey: passkey) { result in
      call.reply(
        result.map {
          ["paired": .bool($0 == .paired), "passkey_required": $0 == .passkeyRequired ? .bool(true) : nil]
        })
    }
  }
}

struct UnpairDevice: GatewayRequest {
  static let verb = "device/unpair"
  static let own = DeviceSelector.keys.map { ConfigurationKey<Self>($0, in: \.device) }
  var device = DeviceSelector()

  func problems(at path: ConfigurationPath) -> [ConfigurationError] { device.problems(at: path) }

  func perform(_ call: RequestCall) throws(RequestError) {
    try call.engine.unpair(device.reference) { call.reply($0.map { ["paired": .bool(false)] }) }
  }
}

struct InspectDevice: GatewayRequest {
  static let verb = "device/inspect"
  static let own = DeviceSelector.keys.map { ConfigurationKey<Self>($0, in: \.device) }
  var device = DeviceSelector()

  func problems(at path: ConfigurationPath) -> [ConfigurationError] { device.problems(at: path) }

  func perform(_ call: RequestCall) throws(RequestError) {
    let address = try call.engine.address(of: device.reference)
    guard let sender = address.radioSender else {
      return call.later { () throws(RequestError) in try await call.engine.inspect(device.reference).json }
    }
    // Radio has no links, and no services.
    let known = call.engine.description(at: address)
    call.answer([
      "identifier": .string(address.description),
      "name": (known?.settings.name ?? sender.name?.description).map(JSONValue.string),
      "device": known.map { .string($0.id.description) }, "profile": .string(Profile.radio.name),
      "fits": .bool(true),
      "services": [],
    ])
  }
}

struct IdentifyDevice: GatewayRequest {
  static let verb = "device/identify"
  static let own: [ConfigurationKey<Self>] = [.id(\.$id)]
  @Required var id: DeviceID

  func perform(_ call: RequestCall) throws(RequestError) {
    try call.checkUsable(id)
    call.later { () throws(RequestError) in
      let (property, text) = try await call.engine.identify(id)
      return [
        "id": .string(id.description), "property": .string(property), "value": text.map(JSONValue.string),
      ]
    }
  }
}

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
