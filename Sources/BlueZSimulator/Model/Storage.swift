/// What bluetoothd keeps on disk, and therefore knows after its restart.
struct Storage: Sendable {
  /// The peripherals that were connected, and not removed since.
  private(set) var devices: Set<DeviceKey> = []
  /// The peripherals with which it has a bond.
  private(set) var bonds: Set<DeviceKey> = []

  func hasBond(_ key: DeviceKey) -> Bool { bonds.contains(key) }

  mutating func add(_ key: DeviceKey) { devices.insert(key) }

  mutating func addBond(_ key: DeviceKey) { bonds.insert(key) }

  /// Removes a device with its bond.
  mutating func remove(_ key: DeviceKey) {
    devices.remove(key)
    bonds.remove(key)
  }
}
