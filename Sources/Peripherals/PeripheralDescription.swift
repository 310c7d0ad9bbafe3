import GATT

/// A peripheral to simulate that is not a micro:bit: a value is what was set or written last, and notifications are
/// sent by control commands. `microbit-simulator --help` explains its form in JSON.
package struct PeripheralDescription: Sendable, Equatable {
  package typealias Service = GATTDatabase.Service
  package typealias Characteristic = GATTDatabase.Characteristic

  /// The advertised name.
  package var name: String
  /// The address; nil: a default address.
  package var address: BluetoothAddress?
  /// The advertised services, which Device1.UUIDs shows before the first connection.
  package var advertises: [BluetoothUUID]
  /// The advertised manufacturer data, by company identifier.
  package var manufacturerData: [UInt16: [UInt8]] = [:]
  /// The advertised service data, by service.
  package var serviceData: [BluetoothUUID: [UInt8]] = [:]
  /// The services in the order of their handles.
  package var services: [Service]
  /// What sets the values.
  package var generators: [Generator] = []

  /// A peripheral with these services.
  package init(
    name: String, address: BluetoothAddress? = nil, advertises: [BluetoothUUID] = [], services: [Service]
  ) {
    self.name = name
    self.address = address
    self.advertises = advertises
    self.services = services
  }

  /// The services, for a peripheral that stores what is written.
  package var database: GATTDatabase { GATTDatabase(services) }
}

// MARK: Profiles

extension PeripheralDescription {
  /// A peripheral with the services and characteristics of `profile`; its values are empty at first.
  package init(
    name: String, profile: Profile, address: BluetoothAddress? = nil, advertises: [BluetoothUUID] = []
  ) {
    self.init(name: name, address: address, advertises: advertises, services: [])
    add(profile)
  }

  /// Adds the services and characteristics of `profile`.
  mutating func add(_ profile: Profile) {
    for property in profile.properties where property.source == nil {
      var flags: Set<GATTDatabase.Flag> = []
      if property.isReadable { flags.insert(.read) }
      if property.isNotifying { flags.insert(.notify) }
      if property.isWritable { flags.insert(property.writeMode == .command ? .command : .write) }
      add(
        flags, property.codec, to: property.characteristic, instance: property.instance, of: property.service)
    }
    // One that only identifies the peripheral: a central finds it by its characteristics.
    for uuid in profile.requires where profile.hasLinks && !services.contains(where: { $0.uuid == uuid }) {
      services.append(Service(uuid, [Characteristic(uuid, [.read])]))
    }
  }

  /// Adds flags to a characteristic, identified by its index (from 0) among those with the same UUID of a service.
  private mutating func add(
    _ flags: Set<GATTDatabase.Flag>, _ codec: Codec, to characteristic: BluetoothUUID, instance: Int,
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
    services[at].characteristics[same[instance]].content = .coded(codec)
  }
}
