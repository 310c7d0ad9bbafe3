import BlueZ
import Bridge
import Configuration
import Devices
import EventLoop
import Findings
import Glibc
import JSON

/// An engine in this process, without devices: it scans, or inspects peripherals while no gateway runs.
@LoopActor final class LocalEngine: FrontEnd {
  /// Its devices are none: for peripherals in range, and inspections.
  let engine: DeviceManager
  private var running: Task<Void, Never>?
  private let decided = Waiter<Void>()
  /// The adapters that have been on.
  private var used: Set<String> = []
  private var isAnswered = false

  private init(_ stored: StoredGateway, isExclusive: Bool) {
    var none = stored.configuration
    none.devices = []
    engine = DeviceManager(
      none, gateway: stored.id, state: .inMemory(stored.identities), adapters: .inMemory(stored.adapters),
      isExclusive: isExclusive)
  }

  /// Returns when an adapter is on.
  /// - Parameters:
  ///   - timeout: the limit for that.
  ///   - interruption: for inspections: no gateway may use the adapters, and from now on it ends the links first; nil: a
  ///     gateway may use the adapters too, and nothing is connected.
  static func start(
    _ stored: StoredGateway, timeout: Duration = .seconds(5), forInspections interruption: Interruption? = nil
  ) async throws(CommandFailure) -> LocalEngine {
    let local = LocalEngine(stored, isExclusive: interruption != nil)
    local.engine.add(local)
    local.running = loop.task { await local.engine.run() }
    _ = try? await local.decided.value(within: timeout)
    if !local.used.isEmpty {
      interruption?.action = { signal in
        loop.task {
          await local.stop()
          exit(128 + signal)
        }
      }
      return local
    }
    let reason = local.isAnswered ? local.obstacle : "bluetoothd does not answer"
    await local.stop()
    throw CommandFailure(.unavailable, "cannot use Bluetooth: \(reason)")
  }

  func stop() async {
    await engine.stop(within: .seconds(3))
    // The task is not awaited: a bus may not answer.
    running?.cancel()
  }

  /// Scans from now on.
  func beginScan() -> ScanRequest { (try? engine.beginScan()) ?? ScanRequest() }

  /// Scans for a while.
  /// - Returns: the peripherals that were in range, the strongest first, and which adapters have not scanned to the end.
  static func scan(
    _ stored: StoredGateway, for limit: Duration
  ) async throws(CommandFailure) -> (found: [Peripheral], faults: [Finding]) {
    let local = try await start(stored)
    let scan = local.beginScan()
    try? await loop.sleep(for: limit)
    let faults = local.scanFindings
    await local.stop()
    return (scan.peripherals, faults)
  }

  /// The adapters that cannot scan, which is known after a few seconds of scanning, and those that are on no more.
  var scanFindings: [Finding] {
    engine.adapterFaults.filter { used.contains($0.adapter) }.map(\.fault)
  }

  // MARK: Inspecting

  /// `inspect` while no gateway runs.
  /// - Parameters:
  ///   - name: what the user calls the peripheral.
  ///   - path: the configuration file; nil: the default file.
  /// - Returns: what the request `device/inspect` returns.
  static func inspect(
    _ name: String, _ path: String?, _ timeout: Duration
  ) async throws(CommandFailure) -> JSONValue {
    let stored = try StoredGateway(configuredBy: path)
    let devices = stored.configuration.devices.compactMap { entry in
      entry.match.identifier.map { address in
        Target(
          address, id: (entry.id ?? DeviceID(address)).description, names: [entry.name].compactMap { $0 })
      }
    }
    var target = try Target.named(name, among: devices)
    if target == nil {
      let scan = try await scan(stored, for: .seconds(5))
      target = try Target.named(name, among: scan.found.compactMap { Target($0.json(nil)) })
    }
    guard let target else { throw Target.none(name, among: devices, orInRange: true) }
    let local = try await start(stored, timeout: timeout, forInspections: Interruption())
    do throws(RequestError) {
      let inspection = try await local.engine.inspect(.address(target.address)) { peripheral in
        stored.assignment(peripheral.address, Advertisement(peripheral)).settings
      }
      await local.stop()
      return inspection.json
    } catch {
      await local.stop()
      throw CommandFailure(GatewayCommand.ExitStatus(error.code), error.reason)
    }
  }

  /// Why no adapter is on.
  private var obstacle: String {
    guard case .adapterInUse(let process?) = engine.adapters[0].state else {
      return engine.adapterFaults.first?.fault.line ?? "no adapter is on"
    }
    let user = RuntimeFolder.owner(ofProcess: process)
    let isOfOther = geteuid() != 0 && user != FileProblem.name(ofUser: geteuid())
    return "a gateway that cannot be reached (process \(process)\(user.map { " of the user \($0)" } ?? "")) "
      + "uses the adapter: \(isOfOther ? "run this command as that user (sudo -u)" : "try again in some seconds")"
      + ", or stop the gateway"
  }

  // MARK: Front end

  func attach(_ device: DeviceDescription) -> (any DeviceObserver)? { nil }
  func engineChanged() {
    isAnswered = true
    let adapters = engine.adapters
    used.formUnion(adapters.filter(\.state.isOn).map(\.name))
    // The bus is the same for all adapters: one that has none yet, while another has, is still to answer.
    let haveAnswered = Set(adapters.map(\.state.hasBus)).count == 1
    if !used.isEmpty || haveAnswered && adapters.allSatisfy(\.state.isDecided) {
      decided.resume(.success(()))
    }
  }
}

extension CentralState {
  fileprivate var hasBus: Bool { if case .noBus = self { false } else { true } }

  /// Whether a command does not wait a moment for another one.
  fileprivate var isDecided: Bool {
    switch self {
    case .on, .noBus, .noBluetoothd, .noAnswer, .unauthorized, .adapterUnsupported, .adapterInUse: true
    // The adapter may appear a moment later.
    case .adapterAbsent, .adapterOff, .adapterBlocked: false
    }
  }
}
