import BlueZ
import EventLoop
import GATT

/// The peripherals that were in range of any adapter during a requested scan.
@LoopActor package final class ScanRequest {
  private var found: [PeripheralID: Peripheral] = [:]

  package nonisolated init() {}

  /// The last known signal is kept: bluetoothd forgets it when scanning stops.
  func add(_ peripheral: Peripheral) {
    if peripheral.isInRange { found[peripheral.id] = peripheral }
  }

  /// The strongest first; each once, as the adapter knows it that has a link or a bond with it, or receives it best.
  package var peripherals: [Peripheral] {
    let best = Dictionary(found.values.map { ($0.address, $0) }) { $0.rank >= $1.rank ? $0 : $1 }
    return best.values.sorted { ($0.rssi ?? -128) > ($1.rssi ?? -128) }
  }
}

extension Peripheral {
  /// The higher, the more suitable is the adapter that reports the peripheral so.
  var rank: (Int, Int, Int) { (isConnected ? 1 : 0, isPaired ? 1 : 0, rssi ?? -128) }
}
