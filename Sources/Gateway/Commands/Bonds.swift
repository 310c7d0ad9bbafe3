import BlueZ
import Configuration
import EventLoop
import JSON

/// `bonds`: the peripherals that bluetoothd has paired with, on each adapter of the configuration.
struct Bonds {

  @LoopActor func run() async throws(CommandFailure) {
    let adapters = try GatewayAccess.configuration(nil).bluetooth.adapters
    let view = AdapterView(adapters: adapters)
    try await view.start()
    list(view)
    await view.stop()
  }

  @LoopActor private func list(_ view: AdapterView) {
    var count = 0
    for (adapter, central) in view.centrals {
      for peripheral in central.peripherals where peripheral.isPaired {
        count += 1
        let name = peripheral.name.map { "  \(Excerpt($0))" } ?? ""
        let place = view.centrals.count > 1 ? "  \(adapter)" : ""
        print("\(peripheral.address)\(name)\(place)\(peripheral.isConnected ? "  (connected)" : "")")
      }
    }
    if count == 0 { printError("no peripheral is paired") }
  }
}
