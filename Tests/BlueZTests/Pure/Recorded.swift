import DBus

@testable import BlueZ

/// Excerpts of what a bluetoothd 5.66 said, recorded with micro:bits on a real kernel: paths, interfaces and
/// the order of the signals are its own; properties that a central does not look at are left out.
enum Recorded {
  static let owner = ":1.0"
  static let adapter = "/org/bluez/hci0"
  static let device = "/org/bluez/hci0/dev_D0_5A_00_00_C0_DE"
  static let service = device + "/service0015"
  static let temperature = service + "/char0016"
  static let period = service + "/char0019"
  static let id = PeripheralID(path: device)

  /// In `GetManagedObjects`, or when it is plugged in.
  static func adapterAdded(powered: Bool = true) -> BlueZEvent {
    .added(
      path: adapter,
      interfaces: [
        "org.freedesktop.DBus.Introspectable": [:],
        "org.bluez.Adapter1": [
          "Address": .string("02:00:5E:00:53:01"), "Name": .string("BlueZ 5.66"),
          "Powered": .boolean(powered), "Discovering": .boolean(false), "UUIDs": .strings([]),
        ],
        "org.bluez.Media1": [:],
      ])
  }

  /// Heard for the first time.
  static let deviceAdded = BlueZEvent.added(
    path: device,
    interfaces: [
      "org.freedesktop.DBus.Introspectable": [:],
      "org.bluez.Device1": [
        "Address": .string("D0:5A:00:00:C0:DE"), "AddressType": .string("random"),
        "Name": .string("BBC micro:bit [zugev]"), "Paired": .boolean(false), "RSSI": .int16(-50),
        "Connected": .boolean(false), "UUIDs": .strings([]), "Adapter": .objectPath(adapter),
        "ServicesResolved": .boolean(false),
      ],
      "org.freedesktop.DBus.Properties": [:],
    ])

  /// Another micro:bit, heard for the first time.
  static let otherAddress = "D0:5A:00:00:C0:DF"
  static let otherID = PeripheralID(path: "/org/bluez/hci0/dev_D0_5A_00_00_C0_DF")
  static let otherAdded = BlueZEvent.added(
    path: otherID.path,
    interfaces: [
      "org.bluez.Device1": [
        "Address": .string(otherAddress), "AddressType": .string("random"), "RSSI": .int16(-50),
        "Adapter": .objectPath(adapter),
      ]
    ])

  static func device(_ properties: BlueZEvent.Properties, invalidated: [String] = []) -> BlueZEvent {
    .changed(
      path: device, interface: "org.bluez.Device1", properties: properties, invalidated: invalidated)
  }

  static func adapter(_ properties: BlueZEvent.Properties) -> BlueZEvent {
    .changed(path: adapter, interface: "org.bluez.Adapter1", properties: properties, invalidated: [])
  }

  /// Between Connect's answer and `ServicesResolved`.
  static let servicesAdded: [BlueZEvent] = [
    .added(
      path: service,
      interfaces: [
        "org.bluez.GattService1": [
          "UUID": .string("e95d6100-251d-470a-a062-fa1922dfa9a8"), "Device": .objectPath(device),
          "Primary": .boolean(true),
        ]
      ]),
    .added(
      path: temperature,
      interfaces: [
        "org.bluez.GattCharacteristic1": [
          "UUID": .string("e95d9250-251d-470a-a062-fa1922dfa9a8"), "Service": .objectPath(service),
          "Value": .bytes([]), "Notifying": .boolean(false), "Flags": .strings(["read", "notify"]),
          "NotifyAcquired": .boolean(false), "MTU": .uint16(23),
        ]
      ]),
    .added(
      path: temperature + "/desc0018",
      interfaces: ["org.bluez.GattDescriptor1": ["UUID": .string("00002902-0000-1000-8000-00805f9b34fb")]]),
    .added(
      path: period,
      interfaces: [
        "org.bluez.GattCharacteristic1": [
          "UUID": .string("e95d1b25-251d-470a-a062-fa1922dfa9a8"), "Service": .objectPath(service),
          "Value": .bytes([]), "Flags": .strings(["read", "write"]), "MTU": .uint16(23),
        ]
      ]),
  ]

  static func removed(_ path: String, _ interface: String) -> BlueZEvent {
    .removed(
      path: path,
      interfaces: ["org.freedesktop.DBus.Properties", "org.freedesktop.DBus.Introspectable", interface])
  }

  /// Children first, the device last.
  static let deviceRemoved: [BlueZEvent] = [
    removed(temperature + "/desc0018", "org.bluez.GattDescriptor1"),
    removed(temperature, "org.bluez.GattCharacteristic1"),
    removed(period, "org.bluez.GattCharacteristic1"),
    removed(service, "org.bluez.GattService1"),
    removed(device, "org.bluez.Device1"),
  ]
}
