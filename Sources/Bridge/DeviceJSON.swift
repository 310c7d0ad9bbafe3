import Configuration
import Devices
import GATT
import JSON
import Log

extension DeviceDescription {
  /// The payload of `{base}/{device}/info`, without what is unknown.
  func infoJSON(owner: GatewayID?, moved: Move?) -> JSONValue {
    var desired: [String: JSONValue] = [:]
    // What commands and requests have set is always shown: another gateway takes what is missing for withdrawn.
    for (name, value) in self.desired where mayOffer(name) || !self.configured.contains(name) {
      desired[name] = profile.property(named: name)?.codec.json(value)
    }
    let configured = self.configured.filter(mayOffer).sorted()
    return [
      "name": name.map(JSONValue.string),
      "bluetooth_name": bluetoothName.map(JSONValue.string),
      "area": area.map(JSONValue.string),
      "identifier": .string(address.description),
      "owner": owner.map { .string($0.description) },
      "profile": .string(profile.name),
      "heard": profile.hasLinks ? nil : .bool(true),
      "properties": .array((properties.map(\.name) + values.map(\.property.name)).map(JSONValue.string)),
      "values": values.isEmpty
        ? nil : .object(Dictionary(uniqueKeysWithValues: values.map { ($0.key.description, $0.json) })),
      "adjust": adjust == [:] ? nil : adjust,
      "enabled": .bool(isEnabled),
      "rssi": rssi.map(JSONValue.integer),
      "last_connected": lastConnected.map { .string($0.description) },
      "connected_since": session == .live && !isOnDemand
        ? lastConnected.map { .string($0.description) } : nil,
      "turn": turn?.json,
      "last_heard": lastHeard.map { .string($0.description) },
      "told": told.isEmpty ? nil : .array(told.map(\.json)),
      "offline_since": offlineSince.map { .string($0.description) },
      "desired": desired.isEmpty ? nil : .object(desired),
      "configured": configured.isEmpty ? nil : .array(configured.map(JSONValue.string)),
      "revision": revision == 0 ? nil : .integer(revision),
      "moved": moved?.json,
      "home_assistant": isDeleted ? "deleted" : nil,
      "model": model.map(JSONValue.string),
      "firmware": firmware.map(JSONValue.string),
      "serial": serial.map(JSONValue.string),
    ]
  }
}

extension NamedValue {
  /// What the program calls it, and what it is.
  fileprivate var json: JSONValue {
    [
      "name": .string(written), "type": isNumber ? "number" : "text",
      "unit": property.unit.map(JSONValue.string),
    ]
  }
}

extension LinkTurn {
  fileprivate var json: JSONValue {
    ["position": .integer(position), "next": next.map { .string($0.description) }]
  }
}

extension DeviceDescription {
  /// The state of its session, in one word.
  package var sessionWord: String { isEnabled ? session.rawValue : "disabled" }

  /// Advertisements per minute since the device came online; nil for a device with links, and in the first 10 s.
  private var heardPerMinute: Int? {
    guard reports > 0, isOnline, let lastConnected else { return nil }
    let seconds = (Timestamp.now.milliseconds - lastConnected.milliseconds) / 1000
    return seconds >= 10 ? reports * 60 / Int(seconds) : nil
  }

  /// An entry of the list of devices: its id, the state of its session, and its `info`.
  package func listing(owner: GatewayID?, moved: Move? = nil) -> JSONValue {
    let own: JSONValue = [
      "id": .string(id.description),
      "session": .string(sessionWord),
      "adapter": adapter.map(JSONValue.string),
      "heard_per_minute": heardPerMinute.map(JSONValue.integer),
      "paired": .bool(isPaired),
      "fleet": isOfFleet ? .bool(true) : nil,
      "last_error": lastError.map(JSONValue.string),
      "unknown_objects": unknownObjects.isEmpty
        ? nil : .array(unknownObjects.sorted().map { .string("0x" + Hexadecimal.text($0, bytes: 1)) }),
    ]
    return own.merging(infoJSON(owner: owner, moved: moved))
  }
}

/// A device was connected to by another gateway than before.
package struct Move: Sendable, Equatable {
  let from: GatewayID
  /// The device's area there.
  let area: String?
  let time: Timestamp

  fileprivate var json: JSONValue {
    [
      "from": .string(from.description), "area": area.map(JSONValue.string),
      "time": .string(time.description),
    ]
  }
}
