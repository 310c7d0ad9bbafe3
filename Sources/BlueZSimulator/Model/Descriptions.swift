import DBus
import Peripherals

/// bluetoothd's objects: interfaces and properties in the recorded order.
enum Describe {
  typealias Interface = ObjectTree.Interface
  typealias Property = ObjectTree.Property

  private static let introspectable = Interface(DBusName.introspectable)
  private static let properties = Interface(DBusName.properties)

  static let manager = [
    introspectable, Interface(BlueZName.agentManager), Interface(BlueZName.profileManager),
    Interface(BlueZName.healthManager),
  ]

  static let adapterUUIDs = DBusValue.strings(
    ["1801", "1800", "1200", "110c", "110e", "180a"].map { "0000\($0)-0000-1000-8000-00805f9b34fb" })

  /// The adapter, without ``advertising``.
  static func adapter(_ adapter: Adapter, powered: Bool) -> [Interface] {
    [
      introspectable,
      Interface(
        BlueZName.adapter,
        [
          Property("Address", .string("02:00:5E:00:53:0\(adapter.number + 1)")),
          Property("AddressType", .string("public")),
          Property("Name", .string("BlueZ 5.66")),
          Property("Alias", .string("BlueZ 5.66")),
          Property("Class", .uint32(0)),
          Property("Powered", .boolean(powered)),
          Property("Discoverable", .boolean(false)),
          Property("DiscoverableTimeout", .uint32(180)),
          Property("Pairable", .boolean(false)),
          Property("PairableTimeout", .uint32(0)),
          Property("Discovering", .boolean(false)),
          Property("UUIDs", adapterUUIDs),
          Property("Modalias", .string("usb:v1D6Bp0246d0542")),
          Property("Roles", .strings(adapter.hasLE ? ["central", "peripheral"] : [])),
        ]),
      properties,
      Interface(BlueZName.gattManager),
      Interface(
        BlueZName.media,
        [
          Property(
            "SupportedUUIDs",
            .strings(["0000110a-0000-1000-8000-00805f9b34fb", "0000110b-0000-1000-8000-00805f9b34fb"]))
        ]),
      Interface(BlueZName.network),
    ]
  }

  static let advertising = Interface(
    BlueZName.advertisingManager,
    [
      Property("ActiveInstances", .byte(0)), Property("SupportedInstances", .byte(5)),
      Property("SupportedIncludes", .strings(["tx-power", "appearance", "local-name"])),
    ])

  static func device(
    _ peripheral: Peripheral, of adapter: String, rssi: Int16?, connected: Bool, bonded: Bool, uuids: [String]
  ) -> [Interface] {
    [
      introspectable,
      Interface(
        BlueZName.device,
        [
          Property("Address", .string(peripheral.address)),
          Property("AddressType", .string("random")),
          Property("Name", peripheral.name.isEmpty ? nil : .string(peripheral.name)),
          Property("Alias", .string(peripheral.alias)),
          Property("Paired", .boolean(bonded)),
          Property("Bonded", .boolean(bonded)),
          Property("Trusted", .boolean(false)),
          Property("Blocked", .boolean(false)),
          Property("LegacyPairing", .boolean(false)),
          Property("RSSI", rssi.map(DBusValue.int16)),
          Property("Connected", .boolean(connected)),
          Property("UUIDs", .strings(uuids)),
          Property("Adapter", .objectPath(adapter)),
          Property("ServicesResolved", .boolean(false)),
        ] + data(peripheral)),
      properties,
    ]
  }

  /// What a peripheral advertises.
  static func data(_ peripheral: Peripheral) -> [Property] {
    [
      Property("ManufacturerData", data("q", peripheral.manufacturerData, DBusValue.uint16)),
      Property("ServiceData", data("s", peripheral.serviceData, DBusValue.string)),
    ]
  }

  private static func data<Key: Comparable>(
    _ type: String, _ data: [Key: [UInt8]], _ key: (Key) -> DBusValue
  ) -> DBusValue? {
    let entries = data.sorted { $0.key < $1.key }.map {
      DBusValue.Entry(key($0.key), .variant(.bytes($0.value)))
    }
    return entries.isEmpty ? nil : .dictionary(key: type, value: "v", entries)
  }

  static func service(_ service: GATTDatabase.Service, of device: String) -> [Interface] {
    [
      introspectable,
      Interface(
        BlueZName.gattService,
        [
          Property("UUID", .string(service.uuid.description)),
          Property("Device", .objectPath(device)),
          Property("Primary", .boolean(true)),
          Property("Includes", .array(of: "o", [])),
        ]),
      properties,
    ]
  }

  static func characteristic(_ characteristic: GATTDatabase.Characteristic, of service: String)
    -> [Interface]
  {
    var list = [
      Property("UUID", .string(characteristic.uuid.description)),
      Property("Service", .objectPath(service)),
    ]
    let isCached = characteristic.content == .fixedAndCached
    list.append(Property("Value", .bytes(isCached ? characteristic.value : [])))
    if characteristic.notifies || characteristic.indicates {
      list.append(Property("Notifying", .boolean(false)))
    }
    list.append(Property("Flags", .strings(characteristic.flagNames)))
    if characteristic.takesCommands { list.append(Property("WriteAcquired", .boolean(false))) }
    if characteristic.notifies { list.append(Property("NotifyAcquired", .boolean(false))) }
    list.append(Property("MTU", .uint16(Bluetoothd.mtu)))
    return [introspectable, Interface(BlueZName.characteristic, list), properties]
  }

  static func descriptor(_ uuid: String, of characteristic: String) -> [Interface] {
    [
      introspectable,
      Interface(
        BlueZName.descriptor,
        [
          Property("UUID", .string(uuid)),
          Property("Characteristic", .objectPath(characteristic)),
          Property("Value", .bytes([])),
        ]),
      properties,
    ]
  }
}
