import BlueZ
import GATT

/// The peripherals that were in range of any adapter during a scan that was asked for.
package struct ScanRequest: Sendable {
  private var found: [PeripheralID: Peripheral] = [:]

  package init() {}

  /// The last known signal is kept: bluetoothd forgets it when scanning stops.
  package mutating func add(_ peripheral: Peripheral) {
    if peripheral.isInRange { found[peripheral.id] = peripheral }
  }

  /// The strongest first; each once, as the adapter knows it that receives it best.
  package var peripherals: [Peripheral] {
    var addresses: Set<BluetoothAddress> = []
    return found.values.sorted { ($0.rssi ?? -128) > ($1.rssi ?? -128) }
      .filter { addresses.insert($0.address).inserted }
  }
}
