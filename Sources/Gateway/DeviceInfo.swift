import GATT

/// What is known of a device beyond its readings: the payload of `…/info`, and an entry of the bridge's list.
struct DeviceInfo: Sendable, Equatable {
  let id: DeviceID
  let identifier: BluetoothAddress
  let gateway: GatewayID
  let profile: String
  /// The Bluetooth name, as it came from the air; nil while none was heard.
  var name: String?
  /// The configured name.
  var label: String?
  var area: String?
  /// Signal strength in dBm, when it was last heard.
  var rssi: Int?
  /// Nil while there is no connection.
  var connectedSince: Timestamp?
  /// What the Device Information Service says; nil where it was not read.
  var model: String?
  var firmware: String?
  var serial: String?

  init(id: DeviceID, identifier: BluetoothAddress, gateway: GatewayID, profile: String) {
    self.id = id
    self.identifier = identifier
    self.gateway = gateway
    self.profile = profile
  }

  /// The payload of `{base}/{device}/info`; what is not known is left out.
  var payload: [UInt8] { json.bytes }

  fileprivate var json: JSONValue {
    [
      "name": name.map(JSONValue.string),
      "label": label.map(JSONValue.string),
      "area": area.map(JSONValue.string),
      "identifier": .string(identifier.description),
      "gateway": .string(gateway.description),
      "profile": .string(profile),
      "rssi": rssi.map(JSONValue.integer),
      "connected_since": connectedSince.map { .string($0.description) },
      "model": model.map(JSONValue.string),
      "firmware": firmware.map(JSONValue.string),
      "serial": serial.map(JSONValue.string),
    ]
  }
}

/// An entry of `{base}/bridge/{gateway}/devices`: a device and where its session stands.
struct DeviceListing: Sendable, Equatable {
  let info: DeviceInfo
  /// A word for the session's state: `live`, `waiting` …
  let state: String

  init(info: DeviceInfo, state: String) {
    self.info = info
    self.state = state
  }

  /// The payload of the topic.
  static func payload(_ devices: [DeviceListing]) -> [UInt8] {
    JSONValue.array(devices.map(\.json)).bytes
  }

  private var json: JSONValue {
    guard case .object(let object) = info.json else { return info.json }
    let own = [
      JSONObject.Member(name: "id", value: .string(info.id.description)),
      JSONObject.Member(name: "state", value: .string(state)),
    ]
    return .object(JSONObject(own + object.members))
  }
}
