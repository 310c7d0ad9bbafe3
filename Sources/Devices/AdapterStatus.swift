import BlueZ

/// The state of an adapter.
package struct AdapterStatus: Sendable, Equatable {
  /// The name that BlueZ gives the adapter: `hci0`.
  package let name: String
  package let state: CentralState
  /// What is done about an adapter that cannot scan; nil: it can, or need not.
  package var recovery: Recovery?
  /// Whether a monitor of bluetoothd is active, so that it reports each advertisement.
  package var isMonitoring = false
}
