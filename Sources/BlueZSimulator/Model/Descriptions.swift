import DBus
import GATT
import Peripherals

/// bluetoothd's objects: interfaces and properties in the recorded order.
enum Describe {
  typealias Interface = ObjectTree.Interface
  typealias Property = ObjectTree.Property

  private static let introspectable = Interface(DBusName.introspectable)
  private static let properties = Interface(DBusName.properties)

  /// An object that has nothing but this interface and the standard ones.
  private static func object(_ name: String, _ list: [Property]) -> [Interface] {
    [introspectable, Interface(name, list), properties]
  }

  static let manager = [
    introspectable, Interface(BlueZName.agentManager), Interface(BlueZName.profileManager),
    Interface(BlueZName.healthManager),
  ]

  private static func uuids(_ assigned: UInt32...) -> DBusValue {
    .strings(assigned.map { BluetoothUUID(short: $0).description })
  }

  static let adapterUUIDs = uuids(0x1801, 0x1800, 0x1200, 0x110C, 0x110E, 0x180A)

  /// The adapter, without ``advertising``.
  static func adapter(_ adapter: Adapter, powered: Bool) -> [Interface] {
    [
      introspectable,
      Interface(
        BlueZName.adapter,
        [
          ("Address", .string("02:00:5E:00:53:0\(adapter.number + 1)")),
          ("AddressType", .string("public")),
          ("Name", .string("BlueZ 5.66")),
          ("Alias", .string("BlueZ 5.66")),
          ("Class", .uint32(0)),
          ("Powered", .boolean(powered)),
          ("Discoverable", .boolean(false)),
          ("DiscoverableTimeout", .uint32(180)),
          ("Pairable", .boolean(false)),
          ("PairableTimeout", .uint32(0)),
          ("Discovering", .boolean(false)),
          ("UUIDs", adapterUUIDs),
          ("Modalias", .string("usb:v1D6Bp0246d0542")),
          ("Roles", .strings(adapter.hasLE ? ["central", "peripheral"] : [])),
        ]),
      properties,
      Interface(BlueZName.gattManager),
      Interface(BlueZName.media, [("SupportedUUIDs", uuids(0x110A, 0x110B))]),
      Interface(BlueZName.network),
    ]
  }

  static let advertising = Interface(
    BlueZName.advertisingManager,
    [
      ("ActiveInstances", .byte(0)), ("SupportedInstances", .byte(5)),
      ("SupportedIncludes", .strings(["tx-power", "appearance", "local-name"])),
    ])

  static func device(
    _ peripheral: Peripheral, of adapter: String, rssi: Int16?, connected: Bool, bonded: Bool, uuids: [String]
  ) -> [Interface] {
    let own: [Property] = [
      ("Address", .string(peripheral.address)),
      ("AddressType", .string("random")),
      ("Name", peripheral.name.isEmpty ? nil : .string(peripheral.name)),
      ("Alias", .string(peripheral.alias)),
      ("Paired", .boolean(bonded)),
      ("Bonded", .boolean(bonded)),
      ("Trusted", .boolean(false)),
      ("Blocked", .boolean(false)),
      ("LegacyPairing", .boolean(false)),
      ("RSSI", rssi.map(DBusValue.int16)),
      ("Connected", .boolean(connected)),
      ("UUIDs", .strings(uuids)),
      ("Adapter", .objectPath(adapter)),
      ("ServicesResolved", .boolean(false)),
    ]
    return object(BlueZName.device, own + data(peripheral))
  }

  /// What a peripheral advertises.
  static func data(_ peripheral: Peripheral) -> [Property] {
    [
      ("ManufacturerData", data("q", peripheral.manufacturerData, DBusValue.uint16)),
      ("ServiceData", data("s", peripheral.serviceData, DBusValue.string)),
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
    object(
      BlueZName.gattService,
      [
        ("UUID", .string(service.uuid.description)),
        ("Device", .objectPath(device)),
        ("Primary", .boolean(true)),
        ("Includes", .array(of: "o", [])),
      ])
  }

  static func characteristic(_ characteristic: GATTDatabase.Characteristic, of service: String)
    -> [Interface]
  {
    let isCached = characteristic.content == .fixedAndCached
    var list: [Property] = [
      ("UUID", .string(characteristic.uuid.description)),
      ("Service", .objectPath(service)),
      ("Value", .bytes(isCached ? characteristic.value : [])),
    ]
    if characteristic.notifies || characteristic.indicates {
      list.append(("Notifying", .boolean(false)))
    }
    list.append(("Flags", .strings(characteristic.flagNames)))
    if characteristic.takesCommands { list.append(("WriteAcquired", .boolean(false))) }
    if characteristic.notifies { list.append(("NotifyAcquired", .boolean(false))) }
    list.append(("MTU", .uint16(Bluetoothd.mtu)))
    return object(BlueZName.characteristic, list)
  }

  static func descriptor(_ descriptor: GATTDatabase.Descriptor, of characteristic: String) -> [Interface] {
    object(
      BlueZName.descriptor,
      [
        ("UUID", .string(descriptor.uuid.description)),
        ("Characteristic", .objectPath(characteristic)),
        ("Value", .bytes([])),
      ])
  }
}
