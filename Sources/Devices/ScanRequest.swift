import BlueZ

/// The peripherals that were in range during a scan that was asked for.
package struct ScanRequest: Sendable {
  private var found: [PeripheralID: Peripheral] = [:]

  package init() {}

  /// The last known signal is kept: bluetoothd forgets it when scanning stops.
  package mutating func add(_ peripheral: Peripheral) {
    if peripheral.isInRange { found[peripheral.id] = peripheral }
  }

  /// The strongest first.
  package var peripherals: [Peripheral] { found.values.sorted { ($0.rssi ?? -128) > ($1.rssi ?? -128) } }
}
