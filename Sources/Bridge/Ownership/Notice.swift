import Configuration
import Devices
import GATT
import JSON
import Log

extension OwnershipMachine {
  /// The owner, as in a device's `info`. Anybody who may publish can have written it: no member can hold what is not
  /// checked here.
  struct Notice: Equatable, Sendable {
    let gateway: GatewayID
    /// The id under which the device is published.
    let id: DeviceID
    /// The name and the profile that the device has there by its entry, or by a request.
    var name: String?
    var profile: String?
    var area: String?
    /// The begin of the device's link, or of its last visit; nil while it is offline.
    var liveSince: Timestamp?
    /// Whether that gateway connects to the device; else it only hears it.
    var isExclusive = true
    /// Whether it is connected now: not between turns, nor on demand.
    var hasLink = false
    /// The signal strength there, in dBm.
    var rssi: Int8?
    /// When the device was heard there last, if its silence does not make it offline: by the clock there.
    var lastHeard: Timestamp?
    /// When the first `info` with that time arrived, by the clock here. Of one that was retained, it may be too late: there
    /// the clock of the other gateway is believed.
    var heardSince: Timestamp?
    /// The properties that are used there.
    var properties: Set<PropertyName> = []
    /// The gateway to which the owner leaves the device, as it is pinned to that one.
    var pin: GatewayID?
    /// The device's address, if it is given.
    var address: BluetoothAddress?
    var handover = Handover()
  }
}

extension OwnershipMachine.Notice {
  /// The most bytes of a name, profile or area.
  private static let longestLabel = 256
  /// The revisions that are taken; beyond them, the next change might have no greater number.
  private static let revisions = 0...(1 << 52)

  /// Reads a device's `info`; nil when it cannot be read.
  /// - Parameters:
  ///   - isRetained: whether it was published before the subscription.
  ///   - profile: that of the device at an address here: desired values that it cannot encode are left out.
  init?(
    _ payload: [UInt8], of id: DeviceID, isRetained: Bool, _ profile: (BluetoothAddress?) -> Profile
  ) {
    guard payload.count <= TopicMap.longestPayload, case .object(let object) = try? JSONParser.parse(payload),
      let gateway = object["owner"]?.text.flatMap({ GatewayID($0) })
    else { return nil }
    self.init(gateway: gateway, id: id)
    if object["name"] != object["bluetooth_name"] { name = Self.label(object["name"]) }
    self.profile = Self.label(object["profile"])
    area = Self.label(object["area"])
    isExclusive = object["heard"] != .bool(true)
    rssi = object["rssi"]?.integer.flatMap { Int8(exactly: $0) }
    lastHeard = Self.time(object["last_heard"])
    heardSince = lastHeard.map { isRetained ? min($0, .now) : .now }
    if object["offline_since"] == nil { liveSince = Self.time(object["last_connected"]) }
    hasLink = object["connected_since"] != nil
    pin = object["pinned_to"]?.text.flatMap { GatewayID($0) }
    address = object["identifier"]?.text.flatMap { BluetoothAddress($0) }
    let names = Self.texts(object["properties"])
    properties = Set(names: names, most: Set.most)
    handover = Handover(
      desired: Self.desired(object, Set(names), profile(address)),
      isDeleted: object["home_assistant"] == .string("deleted"),
      isDisabled: object["disabled_by"] == .string("request"),
      revision: object["revision"]?.integer.flatMap { Self.revisions.contains($0) ? $0 : nil } ?? 0,
      valueTable: Self.valueTable(object["values"]),
      told: (object["told"]?.elements ?? []).suffix(HeardEvents.mostTold).compactMap(HeardEvents.Event.init),
      log: object["log"].flatMap { LogPosition($0) })
  }

  private static func texts(_ json: JSONValue?) -> [String] { (json?.elements ?? []).compactMap(\.text) }

  private static func label(_ json: JSONValue?) -> String? {
    json?.text.flatMap { $0.utf8.count <= longestLabel ? $0 : nil }
  }

  private static func time(_ json: JSONValue?) -> Timestamp? { json?.text.flatMap { Timestamp($0) } }

  /// A unit that only the configuration there gives is left out.
  private static func valueTable(_ json: JSONValue?) -> [ValueKey: ValueTable.Entry] {
    guard case .object(let values) = json else { return [:] }
    let today = Timestamp.now.day
    let read = values.members.lazy.compactMap { member -> (ValueKey, ValueTable.Entry)? in
      guard let key = ValueKey(member.name), let name = member.value["name"]?.text,
        name.utf8.count <= ValueTable.longestName
      else { return nil }
      let unit = member.value["unit"]?.text.flatMap { ValueName.isUnit($0) ? $0 : nil }
      let type = member.value["type"]
      let entry = ValueTable.Entry(
        written: name, isNumber: type == "number", isBool: type == "boolean", isConfirmed: true, unit: unit,
        lastSeen: today)
      return (key, entry)
    }
    return Dictionary(read.prefix(ValueTable.capacity)) { first, _ in first }
  }

  private static func desired(
    _ object: JSONObject, _ used: Set<String>, _ profile: Profile
  ) -> [String: EncodedValue?] {
    let configured = Set(texts(object["configured"]))
    var values: [String: EncodedValue?] = [:]
    for property in profile.properties {
      if configured.contains(property.name) {
        values[property.name] = .some(nil)
      } else if let json = object["desired"]?[property.name] {
        values[property.name] = (try? property.value(of: json)).map(Optional.some)
      } else if used.contains(property.name) {
        values[property.name] = .some(nil)
      }
    }
    return values
  }
}
