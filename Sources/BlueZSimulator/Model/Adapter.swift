import DBus

/// One of bluetoothd's adapters.
struct Adapter: Sendable {
  enum Power: Sendable {
    /// There is no adapter object.
    case absent
    case off
    case on
  }

  /// The discovery state of a client.
  struct DiscoveryClient: Sendable {
    /// The client's filter has the data of each advertisement reported, changed or not.
    var reportsAll = false
    var active = false
  }

  /// The place among the simulator's adapters.
  let number: Int
  /// What the kernel calls it: another name if it is plugged in again while a program holds the old one.
  var name: String
  var power = Power.on
  /// Whether the adapter has Bluetooth LE.
  var hasLE = true
  /// The kernel refuses to scan.
  var refusesScans = false
  var discoverers: [String: DiscoveryClient] = [:]
  /// Counts the scans.
  var scan: UInt64 = 0
  /// The devices found in this discovery, in order.
  var found: [DeviceKey] = []
  /// The peripherals found in this scan.
  var foundInScan: Set<DeviceKey> = []
  /// Devices with a pending Connect, in the order of the calls.
  var connecting: [DeviceKey] = []
  /// The device to which a link is being established.
  var linking: DeviceKey?

  var path: String { BlueZName.adapterPath(name) }
  var isDiscovering: Bool { discoverers.values.contains { $0.active } }

  init(number: Int) { (self.number, name) = (number, "hci\(number)") }
}

/// A peripheral as one adapter knows it.
struct DeviceKey: Sendable, Hashable, Comparable {
  /// The adapter's number.
  let adapter: Int
  /// The peripheral's index.
  let peripheral: Int

  static func < (one: Self, other: Self) -> Bool {
    (one.adapter, one.peripheral) < (other.adapter, other.peripheral)
  }
}

extension [Peripheral] {
  subscript(key: DeviceKey) -> Peripheral {
    get { self[key.peripheral] }
    _modify { yield &self[key.peripheral] }
  }
}

extension [Adapter] {
  /// The adapter of a device.
  subscript(of key: DeviceKey) -> Adapter {
    get { self[key.adapter] }
    _modify { yield &self[key.adapter] }
  }
}
