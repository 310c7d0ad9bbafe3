import BlueZ
import Configuration
import EventLoop
import JSON

/// `bonds`: the peripherals that bluetoothd has paired with.
struct Bonds {
  let loop: EventLoop

  func run() async -> GatewayCommand.ExitStatus {
    let view = AdapterView(adapter: Configuration().bluetooth.adapter, loop: loop) { _ in }
    let status: GatewayCommand.ExitStatus
    do throws(CommandFailure) {
      try await view.start()
      let bonded = await view.central.peripherals.filter(\.isPaired)
      if bonded.isEmpty { printError("no peripheral is paired") }
      for peripheral in bonded {
        let name = peripheral.name.map { "  \(Excerpt($0))" } ?? ""
        print("\(peripheral.address)\(name)\(peripheral.isConnected ? "  (connected)" : "")")
      }
      status = .done
    } catch {
      printError(error.text)
      status = error.status
    }
    await view.stop()
    return status
  }
}
