import BlueZ
import Devices
import EventLoop
import Findings

/// The peripherals that adapters know and find. They can be used at the same time by a gateway.
@LoopActor final class AdapterView {
  /// The centrals by adapter, in order.
  private(set) var centrals: [(adapter: String, central: Central)] = []
  private let found = ScanRequest()
  private var states: [CentralState?]
  /// The adapters that were on when the scan began.
  private var scanning: Set<String> = []
  private let decided = Waiter<Void>()
  private var running: [Task<Void, Never>] = []

  /// How long the bus, bluetoothd and the adapters may take to answer.
  private static let timeout = Duration.seconds(5)

  init(adapters: [AdapterSelection]) {
    states = adapters.map { _ in nil }
    centrals = adapters.enumerated().map { index, adapter in
      (
        adapter.name,
        Central(adapter: adapter, isExclusive: false) { [weak self] in
          self?.handle($0, of: index)
        }
      )
    }
  }

  /// Scans for a while.
  /// - Parameter started: called when the adapters are on.
  /// - Returns: the peripherals that were in range, the strongest first, and which adapters have not scanned to the end.
  static func scan(
    _ adapters: [AdapterSelection], for limit: Duration, started: () -> Void = {}
  ) async throws(CommandFailure) -> (found: [Peripheral], faults: [Finding]) {
    let view = AdapterView(adapters: adapters)
    try await view.start()
    started()
    view.scan()
    try? await loop.sleep(for: limit)
    let faults = view.scanFindings
    await view.stop()
    return (view.found.peripherals, faults)
  }

  /// Returns when the adapters are on, or one of them if the others do not come on. If none does, it is stopped.
  func start() async throws(CommandFailure) {
    running = centrals.map { _, central in loop.task { await central.run() } }
    _ = try? await decided.value(within: Self.timeout)
    guard states.contains(where: { $0?.isOn == true }) else {
      await stop()
      throw CommandFailure(
        .unavailable,
        "cannot use Bluetooth: \(states[0]?.finding(adapter: centrals[0].central.currentName).line ?? "bluetoothd does not answer")"
      )
    }
  }

  func scan() {
    for (index, (adapter, central)) in centrals.enumerated() {
      if states[index]?.isOn == true { scanning.insert(adapter) }
      central.scan(true)
    }
  }

  /// The peripherals in range, the strongest first, each once.
  var inRange: [Peripheral] {
    let found = ScanRequest()
    for (_, central) in centrals {
      for peripheral in central.peripherals { found.add(peripheral) }
    }
    return found.peripherals
  }

  /// The adapters that cannot scan, which is known after a few seconds of scanning, and those that are on no more.
  var scanFindings: [Finding] {
    zip(centrals, states).compactMap { scanner, state in
      let name = scanner.central.currentName
      if let recovery = scanner.central.recovery { return .cannotScan(name, recovery.reason) }
      guard let state, !state.isOn, scanning.contains(scanner.adapter) else { return nil }
      return state.finding(adapter: name)
    }
  }

  func stop() async {
    for (_, central) in centrals { await central.stop(within: .seconds(3)) }
    // The tasks are not awaited: a bus may not answer.
    for task in running { task.cancel() }
  }

  private func handle(_ event: CentralEvent, of index: Int) {
    switch event {
    case .state(let state):
      states[index] = state
      if states.allSatisfy({ $0?.isDecided == true }) { decided.resume(.success(())) }
    case .seen(let peripheral): found.add(peripheral)
    case .recovery, .disconnected, .linkEnded, .servicesChanged, .unusable, .lost: break
    }
  }
}

extension CentralState {
  /// Whether a command goes on with it, instead of waiting a moment for another one.
  var isDecided: Bool {
    switch self {
    case .on, .noBus, .noBluetoothd, .unauthorized, .adapterUnsupported, .adapterInUse: true
    // The adapter may appear a moment later.
    case .adapterAbsent, .adapterOff, .adapterBlocked: false
    }
  }
}
