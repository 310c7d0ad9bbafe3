import BlueZ
import Devices
import EventLoop

/// The peripherals that an adapter knows and finds. It can be used at the same time as a gateway.
final class AdapterView: @unchecked Sendable {
  // @unchecked: used on the loop's thread alone.

  private(set) var central: Central!
  private let adapter: String
  private let loop: EventLoop
  private let onSeen: (Peripheral) -> Void
  private var state: CentralState?
  private let decided = Waiter<Void>()
  private var running: Task<Void, Never>?

  /// How long the bus, bluetoothd and the adapter may take to answer.
  private static let patience = Duration.seconds(5)

  /// - Parameter onSeen: called on the loop with each peripheral, at each change.
  init(adapter: String, loop: EventLoop, onSeen: @escaping (Peripheral) -> Void) {
    self.adapter = adapter
    self.loop = loop
    self.onSeen = onSeen
    central = Central(adapter: adapter, isExclusive: false, loop: loop) { [weak self] in self?.handle($0) }
  }

  /// Returns when the adapter is on.
  func start() async throws(CommandFailure) {
    running = Task(executorPreference: loop) { [central] in await central!.run() }
    let decided = decided
    _ = try? await loop.withTimeout(Self.patience) { try await decided.value() }
    guard state?.isOn == true else {
      throw CommandFailure(
        .unavailable,
        "cannot use Bluetooth: \(state.map { Self.describe($0, adapter: adapter) } ?? "bluetoothd does not answer")"
      )
    }
  }

  func stop() async {
    await central.stop(within: .seconds(3))
    // Not awaited: a bus may not answer.
    running?.cancel()
  }

  private func handle(_ event: CentralEvent) {
    switch event {
    case .state(let state):
      self.state = state
      switch state {
      case .on, .noBus, .noBluetoothd: decided.resume(.success(()))
      // The adapter may appear a moment later.
      case .adapterInUse, .adapterAbsent, .adapterOff, .adapterBlocked: break
      }
    case .seen(let peripheral): onSeen(peripheral)
    case .disconnected, .servicesChanged, .lost: break
    }
  }

  /// What is wrong, and the remedy.
  static func describe(_ state: CentralState, adapter: String) -> String {
    let finding = state.finding(adapter: adapter)
    return finding.text + (finding.remedy.map { " (\($0))" } ?? "")
  }
}
