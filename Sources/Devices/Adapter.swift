import BlueZ
import EventLoop

/// One of the gateway's Bluetooth adapters.
@LoopActor final class Adapter {
  /// The name that BlueZ gives the adapter: `hci0`.
  let name: String
  let central: Central
  var state = CentralState.noBus("not connected yet")
  /// The timer at whose end the bonds of an adapter that cannot be used no longer count.
  var bondTimer: LoopTimer?

  init(name: String, central: Central) {
    self.name = name
    self.central = central
  }
}

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
