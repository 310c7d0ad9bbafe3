import Configuration
import Control
import EventLoop
import GATT
import JSON
import Sockets

/// The gateway that a command uses: a running one, through its socket, or one in this process for this
/// command only.
@LoopActor final class GatewayAccess {
  let client: ControlClient
  /// The gateway's id.
  let gateway: String
  private let local: LocalGateway?

  private init(_ client: ControlClient, of gateway: String, _ local: LocalGateway?) {
    self.client = client
    self.gateway = gateway
    self.local = local
  }

  static func open(_ command: DeviceCommand) async throws(CommandFailure) -> GatewayAccess {
    // The file is not needed to ask the only running gateway, whose files this user may not be allowed to read.
    let file = command.configuration == nil ? nil : try configuration(command.configuration)
    let id = command.gateway ?? file.map { StateFolder.gatewayID(of: $0).description }
    if let (gateway, descriptor) = try running(id, isRequired: command.gateway != nil) {
      return GatewayAccess(ControlClient(descriptor), of: gateway, nil)
    }
    if command.action.needsGateway {
      throw CommandFailure(
        .unavailable, "no gateway is running: start it first (sudo systemctl start microbit-gateway)")
    }
    let used = if let file { file } else { try configuration(nil) }
    let local = try await LocalGateway.start(used, timeout: command.timeout)
    return GatewayAccess(local.client, of: local.id.description, local)
  }

  func close() async {
    client.close()
    await local?.stop()
  }

  /// The configuration; the defaults where no file is named and none is found.
  nonisolated static func configuration(_ path: String?) throws(CommandFailure) -> Configuration {
    do throws(ConfigurationFailure) {
      return try ConfigurationFile.load(path: path).configuration
    } catch {
      if path == nil, error.file == nil { return Configuration() }
      throw CommandFailure(.configuration, error.advice)
    }
  }

  /// The running gateway and its socket; nil: none runs.
  static func running(
    _ id: String?, isRequired: Bool
  ) throws(CommandFailure) -> (gateway: String, descriptor: Int32)? {
    var open: [(gateway: String, descriptor: Int32)] = []
    var denied: [(gateway: String, path: String)] = []
    for (gateway, path) in RuntimeFolder.sockets(RuntimeFolder.environment) {
      if let id, gateway != id { continue }
      do throws(UnixSocket.Failure) {
        open.append((gateway, try UnixSocket.connect(to: path)))
      } catch {
        if error == .denied { denied.append((gateway, path)) }
      }
    }
    if open.count > 1 {
      let ids = open.map(\.gateway).joined(separator: ", ")
      throw CommandFailure(.usage, "several gateways are running: \(ids); choose one with --gateway ID")
    }
    if let denied = denied.first, open.isEmpty {
      throw CommandFailure(.unavailable, RuntimeFolder.denial(denied.path, gateway: denied.gateway))
    }
    if open.isEmpty, isRequired, let id {
      throw CommandFailure(.unavailable, "no gateway \(id) is running")
    }
    return open.first
  }

  // MARK: Requests

  func request(
    _ verb: String, _ keys: JSONValue = [:], within limit: Duration = .seconds(30)
  ) async throws(CommandFailure) -> JSONValue {
    do throws(ControlError) {
      return try await client.request(verb, keys, within: limit)
    } catch {
      throw CommandFailure(GatewayCommand.ExitStatus(error.code), error.reason)
    }
  }

  /// Says that the running gateway has not read the present config.json.
  func warnOfChangedConfiguration() async {
    guard local == nil, let health = try? await client.request("health") else { return }
    let finding = await EventLoop.blocking { GatewayCheck.changedConfiguration(health) }
    if let finding { printError(finding.line) }
  }

  // MARK: Devices

  /// The device that the user means; a gateway in this process serves it from now on.
  func device(_ text: String, using property: String?) async throws(CommandFailure) -> Target {
    let target = try await find(text, orInRange: local != nil)
    if let local { try await local.serve(target.address, using: property) }
    guard
      let entry = try await request("devices").elements.first(where: {
        $0["identifier"] == .string(target.address.description)
      })
    else {
      throw CommandFailure(
        .unavailable, "\(target.label) is not a device of the gateway: see devices in config.json")
    }
    return Target(entry) ?? target
  }

  /// What the user means; a gateway in this process has it as a device from now on.
  func known(_ text: String, orInRange: Bool) async throws(CommandFailure) -> Target {
    let target = try await find(text, orInRange: orInRange)
    guard local != nil else { return target }
    let device = try await request("device/add", ["identifier": .string(target.address.description)])
    return Target(device) ?? target
  }

  /// A device of the running gateway, or any in range, to which a gateway in this process connects.
  func connected(_ text: String) async throws(CommandFailure) -> Target {
    guard let local else { return try await device(text, using: nil) }
    let address = try await find(text, orInRange: true).address
    local.useEntries(of: address, using: nil)
    let target = try await known(address.description, orInRange: true)
    try await local.connected(address)
    return target
  }

  /// The strength of the last signals of the running gateway's devices, in dBm, by their addresses.
  static func signals() async -> [String: Int] {
    guard let (_, descriptor) = try? running(nil, isRequired: false) else { return [:] }
    let client = ControlClient(descriptor)
    let devices = (try? await client.request("devices"))?.elements ?? []
    client.close()
    let signals = devices.compactMap { device in
      device["identifier"]?.text.flatMap { address in device["rssi"]?.integer.map { (address, $0) } }
    }
    return Dictionary(signals) { $1 }
  }

  /// All devices; a gateway in this process serves them from now on.
  func serveAll(using property: String?) { local?.serveAll(using: property) }

  /// Whether the target has no link, and is this gateway's; a device that is connected on demand is connected for a
  /// command.
  func isOffline(_ target: Target) -> Bool { local == nil && target.isOffline && target.owner == gateway }

  /// `kitchen is offline since 12:34:56: not in range`.
  func offline(_ target: Target) async throws(CommandFailure) -> String {
    let findings = try await request("health")["findings"]?.elements ?? []
    let name = "\(target.label): "
    let reason = findings.compactMap { $0["text"]?.text }.first { $0.hasPrefix(name) }?.dropFirst(name.count)
    let since = target.offlineSince.map { " since \(WatchView.clock($0))" } ?? ""
    return
      "\(target.label) is offline\(since): \(reason.map(String.init) ?? target.lastError ?? "connecting again")"
  }

  /// What the user means: a device, or another peripheral in range.
  func find(_ text: String, orInRange: Bool) async throws(CommandFailure) -> Target {
    let devices: [Target]
    if let local {
      devices = local.configured
    } else {
      devices = try await request("devices").elements.compactMap { Target($0) }
    }
    if let found = try one(text, among: devices) { return found }
    if let address = BluetoothAddress(text) ?? BluetoothAddress(compact: text.lowercased()) {
      return Target(Candidate(address: address, id: nil, names: []))
    }
    if orInRange {
      let found = try await request("scan", ["timeout": .integer(5)]).elements.compactMap { Target($0) }
      if let found = try one(text, among: found) { return found }
    }
    await warnOfChangedConfiguration()
    let known = devices.map(\.label)
    let hint = nearest(to: text, among: known).map { ": did you mean \($0)?" }
    let list = known.isEmpty || local != nil ? "" : "; devices: \(known.joined(separator: ", "))"
    throw CommandFailure(
      .unavailable,
      "no \(orInRange ? "device or peripheral in range" : "device") is called \(Excerpt(text))\(hint ?? list)"
    )
  }

  private func one(_ text: String, among targets: [Target]) throws(CommandFailure) -> Target? {
    switch DeviceName.meaning(of: text, among: targets.map(\.candidate)) {
    case .one(let candidate): return targets.first { $0.candidate == candidate }
    case .not(let several):
      guard !several.isEmpty else { return nil }
      let lines = several.map { "\n  \($0)" }.joined()
      throw CommandFailure(
        .usage, "\(Excerpt(text)) is not unique: use an address or an id, or more of the name:\(lines)")
    }
  }
}

/// A device of the gateway, or another peripheral.
struct Target {
  let candidate: Candidate
  /// The properties in use; empty if it is not a device.
  var properties: [String] = []
  /// Whether the gateway has no link to the device, and is to make one.
  var isOffline = false
  /// The gateway that owns the device.
  var owner: String?
  /// The time; nil: the device is online, or was not while the gateway runs.
  var offlineSince: String?
  /// Why there is no link, as far as known.
  var lastError: String?
  var isPaired = false
  /// The profile's name; nil if it is not a device.
  var profile: String?

  var address: BluetoothAddress { candidate.address }
  var id: String? { candidate.id }
  var label: String { id ?? candidate.names.first.map { Excerpt($0).description } ?? address.description }

  /// The keys that name it in a request.
  var selector: JSONValue {
    id.map { ["id": .string($0)] } ?? ["identifier": .string(address.description)]
  }

  init(_ candidate: Candidate) { self.candidate = candidate }

  /// Reads an entry of the requests `devices` or `scan`.
  init?(_ json: JSONValue) {
    guard let candidate = Candidate(json) else { return nil }
    self.init(candidate)
    properties = json["properties"]?.elements.compactMap(\.text) ?? []
    isOffline = ["absent", "waiting", "connecting", "subscribing", "leaving"].contains(json["session"]?.text)
    owner = json["owner"]?.text
    offlineSince = json["offline_since"]?.text
    lastError = json["last_error"]?.text
    isPaired = json["paired"] == .bool(true)
    profile = json["profile"]?.text
  }
}
