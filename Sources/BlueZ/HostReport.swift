import DBus
import GATT

/// What the bus and bluetoothd report at one moment. Reading it changes nothing, and does not disturb a gateway.
package struct HostReport: Sendable, Equatable {
  package struct Adapter: Sendable, Equatable {
    /// BlueZ's name of the adapter: `hci0`.
    package let name: String
    package let address: String
    package let isPowered: Bool
    /// Whether the adapter has Bluetooth LE.
    package let isCentral: Bool
    /// Whether a program scans.
    package let isDiscovering: Bool
    /// The devices that are connected, by any program.
    package let links: Int
    /// The process of the gateway that has locked it; nil: none has. 0: it is not visible from here.
    package internal(set) var gateway: Int32?
  }

  /// A characteristic whose notifications a program has acquired.
  package struct Acquired: Sendable, Equatable {
    package let adapter: String
    package let device: BluetoothAddress
    package let characteristic: BluetoothUUID
  }

  /// Why the bus cannot be used; nil if it can.
  package internal(set) var busProblem: String?
  /// The process of bluetoothd; nil: it is not running.
  package internal(set) var bluetoothd: Int32?
  /// Why bluetoothd's objects cannot be read; nil if they can, or bluetoothd is not running.
  package internal(set) var refusal: String?
  /// Whether the policy of the bus is the reason for the ``refusal``.
  package internal(set) var isDenied = false
  /// The adapters in the order of their names.
  package internal(set) var adapters: [Adapter] = []
  package internal(set) var acquired: [Acquired] = []

  /// The addresses of the adapters, by their names.
  package var addresses: [String: String] {
    Dictionary(adapters.map { ($0.name, $0.address) }) { first, _ in first }
  }

  package init() {}

  package static func read(_ address: String = DBusName.systemBus) async -> HostReport {
    var report = HostReport()
    let bus: DBusConnection
    do throws(DBusError) {
      bus = try await DBusConnection.open(address, signalSenders: []) { _ in }
    } catch {
      report.busProblem = "\(error)"
      return report
    }
    do throws(DBusError) {
      try await report.read(bus)
    } catch {
      if error.name != DBusName.Failure.nameHasNoOwner {
        report.refusal = "\(error)"
        report.isDenied = error.name == DBusName.Failure.accessDenied
      }
    }
    await bus.close()
    return report
  }

  private mutating func read(_ bus: DBusConnection) async throws(DBusError) {
    let process = try await bus.callBus("GetConnectionUnixProcessID", .string(BlueZName.busName))
    bluetoothd = Int32(clamping: process.first?.integer ?? 0)
    let reply = try await bus.call(.managedObjects, timeout: .seconds(5))
    add(BlueZEvent.objects(reply) ?? [])
    for index in adapters.indices {
      adapters[index].gateway = try await AdapterLock.owner(of: adapters[index].name, on: bus)
    }
  }

  /// - Parameter objects: those of bluetoothd, each as one that was added.
  private mutating func add(_ objects: [BlueZEvent]) {
    for case .added(let adapterPath, let interfaces) in objects where interfaces[BlueZName.adapter] != nil {
      var tree = ObjectTree(adapter: adapterPath)
      for object in objects { _ = tree.apply(object) }
      guard let adapter = tree.adapter else { continue }
      let name = BlueZName.adapterName(adapterPath)
      adapters.append(
        Adapter(
          name: name, address: adapter.address, isPowered: adapter.isPowered, isCentral: adapter.isCentral,
          isDiscovering: adapter.isDiscovering, links: tree.devices.values.count(where: \.isConnected)))
      for case .added(let path, let interfaces) in objects {
        guard let properties = interfaces[BlueZName.characteristic],
          properties["NotifyAcquired"]?.bool == true, let uuid = ObjectTree.uuid(of: properties),
          let place = AttributePath(path, depth: 2), let device = tree.peripheral(at: place.device)
        else { continue }
        acquired.append(Acquired(adapter: name, device: device.address, characteristic: uuid))
      }
    }
  }
}
