import Configuration
import Glibc

/// Where gateways have their sockets for the command line.
enum RuntimeFolder {
  /// systemd's `RuntimeDirectory=` by `$RUNTIME_DIRECTORY`, else the user's by the XDG Base Directory Specification,
  /// else that of the state database; nil when the environment has none of them.
  static func path(_ environment: [String: String]) -> String? {
    if let first = environment["RUNTIME_DIRECTORY"]?.split(separator: ":").first, first.hasPrefix("/") {
      return String(first)
    }
    // `su` leaves root the folder of the user who has called it, whose gateway could be anything.
    if let runtime = environment["XDG_RUNTIME_DIR"], runtime.hasPrefix("/"),
      FileProblem.status(runtime).map({ $0.st_uid == geteuid() }) ?? true
    {
      return "\(runtime)/microbit-gateway"
    }
    return StateFolder.path(environment)
  }

  /// The folder of the systemd service: `/run` and the `RuntimeDirectory=` of deploy/microbit-gateway.service.
  static let service = "/run/microbit-gateway"

  /// The socket of a gateway, in a folder that now exists; nil when there is no folder for it.
  static func socket(of gateway: GatewayID, _ environment: [String: String]) -> String? {
    guard let folder = path(environment) else { return nil }
    // Fails if it exists. Only for the user, as the specification requires.
    _ = mkdir(folder, 0o700)
    return "\(folder)/\(gateway)\(suffix)"
  }

  private static let suffix = ".sock"

  /// A folder that may have the socket of a gateway, and is closed to this user; nil: there is none.
  static func closed(_ environment: [String: String]) -> String? {
    folders(environment, service).first { access($0, R_OK | X_OK) != 0 && errno == EACCES }
  }

  /// Where this user's gateways and the service have their sockets.
  private static func folders(_ environment: [String: String], _ service: String) -> [String] {
    var folders = [path(environment)].compactMap { $0 }
    if environment["RUNTIME_DIRECTORY"] == nil, !folders.contains(service) { folders.append(service) }
    return folders
  }

  /// The sockets of this user's gateways and of the service, whether or not one listens.
  static func sockets(_ environment: [String: String], _ service: String) -> [(gateway: String, path: String)]
  {
    folders(environment, service).flatMap(gateways)
  }

  /// The gateways that have a socket in a folder, whether or not they listen.
  static func gateways(in folder: String) -> [(gateway: String, path: String)] {
    (FolderNames.all(in: folder) ?? []).filter { $0.hasSuffix(suffix) }.sorted()
      .map { (String($0.dropLast(suffix.count)), "\(folder)/\($0)") }
  }

  /// Why a socket is refused, and what to do.
  static func denial(_ path: String, gateway: String) -> String {
    let status = FileProblem.status(path)
    let user = status.map { FileProblem.name(ofUser: $0.st_uid) } ?? "another user"
    let group = status.flatMap { getgrgid($0.st_gid) }.map { String(cString: $0.pointee.gr_name) }
    let join = group.map { ", or join its group (sudo usermod -aG \($0) $USER, then log in again)" } ?? ""
    return "the gateway \(gateway) runs as \(user), and its socket \(path) is closed to you: use sudo\(join)"
  }

  /// The name of the user who has started a process; nil: it has ended.
  static func owner(ofProcess process: Int32) -> String? {
    FileProblem.status("/proc/\(process)").map { FileProblem.name(ofUser: $0.st_uid) }
  }
}
