import BlueZ
import Bridge
import Configuration
import Control
import Devices
import EventLoop
import GATT
import Glibc
import JSON
import Sockets
import Store

/// A gateway in the process of a command, for the devices that the command concerns: without a broker and
/// without persistent state.
@LoopActor final class LocalGateway: FrontEnd, RequestHost {
  private let configuration: Configuration
  private let timeout: Duration
  private let engine: DeviceManager
  private var server: ControlServer!
  private var running: Task<Void, Never>?
  private(set) var client: ControlClient!
  private let adapterReady = Waiter<Void>()
  private let deviceOnline = Waiter<Void>()
  let id: GatewayID

  private init(_ configuration: Configuration, timeout: Duration) {
    self.configuration = configuration
    self.timeout = timeout
    id = StateFolder.gatewayID(of: configuration)
    var none = configuration
    none.devices = []
    engine = DeviceManager(none, gateway: id, state: .inMemory())
    server = ControlServer(RequestHandler(engine, host: self), engine)
  }

  static func start(
    _ configuration: Configuration, timeout: Duration
  ) async throws(CommandFailure) -> LocalGateway {
    let gateway = LocalGateway(configuration, timeout: timeout)
    do throws(UnixSocket.Failure) {
      let (own, other) = try UnixSocket.pair()
      gateway.server.serve(own)
      gateway.client = ControlClient(other)
    } catch {
      throw CommandFailure(.unavailable, error.description)
    }
    let engine = gateway.engine
    engine.add(gateway)
    gateway.running = loop.task { await engine.run() }
    let ready = gateway.adapterReady
    _ = try? await loop.withTimeout(timeout) { try await ready.value() }
    let adapters = engine.adapters
    guard adapters.contains(where: \.state.isOn) else {
      await gateway.stop()
      throw CommandFailure(
        .unavailable,
        "cannot use Bluetooth: \(describe(adapters[0].state, adapter: adapters[0].name))")
    }
    return gateway
  }

  func stop() async {
    server.stop()
    engine.endSessions()
    await engine.stop(within: .seconds(3))
    // The task is not awaited: a bus may not answer.
    running?.cancel()
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

  // MARK: Devices

  /// The devices that the configuration names by their addresses.
  var configured: [Target] {
    configuration.devices.compactMap { entry in
      entry.match.identifier.map { address in
        Target(
          Candidate(
            address: address, id: (entry.id ?? DeviceID(address)).description,
            names: [entry.name].compactMap { $0 }))
      }
    }
  }

  /// Connects to the device at an address, by the entry of the configuration that matches it.
  func serve(_ address: BluetoothAddress, using property: String?) async throws(CommandFailure) {
    useEntries(of: address, using: property)
    try await connected(address)
  }

  /// The entries of the configuration that may match it hold for the device at an address.
  func useEntries(of address: BluetoothAddress, using property: String?) {
    let entries = configuration.devices.filter { ($0.match.identifier ?? address) == address }
    configure(
      entries.map { entry in
        var entry = entry
        entry.match.identifier = address
        return entry
      }, using: property)
  }

  /// Waits until the device has a connection.
  func connected(_ address: BluetoothAddress) async throws(CommandFailure) {
    let online = deviceOnline
    if (try? await loop.withTimeout(timeout, { try await online.value() })) != nil { return }
    let devices = engine.devices
    let seconds = timeout.components.seconds
    guard let device = devices.first else {
      throw CommandFailure(
        .unavailable,
        "\(address) was not seen in \(seconds) s, or no entry of config.json matches it: see microbit-gateway scan"
      )
    }
    let reason = device.session == .absent ? "is not in range" : "could not be connected to"
    throw CommandFailure(.unavailable, "\(device.id) \(reason) in \(seconds) s")
  }

  /// Connects to all devices of the configuration.
  func serveAll(using property: String?) { configure(configuration.devices, using: property) }

  /// - Parameter property: the only property to use, if the profile has it; nil: those of the entry.
  private func configure(_ entries: [Configuration.Device], using property: String?) {
    var changed = configuration
    changed.devices = entries.map { entry in
      var entry = entry
      // A command about one property changes nothing else.
      (entry.desired, entry.period, entry.isEnabled, entry.gateway) = (nil, nil, nil, nil)
      let profile = configuration.profile(of: entry.options)
      let whole = configuration.profile(named: profile.name) ?? profile
      if let property, whole.property(named: property) != nil { entry.properties = [property] }
      return entry
    }
    engine.configure(changed)
  }

  // MARK: Front end

  func attach(_ device: DeviceDescription) -> (any DeviceObserver)? { OnlineObserver(deviceOnline) }
  func foundOrphan(_ id: DeviceID, of address: BluetoothAddress, offered: Set<String>) {}

  func engineChanged() {
    let states = engine.adapters.map(\.state)
    let isDecided = states.allSatisfy { state in
      switch state {
      case .on, .noBus, .noBluetoothd, .unauthorized, .adapterUnsupported, .adapterInUse: true
      // The adapter may appear a moment later.
      case .adapterAbsent, .adapterOff, .adapterBlocked: false
      }
    }
    if isDecided || states.contains(where: \.isOn) { adapterReady.resume(.success(())) }
  }

  private final class OnlineObserver: DeviceObserver {
    private let online: Waiter<Void>

    init(_ online: Waiter<Void>) { self.online = online }

    func reported(_ reading: Reading) {}
    func changed(_ change: DeviceChange, _ device: DeviceDescription) {
      if device.isOnline { online.resume(.success(())) }
    }
    func detach(_ reason: DetachReason) {}
  }

  // MARK: Requests

  func listing(of device: DeviceDescription) -> JSONValue { device.listing(owner: nil) }
  func otherOwner(of device: DeviceDescription) -> GatewayID? { nil }
  func idElsewhere(of id: DeviceID) -> DeviceID? { nil }
  var health: GatewayHealth { GatewayHealth() }
  var reload: ReloadHandler { { reply in reply(.success([])) } }
}
