import BlueZ
import Configuration

/// The state of an adapter.
package struct AdapterStatus: Sendable, Equatable {
  /// The configured name of the adapter: `hci0`.
  package let name: String
  package let state: CentralState
  /// What is done about an adapter that cannot scan; nil: it can, or need not.
  package var recovery: Recovery?
  /// Whether a monitor of bluetoothd is active, so that it reports each advertisement.
  package var isMonitoring = false
}

extension Configuration.Bluetooth {
  /// Which adapters are used.
  /// - Parameter addresses: of those that were used last, by their configured names, as the state database has them.
  package func selections(_ addresses: [String: [UInt8]]) -> [AdapterSelection] {
    adapters.map { name in
      AdapterSelection(
        name, others: Set(adapters).subtracting([name]), isDefault: isDefault,
        address: addresses[name].map { String(decoding: $0, as: UTF8.self) })
    }
  }
}
