import Configuration
import Devices
import GATT
import JSON
import Log

extension OwnershipMachine {
  /// The owner, as in a device's `info`.
  struct Notice: Equatable, Sendable {
    let gateway: GatewayID
    /// The id under which it is published.
    let id: DeviceID
    /// The name and the profile that it has there by its entry, or by a request.
    var name: String?
    var profile: String?
    var area: String?
    /// The begin of its link, or of its last visit; nil while it is offline. RFC 3339, UTC with milliseconds, which
    /// sorts by time.
    var liveSince: String?
    /// Whether that gateway only hears it.
    var isHeard = false
    /// The signal strength there, in dBm.
    var rssi: Int?
    /// When it was heard there last, if its silence does not make it offline.
    var lastHeard: Timestamp?
    /// The properties that are used there.
    var properties: Set<String> = []
    /// The device's address, if it is given.
    var address: BluetoothAddress?
    var handover = Handover()
  }
}

extension OwnershipMachine.Notice {
  /// Reads a device's `info`; nil when it cannot be read.
  /// - Parameter profile: that of the device at an address here: desired values that it cannot encode are left out.
  init?(_ payload: [UInt8], of id: DeviceID, _ profile: (BluetoothAddress?) -> Profile) {
    guard case .object(let object) = try? JSONParser.parse(payload),
      let gateway = object["owner"]?.text.flatMap({ GatewayID($0) })
    else { return nil }
    self.init(gateway: gateway, id: id)
    if object["name"] != object["bluetooth_name"] { name = object["name"]?.text }
    self.profile = object["profile"]?.text
    area = object["area"]?.text
    isHeard = object["heard"] == .bool(true)
    rssi = object["rssi"]?.integer
    lastHeard = object["last_heard"]?.text.flatMap { Timestamp($0) }
    if object["offline_since"] == nil { liveSince = object["last_connected"]?.text }
    address = object["identifier"]?.text.flatMap { BluetoothAddress($0) }
    properties = Self.names(object["properties"])
    handover = Handover(
      desired: desired(object, profile(address)), isDeleted: object["home_assistant"] == .string("deleted"),
      revision: object["revision"]?.integer ?? 0, values: Self.values(object["values"]),
      told: (object["told"]?.elements ?? []).compactMap(HeardEvents.Event.init).suffix(HeardEvents.mostTold))
  }

  private static func names(_ json: JSONValue?) -> Set<String> {
    Set((json?.elements ?? []).compactMap(\.text))
  }

  private static func values(_ json: JSONValue?) -> [(key: ValueKey, written: String, isNumber: Bool)] {
    guard case .object(let values) = json else { return [] }
    return values.members.compactMap { member in
      guard let key = ValueKey(member.name), let name = member.value["name"]?.text else { return nil }
      return (key, name, member.value["type"] == .string("number"))
    }
  }

  private func desired(_ object: JSONObject, _ profile: Profile) -> [String: PublishedDesired] {
    let configured = Self.names(object["configured"])
    var values: [String: PublishedDesired] = [:]
    for name in properties.union(configured) { values[name] = .noOverride }
    guard case .object(let desired) = object["desired"] else { return values }
    for member in desired.members where !configured.contains(member.name) {
      let encoded = try? profile.property(named: member.name)?.value(of: member.value)
      values[member.name] = encoded.map(PublishedDesired.override)
    }
    return values
  }
}
