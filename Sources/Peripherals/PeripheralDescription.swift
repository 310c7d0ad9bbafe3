import FoundationEssentials
import GATT

/// A peripheral to simulate that is not a micro:bit: a value is what was set or written last, and notifications are sent
/// by control commands.
///
/// In JSON:
///
///     {"name": "Polar H7", "address": "E6:7A:00:00:00:02", "advertises": ["180d"], "services": [
///       {"uuid": "180d", "characteristics": [{"uuid": "2a37", "flags": ["notify"], "value": "0048"}]}]}
///
/// `address`, `advertises` and `value` (hexadecimal) are optional. Instead of `services` there may be `profile`, a profile
/// as in the gateway's configuration.
public struct PeripheralDescription: Sendable, Hashable {
  /// The operations of a characteristic, in bluetoothd's terms and order (`chrc_prop_data` in `src/gatt-client.c`).
  public enum Flag: String, Sendable, Hashable, CaseIterable, Decodable {
    /// Can be read.
    case read
    /// Can be written without response.
    case command = "write-without-response"
    /// Can be written with response.
    case write
    /// Sends notifications.
    case notify
    /// Sends indications.
    case indicate
  }

  /// A service with its characteristics.
  public struct Service: Sendable, Hashable {
    /// Several may have the same.
    public var uuid: BluetoothUUID
    /// In the order of their handles.
    public var characteristics: [Characteristic]

    /// A service with these characteristics, in this order.
    public init(_ uuid: BluetoothUUID, _ characteristics: [Characteristic]) {
      self.uuid = uuid
      self.characteristics = characteristics
    }
  }

  /// A characteristic; with a client configuration if it notifies or indicates.
  public struct Characteristic: Sendable, Hashable {
    /// Several of a service may have the same.
    public var uuid: BluetoothUUID
    /// The supported operations.
    public var flags: Set<Flag>
    /// The initial value, also after a reset.
    public var value: [UInt8]
    /// Determines which lengths a write may have; nil: any.
    package var codec: Codec?

    /// A characteristic with the initial value `value`.
    public init(_ uuid: BluetoothUUID, _ flags: Set<Flag>, value: [UInt8] = []) {
      self.uuid = uuid
      self.flags = flags
      self.value = value
    }
  }

  /// The advertised name.
  public var name: String
  /// Nil: a default address.
  public var address: BluetoothAddress?
  /// The advertised services, which Device1.UUIDs shows before the first connection.
  public var advertises: [BluetoothUUID]
  /// In the order of their handles.
  public var services: [Service]
  /// What sets its values.
  package var generators: [Generator] = []

  /// A peripheral with these services.
  public init(
    name: String, address: BluetoothAddress? = nil, advertises: [BluetoothUUID] = [], services: [Service]
  ) {
    self.name = name
    self.address = address
    self.advertises = advertises
    self.services = services
  }

  /// The maximum length of a value in ATT (Core Specification Vol 3, Part F, 3.2.9).
  private static let longestValue = 512

  /// Its services, for a peripheral that stores what is written.
  package var database: GATTDatabase {
    GATTDatabase(
      services.map { service in
        GATTDatabase.Service(
          service.uuid.description,
          service.characteristics.map { characteristic in
            GATTDatabase.Characteristic(
              characteristic.uuid.description,
              Flag.allCases.filter(characteristic.flags.contains).map(\.rawValue),
              characteristic.codec.map(GATTDatabase.Content.coded) ?? .stored(0...Self.longestValue),
              characteristic.value)
          })
      })
  }
}

// MARK: Profiles

extension PeripheralDescription {
  /// A peripheral with the services and characteristics of `profile`; its values are empty at first.
  public init(
    name: String, profile: Profile, address: BluetoothAddress? = nil, advertises: [BluetoothUUID] = []
  ) {
    self.init(name: name, address: address, advertises: advertises, services: [])
    for property in profile.properties {
      var flags: Set<Flag> = []
      if property.isReadable { flags.insert(.read) }
      if property.isNotifying { flags.insert(.notify) }
      if property.isWritable { flags.insert(property.writeMode == .command ? .command : .write) }
      add(
        flags, property.codec, to: property.characteristic, instance: property.instance, of: property.service)
    }
  }

  /// Adds flags to a characteristic, identified by its index (from 0) among those with the same UUID of a service.
  private mutating func add(
    _ flags: Set<Flag>, _ codec: Codec?, to characteristic: BluetoothUUID, instance: Int,
    of service: BluetoothUUID
  ) {
    let at = services.firstIndex { $0.uuid == service } ?? services.endIndex
    if at == services.endIndex { services.append(Service(service, [])) }
    while services[at].characteristics.count(where: { $0.uuid == characteristic }) <= instance {
      services[at].characteristics.append(Characteristic(characteristic, []))
    }
    let same = services[at].characteristics.indices.filter {
      services[at].characteristics[$0].uuid == characteristic
    }
    services[at].characteristics[same[instance]].flags.formUnion(flags)
    services[at].characteristics[same[instance]].codec = codec
  }
}

// MARK: JSON

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
  private enum Key: CodingKey {
    case name, address, advertises, services, profile
  }

  /// - Throws: `DecodingError`.
  public init(from decoder: any Decoder) throws {
    let object = try decoder.container(keyedBy: Key.self)
    name = try object.decode(String.self, forKey: .name)
    address = try object.decodeIfPresent(String.self, forKey: .address).map { text in
      try object.valid(BluetoothAddress(text), text, .address)
    }
    advertises = try (object.decodeIfPresent([String].self, forKey: .advertises) ?? []).map { text in
      try object.valid(BluetoothUUID(text), text, .advertises)
    }
    if object.contains(.profile) {
      services = []
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
    uuid = try object.uuid(.uuid)
    characteristics = try object.decode(
      [PeripheralDescription.Characteristic].self, forKey: .characteristics)
  }
}

extension PeripheralDescription.Characteristic: Decodable {
  private enum Key: CodingKey {
    case uuid, flags, value
  }

  /// - Throws: `DecodingError`.
  public init(from decoder: any Decoder) throws {
    let object = try decoder.container(keyedBy: Key.self)
    uuid = try object.uuid(.uuid)
    flags = try object.decode(Set<PeripheralDescription.Flag>.self, forKey: .flags)
    let text = try object.decodeIfPresent(String.self, forKey: .value) ?? ""
    value = try object.valid(bytes(hexadecimal: text), text, .value)
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
