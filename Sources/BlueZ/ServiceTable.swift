import GATT

/// The services, characteristics and descriptors of a device, as bluetoothd exports them.
///
/// Each is identified by the last component of its path (`service0015`, `char0019`, `desc001b`), as a device has dozens of
/// them.
struct ServiceTable: Sendable, Equatable {
  private struct Service: Sendable, Equatable {
    let name: String
    let uuid: BluetoothUUID
    var characteristics: [Entry] = []
  }

  /// A characteristic.
  private struct Entry: Sendable, Equatable {
    let name: String
    let uuid: BluetoothUUID
    let flags: Characteristic.Flags
    let generation: Int
    var descriptors: [Descriptor] = []
  }

  /// The most attributes of a device: a micro:bit with all services has about 100. Every object costs time on the loop.
  static let mostAttributes = 1000

  private var services: [Service] = []
  /// How many attributes the device has; above ``mostAttributes`` they are not kept.
  private var count = 0
  /// Whether the device had more attributes. A table stays so until its last service is gone: parts of it were not kept.
  private(set) var isTooLarge = false

  // MARK: Queries

  func offers(_ service: BluetoothUUID) -> Bool { services.contains { $0.uuid == service } }

  /// The characteristics in the order of their handles.
  func characteristics(of id: PeripheralID) -> [Characteristic] {
    services.sorted { $0.name < $1.name }.flatMap { service in
      service.characteristics.sorted { $0.name < $1.name }.map { entry in
        Characteristic(
          uuid: entry.uuid, service: service.uuid, flags: entry.flags,
          path: "\(id.path)/\(service.name)/\(entry.name)", generation: entry.generation, peripheral: id)
      }
    }
  }

  /// The descriptors in the order of their handles.
  func descriptors(of characteristic: Characteristic) -> [Descriptor] {
    let entry = services.lazy.flatMap(\.characteristics).first { $0.generation == characteristic.generation }
    return (entry?.descriptors ?? []).sorted { $0.path < $1.path }
  }

  func contains(_ characteristic: Characteristic) -> Bool {
    services.contains { $0.characteristics.contains { $0.generation == characteristic.generation } }
  }

  // MARK: Changes

  /// Adds a service, which may be there already: an object may be reported twice.
  /// - Returns: whether the table has it now.
  mutating func add(service name: String, _ uuid: BluetoothUUID) -> Bool {
    if index(of: name) != nil { return true }
    guard takePlace() else { return false }
    services.append(Service(name: name, uuid: uuid))
    return true
  }

  /// Adds a characteristic, in place of one with the same path.
  /// - Parameter generation: tells it from all others.
  /// - Returns: whether the table has it now.
  mutating func add(
    _ path: AttributePath, _ uuid: BluetoothUUID, _ flags: Characteristic.Flags, generation: Int
  ) -> Bool {
    guard !isTooLarge, let service = index(of: path.service) else { return false }
    remove(path.characteristic, of: service)
    guard takePlace() else { return false }
    services[service].characteristics.append(
      Entry(name: path.characteristic, uuid: uuid, flags: flags, generation: generation))
    return true
  }

  /// Adds a descriptor, which may be there already.
  mutating func add(_ descriptor: Descriptor, _ path: AttributePath) {
    guard !isTooLarge, let service = index(of: path.service),
      let index = services[service].characteristics.firstIndex(where: { $0.name == path.characteristic }),
      !services[service].characteristics[index].descriptors.contains(where: { $0.path == descriptor.path }),
      takePlace()
    else { return }
    services[service].characteristics[index].descriptors.append(descriptor)
  }

  mutating func remove(service name: String) {
    guard let index = index(of: name) else { return }
    for entry in services[index].characteristics { remove(entry.name, of: index) }
    services.remove(at: index)
    count -= 1
    if services.isEmpty { (count, isTooLarge) = (0, false) }
  }

  /// Removes a characteristic.
  /// - Returns: whether the table has its service.
  mutating func remove(_ path: AttributePath) -> Bool {
    guard let service = index(of: path.service) else { return false }
    remove(path.characteristic, of: service)
    return true
  }

  private mutating func remove(_ characteristic: String, of service: Int) {
    guard let index = services[service].characteristics.firstIndex(where: { $0.name == characteristic })
    else { return }
    count -= 1 + services[service].characteristics.remove(at: index).descriptors.count
  }

  private func index(of service: String) -> Int? { services.firstIndex { $0.name == service } }

  /// Counts one attribute more.
  /// - Returns: whether it is to be kept.
  private mutating func takePlace() -> Bool {
    count += 1
    if count > Self.mostAttributes { isTooLarge = true }
    return !isTooLarge
  }
}

/// The path of a service, characteristic or descriptor: `/org/bluez/hci0/dev_…/service0015/char0019/desc001b`.
struct AttributePath {
  let device: String
  private let names: [String]

  var service: String { names[0] }
  var characteristic: String { names[1] }

  /// - Parameter depth: of a service 1, of a characteristic 2, of a descriptor 3.
  init?(_ path: String, depth: Int) {
    var (device, names) = (path[...], [String]())
    for _ in 0..<depth {
      guard let slash = device.lastIndex(of: "/") else { return nil }
      names.insert(String(device[device.index(after: slash)...]), at: 0)
      device = device[..<slash]
    }
    (self.device, self.names) = (String(device), names)
  }
}
