import Configuration
import Control
import Devices
import EventLoop
import GATT
import JSON
import Sockets

/// The running gateway that a command asks, through its socket.
@LoopActor final class GatewayAccess {
  let client: ControlClient
  /// The gateway's id.
  let gateway: String
  /// Whether it is the service.
  let isOfService: Bool
  /// The options by which the user has named the gateway, behind a space.
  private var options = ""

  /// - Parameter path: of its socket.
  private init(_ gateway: String, _ path: String) throws(SocketFailure) {
    client = ControlClient(try UnixSocket.connect(to: path))
    self.gateway = gateway
    isOfService = ConfigurationFile.folder(of: path) == RuntimeFolder.service
  }

  /// - Returns: nil if none runs, and the command has not named one by its id.
  static func open(_ command: Arguments.Values) throws(CommandFailure) -> GatewayAccess? {
    // The file is not needed to ask the only running gateway, whose files this user may not be allowed to read.
    let stored = command[.config] == nil ? nil : try StoredGateway(configuredBy: command[.config])
    let id = command[.gateway] ?? stored?.id.description
    if let access = try open(id) {
      access.options = [Option.gateway, .config].map { option in
        command[option].map { " --\(option.rawValue) \($0.shellWord)" } ?? ""
      }.joined()
      return access
    }
    if command.has(.gateway) { throw noneRuns(id, configuration: command[.config]) }
    return nil
  }

  /// - Returns: the gateway with this id, or the only one that runs; nil if it does not.
  static func open(_ id: String? = nil) throws(CommandFailure) -> GatewayAccess? {
    switch presence(id, StateFolder.environment) {
    case .absent: return nil
    case .denied(let gateway, let path):
      throw CommandFailure(.unavailable, RuntimeFolder.denial(path, gateway: gateway))
    case .hidden(let folder):
      throw CommandFailure(
        .unavailable, "whether a gateway runs is not known: \(folder) is closed to you: use sudo")
    case .running(let running) where running.count > 1:
      for gateway in running { gateway.close() }
      let ids = running.map(\.gateway).joined(separator: ", ")
      throw CommandFailure(.usage, "several gateways are running: \(ids); choose one with --gateway ID")
    case .running(let running): return running.first
    }
  }

  /// Every running gateway with this id that this user may ask: a user's own may have that of the service.
  static func all(
    _ id: String, _ environment: [String: String] = StateFolder.environment,
    service: String = RuntimeFolder.service
  ) -> [GatewayAccess] {
    guard case .running(let running) = presence(id, environment, service: service) else { return [] }
    return running
  }

  /// What is said if there is no gateway to ask.
  nonisolated static func noneRuns(_ id: String? = nil, configuration: String?) -> CommandFailure {
    CommandFailure(
      .unavailable,
      "no gateway\(id.map { " \(Excerpt.harmless($0))" } ?? "") is running: start it with "
        + "sudo systemctl start microbit-gateway, or microbit-gateway run --config "
        + (configuration?.shellWord ?? "FILE"))
  }

  func close() { client.close() }

  /// Another command for the same gateway, to be shown to the user.
  func command(_ words: String) -> String { "microbit-gateway \(words)\(options)" }

  /// Whether gateways run.
  enum Presence: Sendable {
    /// None runs, or it has no socket here.
    case absent
    /// One runs, and this user may not ask it.
    case denied(gateway: String, path: String)
    /// One may run: this user may not look into the folder of its socket.
    case hidden(folder: String)
    /// One or several run.
    case running([GatewayAccess])
  }

  /// - Parameter id: that of the gateway; nil: any.
  static func presence(
    _ id: String?, _ environment: [String: String], service: String = RuntimeFolder.service
  ) -> Presence {
    var running: [GatewayAccess] = []
    var denied: Presence?
    for (gateway, path) in RuntimeFolder.sockets(environment, service) where id == nil || gateway == id {
      do throws(SocketFailure) {
        running.append(try GatewayAccess(gateway, path))
      } catch {
        if error.isDenied { denied = denied ?? .denied(gateway: gateway, path: path) }
      }
    }
    if !running.isEmpty { return .running(running) }
    return denied ?? RuntimeFolder.closed(environment).map { .hidden(folder: $0) } ?? .absent
  }

  // MARK: Requests

  func request(
    _ verb: String, _ keys: JSONValue = [:], within limit: Duration = .seconds(30)
  ) async throws(CommandFailure) -> JSONValue {
    do throws(RequestError) {
      return try await client.request(verb, keys, within: limit)
    } catch {
      throw CommandFailure(GatewayCommand.ExitStatus(error.code), error.reason)
    }
  }

  /// Says that the running gateway has not read the present config.json.
  func warnOfChangedConfiguration() async {
    guard let health = try? await client.request("health") else { return }
    let finding = await EventLoop.blocking { [process = client.process] in
      GatewayCheck.changedConfiguration(health, process: process)
    }
    if let finding { printError(finding.line) }
  }

  // MARK: Devices

  /// The device that the user means.
  func device(_ text: String) async throws(CommandFailure) -> Target {
    let target = try await find(text, orInRange: false)
    guard target.profile != nil else {
      throw CommandFailure(
        .unavailable, "\(target.label) is not a device of the gateway: see devices in config.json")
    }
    return target
  }

  /// `kitchen is offline since 12:34:56: not in range`; nil: it has a link, or is another gateway's. A device that is
  /// connected on demand is connected for a command.
  func offline(_ target: Target) async throws(CommandFailure) -> String? {
    guard target.isOffline, target.owner == gateway else { return nil }
    let findings = try await request("health")["findings"]?.elements ?? []
    let name = "\(target.label): "
    let reason = findings.compactMap { $0["text"]?.text }.first { $0.hasPrefix(name) }?.dropFirst(name.count)
    let since = target.offlineSince.map { " since \($0.dated())" } ?? ""
    return
      "\(target.label) is offline\(since): \(reason.map(String.init) ?? target.lastError ?? "connecting again")"
  }

  /// What the user means: a device, or another peripheral in range.
  func find(_ text: String, orInRange: Bool) async throws(CommandFailure) -> Target {
    let devices = try await targets("devices")
    if let found = try Target.named(text, among: devices) { return found }
    if orInRange {
      let inRange = try await targets("scan", ["timeout": .integer(5)])
      if let found = try Target.named(text, among: inRange) { return found }
    }
    await warnOfChangedConfiguration()
    throw Target.none(text, among: devices, orInRange: orInRange)
  }

  private func targets(_ verb: String, _ keys: JSONValue = [:]) async throws(CommandFailure) -> [Target] {
    try await request(verb, keys).elements.compactMap { Target($0) }
  }
}
