import Configuration
import GATT
import JSON

/// What is known of a device beyond its readings: the payload of `…/info`, and an entry of the bridge's list.
struct DeviceInfo: Sendable, Equatable {
  var id: DeviceID
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
  /// The names of the properties that it has offered on any link so far; nil: it was never connected.
  private(set) var offered: Set<String>?
  /// Those of them that its last link has not.
  private(set) var missing: Set<String> = []
  /// The values that shall hold, by property: whoever takes the device over brings them about as well.
  var wanted: [String: Int] = [:]
  /// When it came here from another gateway, and where it was.
  var moved: Move?
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

  /// A device was picked up by another gateway than before.
  struct Move: Sendable, Equatable {
    let from: GatewayID
    /// Where that gateway had it.
    let area: String?
    let time: Timestamp
  }

  /// Its link offers these properties, and no others.
  mutating func learn(offered now: Set<String>) {
    let all = (offered ?? []).union(now)
    offered = all
    missing = all.subtracting(now)
  }

  /// Whether it has told anything of its make.
  var hasMake: Bool { model != nil || firmware != nil || serial != nil }

  /// Whether it may have the property, as far as is known.
  func mayOffer(_ property: String) -> Bool { offered?.contains(property) ?? true }

  /// The payload of `{base}/{device}/info`; what is not known is left out.
  var payload: [UInt8] { json.bytes }

  fileprivate var json: JSONValue {
    let wanted = wanted.filter { mayOffer($0.key) }
    return [
      "name": name.map(JSONValue.string),
      "label": label.map(JSONValue.string),
      "area": area.map(JSONValue.string),
      "identifier": .string(identifier.description),
      "gateway": .string(gateway.description),
      "profile": .string(profile),
      "rssi": rssi.map(JSONValue.integer),
      "connected_since": connectedSince.map { .string($0.description) },
      "wanted": wanted.isEmpty ? nil : .object(wanted.mapValues(JSONValue.integer)),
      "moved": moved?.json,
      "model": model.map(JSONValue.string),
      "firmware": firmware.map(JSONValue.string),
      "serial": serial.map(JSONValue.string),
    ]
  }
}

extension DeviceInfo {
  /// What is remembered of it from earlier runs.
  mutating func recall(_ record: DeviceRecord) {
    offered = record.offered
    wanted = record.wanted
    model = record.model
    firmware = record.firmware
    serial = record.serial
  }
}

extension DeviceRecord {
  /// What the device has told of its make.
  mutating func learn(_ info: DeviceInfo) {
    model = info.model
    firmware = info.firmware
    serial = info.serial
  }
}

extension DeviceInfo.Move {
  fileprivate var json: JSONValue {
    [
      "from": .string(from.description), "area": area.map(JSONValue.string),
      "time": .string(time.description),
    ]
  }
}

extension Holder.Notice {
  /// What the payload of a device's `info` says of its holder; nil when it says nothing that can be read.
  init?(_ payload: [UInt8]) {
    guard case .object(let object) = try? JSONParser.parse(payload),
      case .string(let gateway) = object["gateway"], let gateway = GatewayID(gateway)
    else { return nil }
    self.init(gateway: gateway)
    if case .string(let area) = object["area"] { self.area = area }
    if case .string(let time) = object["connected_since"] { connectedSince = time }
    if case .string(let text) = object["identifier"] { identifier = BluetoothAddress(text) }
    guard case .object(let wanted) = object["wanted"] else { return }
    for member in wanted.members {
      if case .integer(let value) = member.value { self.wanted[member.name] = value }
    }
    self.wanted = Profile.microbitDefault.settable(self.wanted)
  }
}

/// An entry of `{base}/bridge/{gateway}/devices`: a device and where its session stands.
struct DeviceListing: Sendable, Equatable {
  let info: DeviceInfo
  /// A word for the session's state: `live`, `waiting` …
  let state: String
  /// The gateway that has it, or had it last; nil: none yet.
  let heldBy: GatewayID?

  init(info: DeviceInfo, state: String, heldBy: GatewayID?) {
    self.info = info
    self.state = state
    self.heldBy = heldBy
  }

  init(_ device: Device) {
    let holder: GatewayID? =
      switch device.holder.party {
      case .nobody: nil
      case .this: device.info.gateway
      case .other(let gateway): gateway
      }
    self.init(
      info: device.info, state: device.settings.isEnabled.value ? device.session.state.rawValue : "disabled",
      heldBy: holder)
  }

  var json: JSONValue {
    let own: JSONValue = [
      "id": .string(info.id.description), "state": .string(state),
      "held_by": heldBy.map { .string($0.description) },
    ]
    return own.merging(info.json)
  }
}
