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

  package init() {}

  package static func read(_ address: DBusAddress = .system) async -> HostReport {
    var report = HostReport()
    let bus: DBusConnection
    do throws(DBusError) {
      bus = try await DBusConnection.open(address) { _ in }
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
    let reply = try await bus.call(
      .managedObjects(of: BlueZName.busName), timeout: .seconds(5))
    add(reply.first?.map ?? [:])
    for index in adapters.indices {
      adapters[index].gateway = try await AdapterLock.owner(of: adapters[index].name, on: bus)
    }
  }

  private mutating func add(_ objects: [String: DBusValue]) {
    func properties(_ interface: String) -> [(path: String, values: [String: DBusValue])] {
      objects.keys.sorted().compactMap { path in
        (objects[path]?.map?[interface]?.map).map { (path: path, values: $0) }
      }
    }
    let devices = properties(BlueZName.device)
    adapters = properties(BlueZName.adapter).map { path, values in
      let links = devices.count { $0.values["Adapter"]?.text == path && $0.values["Connected"]?.bool == true }
      return Adapter(
        name: String(path.split(separator: "/").last ?? ""), address: values["Address"]?.text ?? "",
        isPowered: values["Powered"]?.bool ?? false,
        isCentral: values["Roles"]?.textArray?.contains("central") ?? true,
        isDiscovering: values["Discovering"]?.bool ?? false,
        links: links, gateway: nil)
    }
    var addresses: [String: BluetoothAddress] = [:]
    for (path, values) in devices {
      addresses[path] = values["Address"]?.text.flatMap { BluetoothAddress($0) }
    }
    for (path, values) in properties(BlueZName.characteristic) where values["NotifyAcquired"]?.bool == true {
      // /org/bluez/hci0/dev_C5_A1_B2_C3_D4_E5/service0015/char0016
      let levels = path.split(separator: "/")
      guard levels.count > 5, let uuid = values["UUID"]?.text.flatMap({ BluetoothUUID($0) }),
        let device = addresses["/" + levels.dropLast(2).joined(separator: "/")]
      else { continue }
      acquired.append(Acquired(adapter: String(levels[2]), device: device, characteristic: uuid))
    }
  }
}
