import BlueZ
import Bridge
import Configuration
import Devices
import EventLoop
import GATT
import Glibc
import JSON

/// Inspects peripherals without a running gateway: by an engine in this process, which has no devices.
@LoopActor final class Inspector: FrontEnd {
  private let engine: DeviceManager
  private var running: Task<Void, Never>?
  private let adapterReady = Waiter<Void>()

  private init(_ configuration: Configuration) {
    var none = configuration
    none.devices = []
    let state = Self.state(configuration)
    engine = DeviceManager(
      none, gateway: state.gateway, state: .inMemory(), adapters: .inMemory(state.adapterAddresses()))
  }

  /// - Parameters:
  ///   - timeout: the limit for the adapters to be on.
  ///   - interruption: ends the links first from now on.
  static func start(
    _ configuration: Configuration, timeout: Duration, _ interruption: Interruption
  ) async throws(CommandFailure) -> Inspector {
    let inspector = Inspector(configuration)
    let engine = inspector.engine
    engine.add(inspector)
    inspector.running = loop.task { await engine.run() }
    _ = try? await inspector.adapterReady.value(within: timeout)
    let adapters = engine.adapters
    guard adapters.contains(where: \.state.isOn) else {
      await inspector.stop()
      throw CommandFailure(
        .unavailable,
        "cannot use Bluetooth: \(describe(adapters[0].state, adapter: adapters[0].name))")
    }
    interruption.action = { signal in
      loop.task {
        await inspector.stop()
        exit(128 + signal)
      }
    }
    return inspector
  }

  func stop() async {
    await engine.stop(within: .seconds(3))
    // The task is not awaited: a bus may not answer.
    running?.cancel()
  }

  /// Connects to a peripheral, and reads what it offers.
  /// - Returns: what the request `device/inspect` returns.
  func inspect(_ address: BluetoothAddress) async throws(RequestError) -> JSONValue {
    try await engine.inspect(.address(address)).json
  }

  /// `inspect` while no gateway runs.
  /// - Parameters:
  ///   - name: what the user calls the peripheral.
  ///   - path: the configuration file; nil: the default file.
  static func inspect(
    _ name: String, _ path: String?, _ timeout: Duration
  ) async throws(CommandFailure) -> JSONValue {
    let configuration = try GatewayAccess.configuration(path)
    let devices = configured(configuration)
    var target = try Target.named(name, among: devices)
    if target == nil {
      let scan = try await AdapterView.scan(
        state(configuration).adapters(configuration.bluetooth), for: .seconds(5))
      target = try Target.named(name, among: scan.found.compactMap { Target($0.json(nil)) })
    }
    guard let target else { throw Target.none(name, among: devices, orInRange: true) }
    let inspector = try await start(configuration, timeout: timeout, Interruption())
    do throws(RequestError) {
      let data = try await inspector.inspect(target.address)
      await inspector.stop()
      return data
    } catch {
      await inspector.stop()
      throw CommandFailure(GatewayCommand.ExitStatus(error.code), error.reason)
    }
  }

  private static func state(_ configuration: Configuration) -> StateCheck {
    StateCheck(gateway: StateFolder.gatewayID(of: configuration), environment: StateFolder.environment)
  }

  /// The devices that the configuration names by their addresses.
  private static func configured(_ configuration: Configuration) -> [Target] {
    configuration.devices.compactMap { entry in
      entry.match.identifier.map { address in
        Target(
          address, id: (entry.id ?? DeviceID(address)).description, names: [entry.name].compactMap { $0 })
      }
    }
  }

  private static func describe(_ state: CentralState, adapter: String) -> String {
    guard case .adapterInUse(let process?) = state else {
      return state.finding(adapter: adapter).line
    }
    let user = RuntimeFolder.owner(ofProcess: process)
    let isOfOther = geteuid() != 0 && user != RuntimeFolder.name(ofUser: geteuid())
    return "a gateway that cannot be reached (process \(process)\(user.map { " of the user \($0)" } ?? "")) "
      + "uses the adapter: \(isOfOther ? "run this command as that user (sudo -u)" : "try again in some seconds")"
      + ", or stop the gateway"
  }

  // MARK: Front end

  func attach(_ device: DeviceDescription) -> (any DeviceObserver)? { nil }
  func foundOrphan(_ id: DeviceID, of address: BluetoothAddress, offered: Set<String>) {}

  func engineChanged() {
    let states = engine.adapters.map(\.state)
    if states.allSatisfy(\.isDecided) || states.contains(where: \.isOn) { adapterReady.resume(.success(())) }
  }
}
