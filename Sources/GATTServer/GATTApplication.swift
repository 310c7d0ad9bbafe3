import DBus
import GATT
import Peripherals

/// The objects exported to bluetoothd: the services and characteristics of a peripheral.
///
/// Notifications are offered only by signal: with `AcquireNotify`, when a central unsubscribes, bluetoothd
/// closes the socket of another one (bluez issue 1452).
struct GATTApplication: Sendable {
  static let path = "/microbit_peripheral"

  private struct Characteristic: Sendable {
    let path: String
    let service: String
    let content: GATTDatabase.Characteristic
  }

  /// Path and UUID of each service.
  private var services: [(path: String, uuid: String)] = []
  /// In the order of their handles.
  private var characteristics: [Characteristic] = []

  /// Services that bluetoothd adds by itself, and refuses from others.
  private static let reserved = [0x1800, 0x1801].map { BluetoothUUID(short: $0) }

  init(_ database: GATTDatabase) {
    for service in database.services where !Self.reserved.contains(service.uuid) {
      let path = "\(Self.path)/service\(Hexadecimal.text(service.handle, bytes: 2))"
      services.append((path, service.uuid.description))
      characteristics += service.characteristics.map { content in
        Characteristic(
          path: "\(path)/char\(Hexadecimal.text(content.handle, bytes: 2))", service: path, content: content)
      }
    }
  }

  /// The characteristic at a path.
  func characteristic(at path: String) -> GATTDatabase.Characteristic? {
    characteristics.first { $0.path == path }?.content
  }

  /// The path of a characteristic; nil for those of bluetoothd's own services.
  func path(of handle: UInt16) -> String? { characteristics.first { $0.content.handle == handle }?.path }

  // MARK: Properties

  /// The reply to GetManagedObjects.
  var managedObjects: DBusValue {
    .objects(
      (services.map(\.path) + characteristics.map(\.path)).map { path in
        (path, .interfaces(interfaces(of: path).map { ($0.name, .properties($0.properties)) }))
      })
  }

  /// The interfaces of an object with their properties; none for an unknown path.
  func interfaces(of path: String) -> [(name: String, properties: [(String, DBusValue)])] {
    if let service = services.first(where: { $0.path == path }) {
      return [(BlueZName.gattService, [("UUID", .string(service.uuid)), ("Primary", .boolean(true))])]
    }
    guard let characteristic = characteristics.first(where: { $0.path == path }) else { return [] }
    return [
      (
        BlueZName.characteristic,
        [
          ("UUID", .string(characteristic.content.uuid.description)),
          ("Service", .objectPath(characteristic.service)),
          ("Flags", .strings(characteristic.content.flagNames)),
        ]
      )
    ]
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
