import BlueZ
import EventLoop

/// One of the gateway's Bluetooth adapters.
@LoopActor final class Adapter {
  /// As BlueZ names it: `hci0`.
  let name: String
  let central: Central
  var state = CentralState.noBus("not connected yet")
  /// While it cannot be used: runs out when its bonds no longer count.
  var bondTimer: LoopTimer?

  init(name: String, central: Central) {
    self.name = name
    self.central = central
  }
}

/// The state of an adapter.
package struct AdapterStatus: Sendable, Equatable {
  /// As BlueZ names it: `hci0`.
  package let name: String
  package let state: CentralState
  /// Nil: it can scan, or need not.
  package var recovery: Recovery?
  /// Whether a monitor of bluetoothd is active, so that it reports each advertisement.
  package var isMonitoring = false
}
