import FoundationEssentials
import GATT

/// A peripheral to be simulated that is no micro:bit: what is read is what was set or written last, and notifications
/// come on command.
///
/// In JSON:
///
///     {"name": "Polar H7", "address": "E6:7A:00:00:00:02", "advertises": ["180d"], "services": [
///       {"uuid": "180d", "characteristics": [{"uuid": "2a37", "flags": ["notify"], "value": "0048"}]}]}
///
/// `address`, `advertises` and `value` (hexadecimal) may be absent. In the place of `services` may stand `profile`: a
/// profile as the gateway's configuration has it.
public struct PeripheralDescription: Sendable, Hashable {
  /// What can be done with a characteristic, in bluetoothd's words and its order (`chrc_prop_data` in
  /// `src/gatt-client.c`).
  public enum Flag: String, Sendable, Hashable, CaseIterable, Decodable {
    /// It answers reads.
    case read
    /// It takes writes that nobody confirms.
    case command = "write-without-response"
    /// It takes writes and confirms them.
    case write
    /// It tells its values.
    case notify
    /// It tells its values and has them confirmed.
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

  /// A characteristic; one that notifies or indicates has a client configuration.
  public struct Characteristic: Sendable, Hashable {
    /// Several of a service may have the same.
    public var uuid: BluetoothUUID
    /// What can be done with it.
    public var flags: Set<Flag>
    /// What it holds until it is set or written, and again after a reset.
    public var value: [UInt8]

    /// A characteristic that holds `value` at first.
    public init(_ uuid: BluetoothUUID, _ flags: Set<Flag>, value: [UInt8] = []) {
      self.uuid = uuid
      self.flags = flags
      self.value = value
    }
  }

  /// The name that it advertises.
  public var name: String
  /// nil: one of the simulator's own.
  public var address: BluetoothAddress?
  /// The services that it advertises, which Device1.UUIDs shows before it was ever connected.
  public var advertises: [BluetoothUUID]
  /// In the order of their handles.
  public var services: [Service]

  /// A peripheral with these services.
  public init(
    name: String, address: BluetoothAddress? = nil, advertises: [BluetoothUUID] = [], services: [Service]
  ) {
    self.name = name
    self.address = address
    self.advertises = advertises
    self.services = services
  }

  /// The longest value that ATT has (Bluetooth Core Specification, volume 3, part F, section 3.2.9).
  private static let longestValue = 512

  var database: GATTDatabase {
    GATTDatabase(
      services.map { service in
        GATTDatabase.Service(
          service.uuid.description,
          service.characteristics.map { characteristic in
            GATTDatabase.Characteristic(
              characteristic.uuid.description,
              Flag.allCases.filter(characteristic.flags.contains).map(\.rawValue),
              .stored(0...Self.longestValue), characteristic.value)
          })
      })
  }
}

// MARK: Of a profile

extension PeripheralDescription {
  /// A peripheral that has what `profile` says of services and characteristics; its values are empty at first.
  public init(
    name: String, profile: Profile, address: BluetoothAddress? = nil, advertises: [BluetoothUUID] = []
  ) {
    self.init(name: name, address: address, advertises: advertises, services: [])
    for property in profile.properties {
      var flags: Set<Flag> = []
      if property.isReadable { flags.insert(.read) }
      if property.isNotifying { flags.insert(.notify) }
      if property.isWritable { flags.insert(property.writeMode == .command ? .command : .write) }
      add(flags, to: property.characteristic, instance: property.instance, of: property.service)
    }
  }

  /// Gives flags to number `instance`, from 0, of a service's characteristics with that UUID.
  private mutating func add(
    _ flags: Set<Flag>, to characteristic: BluetoothUUID, instance: Int, of service: BluetoothUUID
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
  /// The file's path, and what is wrong with it.
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
        add(property.flags, to: property.characteristic, instance: property.instance, of: property.service)
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

/// What matters here of a profile in the gateway's configuration.
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
  /// What a text of that key was read as; nil: it could not be.
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

/// The bytes of `00ff`; nil when it is not hexadecimal.
func bytes(hexadecimal text: String) -> [UInt8]? {
  let digits = text.compactMap(\.hexDigitValue)
  guard digits.count == text.count, digits.count.isMultiple(of: 2) else { return nil }
  return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
}

/// `00ff`: the bytes in lower-case hexadecimal.
func hexadecimal(_ bytes: [UInt8]) -> String {
  bytes.map { hex(Int($0), digits: 2).lowercased() }.joined()
}
