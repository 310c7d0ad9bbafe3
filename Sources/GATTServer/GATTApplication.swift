import DBus
import GATT
import Peripherals

/// The objects exported to bluetoothd: the services and characteristics of a peripheral.
///
/// Notifications are offered only by signal: with `AcquireNotify`, when a central unsubscribes, bluetoothd
/// closes the socket of another one (bluez issue 1452).
struct GATTApplication: Sendable {
  static let path = "/microbit_peripheral"

  private struct Object: Sendable {
    let path: String
    let interface: String
    let properties: [(String, DBusValue)]
    /// Nil: the object is a service.
    var characteristic: GATTDatabase.Characteristic?
  }

  /// First the services, then the characteristics in the order of their handles.
  private var objects: [Object] = []

  /// Services that bluetoothd adds by itself, and refuses from others.
  private static let reserved = [0x1800, 0x1801].map { BluetoothUUID(short: $0) }

  init(_ database: GATTDatabase) {
    var characteristics: [Object] = []
    for service in database.services where !Self.reserved.contains(service.uuid) {
      let path = "\(Self.path)/service\(Hexadecimal.text(service.handle, bytes: 2))"
      objects.append(
        Object(
          path: path, interface: BlueZName.gattService,
          properties: [("UUID", .string(service.uuid.description)), ("Primary", .boolean(true))]))
      characteristics += service.characteristics.map { characteristic in
        Object(
          path: "\(path)/char\(Hexadecimal.text(characteristic.handle, bytes: 2))",
          interface: BlueZName.characteristic,
          properties: [
            ("UUID", .string(characteristic.uuid.description)),
            ("Service", .objectPath(path)),
            ("Flags", .strings(characteristic.flagNames)),
          ],
          characteristic: characteristic)
      }
    }
    objects += characteristics
  }

  /// The characteristic at a path.
  func characteristic(at path: String) -> GATTDatabase.Characteristic? {
    objects.first { $0.path == path }?.characteristic
  }

  /// The path of a characteristic; nil for those of bluetoothd's own services.
  func path(of handle: UInt16) -> String? { objects.first { $0.characteristic?.handle == handle }?.path }

  /// The reply to GetManagedObjects.
  var managedObjects: DBusValue {
    .objects(objects.map { ($0.path, .interfaces([($0.interface, .properties($0.properties))])) })
  }

  /// The properties of an interface of an object; none for unknown ones.
  func properties(_ path: String, _ interface: String?) -> [(String, DBusValue)] {
    objects.first { $0.path == path && $0.interface == interface }?.properties ?? []
  }
}

/// What the peripheral advertises.
struct Advertisement: Sendable {
  static let path = "\(GATTApplication.path)/advertisement"

  let name: String
  let services: [BluetoothUUID]

  /// An advertisement has 31 bytes, of which the flags take 3. The name is in the scan response.
  private static let space = 28

  /// The services that the profile requires, as many as fit. A micro:bit advertises none.
  init(name: String, _ profile: Profile) {
    self.name = name
    guard profile.name != Profile.microbit.name else {
      services = []
      return
    }
    var space = Self.space
    var listed: Set<Int> = []
    services = profile.requires.filter { service in
      let size = service.short.utf8.count == 4 ? 2 : 16
      // UUIDs of the same size are in one list, which has a header of two bytes.
      let cost = size + (listed.contains(size) ? 0 : 2)
      guard cost <= space else { return false }
      space -= cost
      listed.insert(size)
      return true
    }
  }

  var properties: [(String, DBusValue)] {
    [
      ("Type", .string("peripheral")), ("LocalName", .string(name)),
      // bluetoothd 5.82 as a central ignores a peripheral without the flag, whatever the adapter's own Discoverable is.
      ("Discoverable", .boolean(true)),
      ("ServiceUUIDs", .strings(services.map(\.description))),
    ]
  }
}
