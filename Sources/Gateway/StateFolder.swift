import Configuration
import Findings
import Glibc
import JSON

/// The folder of the state database.
enum StateFolder {
  /// systemd's `StateDirectory=` by `$STATE_DIRECTORY`, else the user's by the XDG Base Directory Specification; nil
  /// when the environment has neither of them, nor a home.
  static func path(_ environment: [String: String]) -> String? {
    // systemd separates several folders by colons.
    if let first = environment["STATE_DIRECTORY"]?.split(separator: ":").first {
      return String(first).absolutePath
    }
    // The specification says to ignore a relative path.
    if let state = environment["XDG_STATE_HOME"], state.hasPrefix("/") {
      return below(state, "microbit-gateway")
    }
    if let home = environment["HOME"], home.hasPrefix("/") {
      return below(home, ".local/state/microbit-gateway")
    }
    return nil
  }

  /// The folder of the systemd service: `/var/lib` and the `StateDirectory=` of deploy/microbit-gateway.service.
  static let service = "/var/lib/microbit-gateway"

  /// What a gateway keeps there, by how its name ends.
  enum Item: String {
    case database = "db"
    /// Readings that the broker has not acknowledged.
    case spool
    /// The folder of the recordings.
    case recordings
    /// See ``CrashNote``.
    case crash
  }

  /// The path of an item; nil when there is no folder for it.
  static func path(
    of item: Item, _ gateway: GatewayID, _ environment: [String: String] = environment
  ) -> String? {
    path(environment).map { below($0, "\(gateway).\(item.rawValue)") }
  }

  /// The folder of the recordings of a running gateway, which another user may have started.
  /// - Parameter isOfService: whether it is the service. The user's own folder can have a recording of the same name.
  static func recordings(
    of gateway: GatewayID, _ environment: [String: String], isOfService: Bool
  ) -> String? {
    let isService = isOfService && environment["STATE_DIRECTORY"] == nil
    return path(of: .recordings, gateway, isService ? ["STATE_DIRECTORY": service] : environment)
  }

  /// The state database that `check` reads: the service's, unless there is `$STATE_DIRECTORY` or the user has one.
  /// - Returns: the path, whether there is such a file, and beside a user's own the path of the service's, if there is
  ///   one; nil when there is no folder for any.
  static func databaseToRead(
    _ gateway: GatewayID, _ environment: [String: String], service: String = service
  ) -> (path: String, isThere: Bool, ofService: String?)? {
    let own = path(of: .database, gateway, environment)
    let ownIsThere = own.map(isThere) ?? false
    let ofService = below(service, "\(gateway).db")
    guard environment["STATE_DIRECTORY"] == nil, isThere(ofService) else {
      return own.map { ($0, ownIsThere, nil) }
    }
    guard let own, ownIsThere else { return (ofService, true, nil) }
    return (own, true, ofService)
  }

  /// Whether the path exists; also true where this user may not look.
  private static func isThere(_ path: String) -> Bool { access(path, F_OK) == 0 || errno == EACCES }

  // MARK: The gateway's id

  /// The id by the configuration; without one there, that of the first start, else the host's name. A gateway would be a
  /// second one, in MQTT and Home Assistant, if its id followed a new name of the host.
  ///
  /// The service's folder is closed to most users: while the service runs, the name of its socket tells them the id.
  static func gatewayID(
    of configuration: Configuration, _ environment: [String: String] = environment,
    service: String = service, runtime: String = RuntimeFolder.service
  ) -> GatewayID {
    if let id = configuration.gateway.id { return id }
    if let own = path(environment).flatMap(storedID) { return own }
    guard environment["STATE_DIRECTORY"] == nil else { return .ofThisHost }
    let running = RuntimeFolder.gateways(in: runtime).first.flatMap { GatewayID($0.gateway) }
    return storedID(in: service) ?? running ?? .ofThisHost
  }

  /// A warning that the service's gateway may have another id than ``gatewayID(of:_:service:runtime:)``; nil: it has
  /// not.
  static func unknownID(of configuration: Configuration) -> Finding? {
    guard configuration.gateway.id == nil, environment["STATE_DIRECTORY"] == nil,
      path(environment).flatMap(storedID) == nil, access(below(service, idFile), F_OK) != 0, errno == EACCES,
      RuntimeFolder.gateways(in: RuntimeFolder.service).isEmpty
    else { return nil }
    return .warning(
      .gateway,
      "\(service) is closed to you: the service's gateway may have another id than \(GatewayID.ofThisHost)",
      remedy: "use sudo, or set gateway.id in config.json")
  }

  /// Stores the id for later starts, unless there is one.
  static func store(_ id: GatewayID, _ environment: [String: String] = environment) {
    guard let folder = path(environment), storedID(in: folder) == nil else { return }
    // The id follows the host's name without it, as before.
    try? NewFile(at: below(folder, idFile), Array("\(id)\n".utf8), mode: 0o644).replace()
  }

  private static let idFile = "gateway-id"

  private static func storedID(in folder: String) -> GatewayID? {
    guard let bytes = try? FileProblem.read(below(folder, idFile), limit: 128) else { return nil }
    return GatewayID(String(decoding: bytes.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self))
  }

  /// The variables of this process that determine this folder and ``RuntimeFolder``.
  static var environment: [String: String] {
    ["STATE_DIRECTORY", "XDG_STATE_HOME", "HOME", "RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR"]
      .reduce(into: [:]) { $0[$1] = getenv($1).map { String(cString: $0) } }
  }

  private static func below(_ folder: String, _ name: String) -> String {
    folder.hasSuffix("/") ? folder + name : "\(folder)/\(name)"
  }
}
