import FoundationEssentials
import GATT
import Peripherals

extension PeripheralDescription {
  /// Reads the JSON file at `path`.
  /// - Throws: ``DescriptionError``.
  public init(file path: String) throws(DescriptionError) {
    guard let data = FileManager.default.contents(atPath: path) else {
      throw DescriptionError(path: path, reason: "cannot be read")
    }
    do {
      self = try JSONDecoder().decode(PeripheralDescription.self, from: data)
    } catch {
      throw DescriptionError(path: path, reason: "\(error)")
    }
  }
}

/// A description that cannot be read.
public struct DescriptionError: Error, Sendable, CustomStringConvertible {
  let path: String
  let reason: String
  /// The file's path, and the error.
  public var description: String { "\(path): \(reason)" }
}

extension PeripheralDescription: Decodable {
  private enum Key: String, CodingKey {
    case name, address, advertises, services, profile
    case manufacturerData = "manufacturer_data"
    case serviceData = "service_data"
  }

  /// - Throws: `DecodingError`.
  public init(from decoder: any Decoder) throws {
    let object = try decoder.container(keyedBy: Key.self)
    self.init(
      name: try object.decode(String.self, forKey: .name),
      address: try object.decodeIfPresent(String.self, forKey: .address).map { text in
        try object.valid(BluetoothAddress(text), text, .address)
      },
      advertises: try (object.decodeIfPresent([String].self, forKey: .advertises) ?? []).map { text in
        try object.valid(BluetoothUUID(text), text, .advertises)
      },
      services: [])
    for (key, text) in try object.decodeIfPresent([String: String].self, forKey: .manufacturerData) ?? [:] {
      let company = try object.valid(UInt16(key, radix: 16), key, .manufacturerData)
      manufacturerData[company] = try object.valid(Hexadecimal.bytes(text), text, .manufacturerData)
    }
    for (key, text) in try object.decodeIfPresent([String: String].self, forKey: .serviceData) ?? [:] {
      let service = try object.valid(BluetoothUUID(key), key, .serviceData)
      serviceData[service] = try object.valid(Hexadecimal.bytes(text), text, .serviceData)
    }
    if object.contains(.profile) {
      let properties = try object.decode(ProfileObject.self, forKey: .profile).properties.values
      // The order of an object's keys is not kept.
      for property in properties.sorted(by: { $0.order < $1.order }) {
        add(
          property.flags, nil, to: property.characteristic, instance: property.instance, of: property.service)
      }
    } else {
      services = try object.decode([Service].self, forKey: .services)
    }
  }
}

extension PeripheralDescription.Service: Decodable {
  private enum Key: CodingKey {
    case uuid, characteristics
  }

  /// - Throws: `DecodingError`.
  public init(from decoder: any Decoder) throws {
    let object = try decoder.container(keyedBy: Key.self)
    self.init(
      try object.uuid(.uuid),
      try object.decode([PeripheralDescription.Characteristic].self, forKey: .characteristics))
  }
}

extension PeripheralDescription.Characteristic: Decodable {
  private enum Key: CodingKey {
    case uuid, flags, value, descriptors
  }

  /// - Throws: `DecodingError`.
  public init(from decoder: any Decoder) throws {
    let object = try decoder.container(keyedBy: Key.self)
    let text = try object.decodeIfPresent(String.self, forKey: .value) ?? ""
    self.init(
      try object.uuid(.uuid), try object.decode(Set<PeripheralDescription.Flag>.self, forKey: .flags),
      value: try object.valid(Hexadecimal.bytes(text), text, .value))
    descriptors =
      try object.decodeIfPresent([PeripheralDescription.Descriptor].self, forKey: .descriptors) ?? []
  }
}

extension PeripheralDescription.Descriptor: Decodable {
  private enum Key: CodingKey {
    case uuid, value
  }

  /// - Throws: `DecodingError`.
  public init(from decoder: any Decoder) throws {
    let object = try decoder.container(keyedBy: Key.self)
    let text = try object.decode(String.self, forKey: .value)
    self.init(try object.uuid(.uuid), value: try object.valid(Hexadecimal.bytes(text), text, .value))
  }
}

/// The needed parts of a profile in the gateway's configuration.
private struct ProfileObject: Decodable {
  struct Property: Decodable {
    enum Access: String, Decodable {
      case read, notify, write
    }

    enum Key: CodingKey {
      case service, characteristic, instance, access, write
    }

    let service: BluetoothUUID
    let characteristic: BluetoothUUID
    let instance: Int
    let flags: Set<PeripheralDescription.Flag>

    var order: (String, String, Int) { (service.description, characteristic.description, instance) }

    init(from decoder: any Decoder) throws {
      let object = try decoder.container(keyedBy: Key.self)
      service = try object.uuid(.service)
      characteristic = try object.uuid(.characteristic)
      instance = try object.decodeIfPresent(Int.self, forKey: .instance) ?? 0
      guard (0..<100).contains(instance) else {
        throw DecodingError.dataCorruptedError(forKey: .instance, in: object, debugDescription: "\(instance)")
      }
      let mode = try object.decodeIfPresent(String.self, forKey: .write)
      flags = Set(
        try object.decode([Access].self, forKey: .access).map { access in
          switch access {
          case .read: .read
          case .notify: .notify
          case .write: mode == "command" ? .command : .write
          }
        })
    }
  }

  let properties: [String: Property]
}

extension KeyedDecodingContainer {
  /// Returns `value`, which was read from the text of that key; throws if it is nil.
  fileprivate func valid<T>(_ value: T?, _ text: String, _ key: Key) throws -> T {
    guard let value else {
      throw DecodingError.dataCorruptedError(
        forKey: key, in: self, debugDescription: "\(key.stringValue): \(text)")
    }
    return value
  }

  fileprivate func uuid(_ key: Key) throws -> BluetoothUUID {
    let text = try decode(String.self, forKey: key)
    return try valid(BluetoothUUID(text), text, key)
  }
}
