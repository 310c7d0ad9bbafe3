import DBus
import GATT
import Peripherals

/// The objects exported to bluetoothd: the services and characteristics of a peripheral.
///
/// Notifications are offered only by signal: with `AcquireNotify`, when a central unsubscribes, bluetoothd
/// closes the socket of another one (bluez issue 1452).
struct GATTApplication: Sendable {
  static let path = "/microbit_peripheral"

  struct Characteristic: Sendable {
    let path: String
    let service: String
    let content: GATTDatabase.Characteristic
  }

  /// Path and UUID of each service.
  let services: [(path: String, uuid: String)]
  let characteristics: [String: Characteristic]
  /// The paths of the characteristics, by their handles.
  private let paths: [UInt16: String]
  /// The paths in the order of the handles.
  private let order: [String]

  /// Services that bluetoothd adds by itself, and refuses from others.
  private static let reserved = [0x1800, 0x1801].map { BluetoothUUID(short: $0) }

  init(_ database: GATTDatabase) {
    var services: [(path: String, uuid: String)] = []
    var characteristics: [String: Characteristic] = [:]
    var paths: [UInt16: String] = [:]
    var order: [String] = []
    for service in database.services where !Self.reserved.contains(service.uuid) {
      let servicePath = "\(Self.path)/service\(Self.digits(service.handle))"
      services.append((servicePath, service.uuid.description))
      for characteristic in service.characteristics {
        let path = "\(servicePath)/char\(Self.digits(characteristic.handle))"
        characteristics[path] = Characteristic(path: path, service: servicePath, content: characteristic)
        paths[characteristic.handle] = path
        order.append(path)
      }
    }
    self.services = services
    self.characteristics = characteristics
    self.paths = paths
    self.order = order
  }

  /// The path of a characteristic; nil for those of bluetoothd's own services.
  func path(of handle: UInt16) -> String? { paths[handle] }

  private static func digits(_ handle: UInt16) -> String { Hexadecimal.text(handle, bytes: 2) }

  // MARK: Properties

  /// The reply to GetManagedObjects.
  var managedObjects: DBusValue {
    .objects(
      (services.map(\.path) + order).map { path in
        (path, .interfaces(interfaces(of: path).map { ($0.name, .properties($0.properties)) }))
      })
  }

  /// The interfaces of an object with their properties; none for an unknown path.
  func interfaces(of path: String) -> [(name: String, properties: [(String, DBusValue)])] {
    if let service = services.first(where: { $0.path == path }) {
      return [(BlueZName.gattService, [("UUID", .string(service.uuid)), ("Primary", .boolean(true))])]
    }
    guard let characteristic = characteristics[path] else { return [] }
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
