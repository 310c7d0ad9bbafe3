import Configuration
import Devices
import EventLoop
import GATT
import JSON
import Log

extension DeviceDescription {
  /// Whether it is connected now, and not only for a visit.
  var hasLastingLink: Bool { session == .live && !settings.isOnDemand }

  /// The payload of `{base}/{device}/info`, without what is unknown.
  func infoJSON(owner: GatewayID?, moved: Move?) -> JSONValue {
    var (desired, configured) = ([String: JSONValue](), [String]())
    for property in profile.properties {
      let value = self.desired(property)
      // What commands and requests have set is always shown: another gateway takes what is missing for withdrawn.
      guard let shown = value.shown, !value.isConfigured || mayOffer(property.name) else { continue }
      desired[property.name] = property.codec.json(shown)
      if value.isConfigured { configured.append(property.name) }
    }
    return [
      "name": name.map(JSONValue.string),
      "bluetooth_name": bluetoothName.map(JSONValue.string),
      "area": settings.area.map(JSONValue.string),
      "identifier": .string(address.description),
      "owner": owner.map { .string($0.description) },
      "profile": .string(profile.name),
      "heard": isExclusive ? nil : .bool(true),
      "properties": .array((properties.map(\.name) + namedValues.map(\.property.name)).map(JSONValue.string)),
      "values": namedValues.isEmpty
        ? nil : .object(Dictionary(uniqueKeysWithValues: namedValues.map { ($0.key.description, $0.json) })),
      "adjust": settings.adjust.isEmpty ? nil : settings.adjustJSON,
      "enabled": .bool(settings.isEnabled),
      "disabled_by": record.isDisabled ? "request" : nil,
      "rssi": rssi.map(JSONValue.integer),
      "last_connected": lastConnected.map { .string($0.description) },
      "connected_since": hasLastingLink ? lastConnected.map { .string($0.description) } : nil,
      "turn": turn?.json,
      "last_heard": record.lastHeard.map { .string($0.description) },
      "told": record.told.isEmpty ? nil : .array(record.told.map(\.json)),
      "log": settings.log ? (record.log ?? LogPosition()).handedOver : nil,
      "offline_since": offlineSince.map { .string($0.description) },
      "desired": desired.isEmpty ? nil : .object(desired),
      "configured": configured.isEmpty ? nil : .array(configured.sorted().map(JSONValue.string)),
      "revision": record.revision == 0 ? nil : .integer(record.revision),
      "moved": moved?.json,
      "home_assistant": isDeleted ? "deleted" : nil,
      "model": record.model.map(JSONValue.string),
      "firmware": record.firmware.map(JSONValue.string),
      "serial": record.serial.map(JSONValue.string),
    ]
  }
}

extension NamedValue {
  /// What the program calls it, and what it is.
  fileprivate var json: JSONValue {
    [
      "name": .string(written), "type": .string(type), "unit": property.unit.map(JSONValue.string),
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
  package var sessionWord: String { settings.isEnabled ? session.rawValue : "disabled" }

  /// Advertisements per minute since the device came online; nil for a device with links, in the first 10 s, and while it is
  /// offline.
  private var heardPerMinute: Int? {
    guard timesHeard > 0, isOnline, let heardSince else { return nil }
    let seconds = heardSince.duration(to: .now).components.seconds
    return seconds >= 10 ? timesHeard * 60 / Int(seconds) : nil
  }

  /// An entry of the list of devices: its id, the state of its session, and its `info`.
  package func listing(owner: GatewayID?, moved: Move? = nil) -> JSONValue {
    let own: JSONValue = [
      "id": .string(id.description),
      "session": .string(sessionWord),
      "adapter": adapter.map(JSONValue.string),
      "heard_per_minute": heardPerMinute.map(JSONValue.integer),
      "paired": .bool(isPaired),
      "fleet": settings.isOfFleet ? .bool(true) : nil,
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
