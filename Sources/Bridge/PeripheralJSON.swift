import BlueZ
import Configuration
import Devices
import GATT
import JSON

extension Peripheral {
  /// An entry of `scan`.
  ///
  /// - Parameter device: nil: it is not a device of this gateway.
  package func json(_ device: DeviceDescription?) -> JSONValue {
    let own: JSONValue = [
      "rssi": rssi.map(JSONValue.integer), "connected": .bool(isConnected),
      "services": services.isEmpty ? nil : .array(services.map { .string($0.description) }),
    ]
    return identity(device).merging(own).merging(advertised.json)
  }

  /// The address and names of the peripheral, and the id of the device that it is.
  func identity(_ device: DeviceDescription?) -> JSONValue {
    [
      "identifier": .string(address.description),
      "name": (device?.settings.name ?? name).map(JSONValue.string),
      "bluetooth_name": name.map(JSONValue.string), "device": device.map { .string($0.id.description) },
    ]
  }
}

extension AdvertisedData {
  fileprivate var json: JSONValue {
    [
      "manufacturer_data": Self.json(manufacturerData) { "0x" + Hexadecimal.text($0, bytes: 2) },
      "service_data": Self.json(serviceData, \.description),
      "flags": flags.isEmpty ? nil : .string(Hexadecimal.text(flags)),
      "advertising_data": Self.json(other) { Hexadecimal.text($0, bytes: 1) },
    ]
  }

  /// The bytes in hexadecimal; nil if there are none.
  private static func json<Key>(_ data: [Key: [UInt8]], _ name: (Key) -> String) -> JSONValue? {
    guard !data.isEmpty else { return nil }
    let members = data.map { (name($0.key), JSONValue.string(Hexadecimal.text($0.value))) }
    return .object(Dictionary(uniqueKeysWithValues: members))
  }
}

extension Inspection {
  /// The response to `device/inspect`.
  package var json: JSONValue {
    let missing: [(String, JSONValue?)] = missing.map { ($0.property, .string($0.reason)) }
    let own: JSONValue = [
      "rssi": peripheral.rssi.map(JSONValue.integer), "paired": .bool(peripheral.isPaired),
      "profile": profile.map { .string($0.name) }, "fits": .bool(fits),
      "missing_services": missingServices.isEmpty
        ? nil : .array(missingServices.map { .string($0.description) }),
      "missing": missing.isEmpty ? nil : .object(of: missing), "unread": unread.map(JSONValue.string),
      "heard": heard.map { .array($0.map(\.json)) }, "services": .array(services),
    ]
    let identity = peripheral.identity(device).merging(own)
    return heard == nil ? identity : identity.merging(peripheral.advertised.json)
  }

  /// The services in the order of bluetoothd, each once.
  private var services: [JSONValue] {
    var order: [BluetoothUUID] = []
    var characteristics: [BluetoothUUID: [JSONValue]] = [:]
    for item in items {
      let service = item.characteristic.service
      if characteristics[service] == nil { order.append(service) }
      characteristics[service, default: []].append(item.json)
    }
    return order.map { service in
      ["uuid": .string(service.description), "characteristics": .array(characteristics[service] ?? [])]
    }
  }
}

extension Inspection.HeardValue {
  fileprivate var json: JSONValue {
    [
      "property": .string(property.name), "unit": property.unit.map(JSONValue.string),
      "value": value.map { property.codec.json($0) }, "error": reason.map(JSONValue.string),
    ]
  }
}

extension Inspection.Item {
  fileprivate var json: JSONValue {
    let flags = characteristic.flags.description.split(separator: ",").map { JSONValue.string(String($0)) }
    let bytes = try? value?.get()
    let error: CentralError? = if case .failure(let error) = value { error } else { nil }
    let codec = properties.first?.codec
    let decoded = bytes.flatMap { try? codec?.decode($0) }
    return [
      "uuid": .string(characteristic.uuid.description), "flags": .array(flags),
      "property": properties.isEmpty ? nil : .string(properties.map(\.name).joined(separator: ",")),
      "unit": properties.first?.unit.map(JSONValue.string),
      "bytes": bytes.map { .string(Hexadecimal.text($0)) }, "value": decoded.flatMap { codec?.json($0) },
      "error": error.map { .string("\($0)") },
      "wants_pairing": error?.wantsPairing == true ? .bool(true) : nil,
      "firmware_update": characteristic.isFirmwareUpdate ? .bool(true) : nil,
      "descriptors": descriptors.isEmpty
        ? nil : .array(descriptors.map { Self.json(of: $0.uuid, $0.value) }),
    ]
  }

  /// A descriptor; the value of a user description is a text, that of a presentation format an object.
  private static func json(of uuid: BluetoothUUID, _ value: Result<[UInt8], CentralError>?) -> JSONValue {
    let bytes = try? value?.get()
    let error: CentralError? = if case .failure(let error) = value { error } else { nil }
    let shown: JSONValue? = bytes.flatMap { bytes in
      switch uuid {
      case BluetoothUUID(short: 0x2901): .string(String(decoding: bytes, as: UTF8.self))
      case BluetoothUUID(short: 0x2904): PresentationFormat(bytes).map(\.json)
      default: nil
      }
    }
    return [
      "uuid": .string(uuid.description), "bytes": bytes.map { .string(Hexadecimal.text($0)) },
      "value": shown, "error": error.map { .string("\($0)") },
    ]
  }
}

extension PresentationFormat {
  fileprivate var json: JSONValue {
    [
      "type": .string(formatName), "exponent": exponent == 0 ? nil : .integer(Int(exponent)),
      "unit": unitName.map(JSONValue.string), "text": .string(description),
    ]
  }
}
