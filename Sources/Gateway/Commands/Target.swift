import Configuration
import GATT
import JSON
import Log

/// A device of the gateway, or another peripheral, that the user may mean.
struct Target {
  let address: BluetoothAddress
  /// The id; nil: the peripheral is not a device of the gateway.
  let id: String?
  /// The Bluetooth name, and the configured one.
  let names: [String]
  /// Whether the gateway has no link to the device, is to make one, and does not know when it can.
  var isOffline = false
  /// The gateway that owns the device.
  var owner: String?
  /// The time; nil: the device is online, or was not while the gateway runs.
  var offlineSince: Timestamp?
  /// Why there is no link, as far as known.
  var lastError: String?
  var isPaired = false
  /// The profile's name; nil if it is not a device.
  var profile: String?

  var label: String { id ?? names.first.map { Excerpt($0).description } ?? address.description }

  /// The keys that name it in a request.
  var selector: JSONValue {
    id.map { ["id": .string($0)] } ?? ["identifier": .string(address.description)]
  }

  init(_ address: BluetoothAddress, id: String? = nil, names: [String] = []) {
    (self.address, self.id, self.names) = (address, id, names)
  }

  /// What the user means by an address, an id, or a part of a name that no other has; nil: none of them.
  static func named(_ text: String, among targets: [Target]) throws(CommandFailure) -> Target? {
    let part = text.lowercased()
    let address = BluetoothAddress(text) ?? BluetoothAddress(compact: part)
    if let address, let one = targets.first(where: { $0.address == address }) { return one }
    if let one = targets.first(where: { $0.id == text }) { return one }
    let matching = targets.filter { target in
      (target.names + [target.id].compactMap { $0 }).contains { $0.lowercased().hasOccurrence(of: part) }
    }
    guard matching.count > 1 else { return matching.first ?? address.map { Target($0) } }
    let lines = matching.map { "\n  \($0)" }.joined()
    throw CommandFailure(
      .usage, "\(Excerpt(text)) is not unique: use an address or an id, or more of the name:\(lines)")
  }

  /// What is said if nothing has that name.
  static func none(_ text: String, among devices: [Target], orInRange: Bool) -> CommandFailure {
    let known = devices.map(\.label)
    let hint = nearest(to: text, among: known).map { ": did you mean \($0)?" }
    let list = known.isEmpty ? "" : "; devices: \(known.joined(separator: ", "))"
    let kind = orInRange ? "device or peripheral in range" : "device"
    return CommandFailure(.unavailable, "no \(kind) is called \(Excerpt(text))\(hint ?? list)")
  }

  /// Reads an entry of the requests `devices` or `scan`.
  init?(_ json: JSONValue) {
    guard let address = json.identifier else { return nil }
    self.init(
      address, id: (json["id"] ?? json["device"])?.text,
      names: [json["name"], json["bluetooth_name"]].compactMap { $0?.text })
    let hasNoLink = ["absent", "waiting", "connecting", "subscribing", "leaving"].contains(
      json["session"]?.text)
    isOffline = hasNoLink && !json.isBetweenLinks
    owner = json["owner"]?.text
    offlineSince = json["offline_since"]?.time
    lastError = json["last_error"]?.text
    isPaired = json["paired"] == .bool(true)
    profile = json["profile"]?.text
  }
}

extension Target: CustomStringConvertible {
  /// A line: `kitchen  C5:A1:B2:C3:D4:E5  "BBC micro:bit [zagep]"`.
  var description: String {
    ([id, address.description].compactMap { $0 } + names.map { Excerpt($0).description })
      .joined(separator: "  ")
  }
}

extension JSONValue {
  /// Whether the device of this entry is online without a link: between two visits or turns.
  var isBetweenLinks: Bool { self["last_connected"] != nil && self["offline_since"] == nil }

  /// The address of the device or peripheral of this entry.
  var identifier: BluetoothAddress? { self["identifier"]?.text.flatMap { BluetoothAddress($0) } }

  var time: Timestamp? { text.flatMap { Timestamp($0) } }

  /// The value as text to display: a string without quotes, with a mark for each invisible character.
  var shown: String { Excerpt.harmless(plain) }

  /// The value with its unit: `21 °C`.
  func shown(unit: JSONValue?) -> String { unit.map { "\(shown) \($0.shown)" } ?? shown }
}
