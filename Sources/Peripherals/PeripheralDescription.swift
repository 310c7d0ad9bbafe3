import GATT

/// A peripheral to simulate that is not a micro:bit: a value is what was set or written last, and notifications are
/// sent by control commands.
///
/// In JSON:
///
///     {"name": "Polar H7", "address": "E6:7A:00:00:00:02", "advertises": ["180d"], "services": [
///       {"uuid": "180d", "characteristics": [{"uuid": "2a37", "flags": ["notify"], "value": "0048"}]}]}
///
/// `address`, `advertises`, `manufacturer_data` (`{"004c": "0215"}`), `service_data` (`{"180d": "01"}`), `value`
/// (hexadecimal) and `descriptors` (`[{"uuid": "2901", "value": "48"}]`) are optional. Instead of `services` there may
/// be `profile`, a profile as in the gateway's configuration.
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
    /// Other descriptors than the client configuration.
    public var descriptors: [Descriptor] = []
    /// Determines which lengths a write may have; nil: any.
    package var codec: Codec?

    /// A characteristic with the initial value `value`.
    public init(_ uuid: BluetoothUUID, _ flags: Set<Flag>, value: [UInt8] = []) {
      self.uuid = uuid
      self.flags = flags
      self.value = value
    }
  }

  /// A descriptor, whose value can be read.
  public struct Descriptor: Sendable, Hashable {
    /// Its type.
    public var uuid: BluetoothUUID
    /// What a read returns.
    public var value: [UInt8]

    /// A descriptor with this value.
    public init(_ uuid: BluetoothUUID, value: [UInt8]) {
      self.uuid = uuid
      self.value = value
    }
  }

  /// The advertised name.
  public var name: String
  /// Nil: a default address.
  public var address: BluetoothAddress?
  /// The advertised services, which Device1.UUIDs shows before the first connection.
  public var advertises: [BluetoothUUID]
  /// The advertised manufacturer data, by company identifier.
  public var manufacturerData: [UInt16: [UInt8]] = [:]
  /// The advertised service data, by service.
  public var serviceData: [BluetoothUUID: [UInt8]] = [:]
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
              characteristic.value,
              descriptors: characteristic.descriptors.map {
                GATTDatabase.Descriptor($0.uuid.description, $0.value)
              })
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
  package mutating func add(
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
