import Configuration
import GATT
import JSON
import Log
import Store

extension Schema {
  /// The schema of the gateway's state database.
  ///
  /// | Key | Value, JSON |
  /// |-|-|
  /// | `devices/{address}` | what is kept of a device: `id`, `name`, `offered`, `model`, `firmware`, `serial`,
  /// `changes`, `added`, `removed`, `desired` |
  /// | `home_assistant/{address}` | what Home Assistant knows of a device: `announced`, `deleted` |
  /// | `home_assistant/gateway` | what Home Assistant knows of the gateway: `announced` |
  /// | `home_assistant/removal/{topic}` | what was announced on a discovery topic, and is to be removed |
  /// | `commands/{address}` | the retained commands that were handled |
  package static func gateway(_ id: GatewayID) -> Schema {
    Schema(
      version: 2,
      migrations: [
        { old in
          let (records, dropped) = StateSchema0.migrated(old)
          if dropped > 0 {
            Logger(component: "state").warning(
              "dropped unreadable records of the state database", ["records": dropped])
          }
          return records
        },
        { StateSchema1.migrated($0, gateway: id) },
      ])
  }
}

/// The layout before there were sections. A key is the address of a device, `gateway`, or a discovery topic from which
/// a device was removed.
enum StateSchema0 {
  /// What is copied from the record of a device before, and after, what is converted.
  private static let first = ["id", "name", "offered", "model", "firmware", "serial"]
  private static let last = ["added", "removed"]

  /// The records in the layout of version 1, and how many were dropped as they cannot be read.
  ///
  /// The digests of retained commands that were carried out (`taken`) are not migrated: those of version 1 are kept by
  /// topic, which the old ones do not name. A command that is still retained is carried out once more after the
  /// upgrade.
  static func migrated(_ old: [String: [UInt8]]) -> (records: [String: [UInt8]], dropped: Int) {
    var records: [String: [UInt8]] = [:]
    var dropped = 0
    for (key, bytes) in old {
      if let new = migrated(key, bytes) {
        for (key, json) in new where json != [:] { records[key] = json.bytes }
      } else {
        dropped += 1
      }
    }
    return (records, dropped)
  }

  /// What becomes of one record; nil where it cannot be read.
  private static func migrated(_ key: String, _ bytes: [UInt8]) -> [String: JSONValue]? {
    guard let json = try? JSONParser.parse(bytes), case .object = json else { return nil }
    if key == "gateway" { return ["home_assistant/gateway": ["announced": json]] }
    if let address = BluetoothAddress(key) {
      return device(json).map {
        ["devices/\(address)": $0, "home_assistant/\(address)": homeAssistant(json)]
      }
    }
    guard case .string(let prefix) = json["prefix"], key.hasPrefix("\(prefix)/device/"),
      key.hasSuffix("/config")
    else { return nil }
    return ["home_assistant/removal/\(key)": json]
  }

  private static func homeAssistant(_ old: JSONValue) -> JSONValue {
    ["announced": old["announced"], "forgotten": old["forgotten"] == .bool(true) ? .bool(true) : nil]
  }

  private static func device(_ old: JSONValue) -> JSONValue? {
    guard let changes = members(old["changes"]), let desired = desired(old, changes) else { return nil }
    let remaining = changes.filter { $0.name != "period" }
    let converted: JSONValue = [
      "changes": remaining.isEmpty ? nil : .object(JSONObject(remaining))
    ]
    return copied(first, old).merging(converted).merging(copied(last, old))
      .merging(["desired": desired.isEmpty ? nil : .object(desired)])
  }

  private static func copied(_ names: [String], _ old: JSONValue) -> JSONValue {
    .object(
      JSONObject(names.compactMap { name in old[name].map { JSONObject.Member(name: name, value: $0) } }))
  }

  /// The desired values, by property. A request changed the period in two places; a later command in one of them.
  private static func desired(_ old: JSONValue, _ changes: [JSONObject.Member]) -> [String: JSONValue]? {
    guard let stored = members(old["wanted"]) else { return nil }
    let requested = changes.first { $0.name == "period" }?.value
    var values = Dictionary(stored.map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first })
    values["period"] = values["period"] ?? requested
    var desired: [String: JSONValue] = [:]
    for (name, value) in values {
      guard case .integer = value else { return nil }
      let isRequested = name == "period" && value == requested
      desired[name] = ["value": value, "source": isRequested ? "request" : nil]
    }
    return desired
  }

  /// The members of an object, none where there is nothing; nil where there is something else.
  private static func members(_ json: JSONValue?) -> [JSONObject.Member]? {
    switch json {
    case nil: []
    case .object(let object): object.members
    case .null, .bool, .integer, .number, .string, .array: nil
    }
  }
}

/// Home Assistant knew a device as `microbit_{address}`, and the gateway as `microbit_gateway_{id}`.
enum StateSchema1 {
  /// The records in the layout of version 2: what was announced under the old names is to be removed.
  static func migrated(_ old: [String: [UInt8]], gateway: GatewayID) -> [String: [UInt8]] {
    let section = "home_assistant/"
    var records = old.filter { !$0.key.hasPrefix(section) || $0.key.hasPrefix("\(section)removal/") }
    for (key, bytes) in old where records[key] == nil {
      guard let json = try? JSONParser.parse(bytes) else { continue }
      if json["forgotten"] == .bool(true) { records[key] = JSONValue.object(["deleted": .bool(true)]).bytes }
      let address = BluetoothAddress(String(key.dropFirst(section.count)))
      let object = address.map { "microbit_\($0.compact)" } ?? "microbit_gateway_\(gateway)"
      if let announced = json["announced"], case .string(let prefix) = announced["prefix"] {
        records["\(section)removal/\(prefix)/device/\(object)/config"] = announced.bytes
      }
    }
    return records
  }
}
