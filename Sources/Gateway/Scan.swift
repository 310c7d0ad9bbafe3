import BlueZ
import Bridge
import Configuration
import Devices
import EventLoop
import GATT
import JSON
import Log

/// `scan`: the peripherals in range, the strongest first.
actor Scan {
  nonisolated let loop: EventLoop
  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  private let timeout: Duration
  private let asJSON: Bool
  private var request = ScanRequest()
  private var state: CentralState?
  private let ready = Waiter<Void>()

  /// How long bus, bluetoothd and adapter may take to answer.
  private static let patience = Duration.seconds(5)

  init(timeout: Duration, asJSON: Bool, loop: EventLoop) {
    self.timeout = timeout
    self.asJSON = asJSON
    self.loop = loop
  }

  func run() async -> GatewayCommand.ExitStatus {
    // Also while a gateway runs.
    let central = Central(adapter: Configuration().bluetooth.adapter, isExclusive: false, loop: loop) {
      [weak self] event in
      self?.assumeIsolated { $0.handle(event) }
    }
    let running = Task(executorPreference: loop) { await central.run() }
    let status = await scan(with: central)
    await central.stop(within: .seconds(3))
    // Not awaited: a bus may not answer.
    running.cancel()
    return status
  }

  private func scan(with central: Central) async -> GatewayCommand.ExitStatus {
    let ready = ready
    _ = try? await loop.withTimeout(Self.patience) { try await ready.value() }
    guard state?.isOn == true else {
      printError("cannot scan: \(state.map(Self.describe) ?? "bluetoothd does not answer")")
      return .unavailable
    }
    await central.scan(true)
    if !asJSON { printError("scanning for \(timeout.components.seconds) s …") }
    try? await loop.sleep(for: timeout)
    show()
    return .done
  }

  private func handle(_ event: CentralEvent) {
    switch event {
    case .state(let state):
      self.state = state
      switch state {
      case .on, .noBus, .noBluetoothd: ready.resume(.success(()))
      // The adapter may follow in a moment.
      case .adapterInUse, .adapterAbsent, .adapterOff, .adapterBlocked: break
      }
    case .seen(let peripheral):
      request.add(peripheral)
    case .disconnected, .servicesChanged, .lost:
      break
    }
  }

  private static func describe(_ state: CentralState) -> String {
    switch state {
    case .noBus(let reason): reason
    case .adapterInUse: "another gateway uses the adapter"
    case .noBluetoothd: "bluetoothd is not running (systemctl start bluetooth)"
    case .adapterAbsent: "there is no Bluetooth adapter"
    case .adapterOff: "the adapter is off (bluetoothctl power on)"
    case .adapterBlocked: "the adapter is blocked (rfkill unblock bluetooth)"
    case .on: "the adapter is on"
    }
  }

  private func show() {
    let peripherals = request.peripherals
    if asJSON {
      return print(
        String(decoding: JSONValue.array(peripherals.map { $0.json(id: nil) }).bytes, as: UTF8.self))
    }
    if peripherals.isEmpty { printError("no Bluetooth device found") }
    for peripheral in peripherals {
      let signal = peripheral.rssi.map { "\($0) dBm" } ?? "-"
      let name = peripheral.name.map { Excerpt($0).description } ?? ""
      print("\(peripheral.address)  \(signal)  \(name)\(peripheral.isConnected ? "  (connected)" : "")")
    }
  }
}
