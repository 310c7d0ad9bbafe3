import Glibc

/// Where the gateway keeps what it has to remember.
enum StateFolder {
  /// systemd's `StateDirectory=` by `$STATE_DIRECTORY`, else the user's by the XDG Base Directory Specification;
  /// nil when the environment names neither of them, nor a home.
  static func path(_ environment: [String: String]) -> String? {
    // For several StateDirectory= systemd names them all, separated by colons: the first is ours.
    if let first = environment["STATE_DIRECTORY"]?.split(separator: ":").first, isAbsolute(first) {
      return String(first)
    }
    // A relative path is to be ignored, says the specification.
    if let state = environment["XDG_STATE_HOME"], isAbsolute(state) {
      return below(state, "microbit-gateway")
    }
    if let home = environment["HOME"], isAbsolute(home) {
      return below(home, ".local/state/microbit-gateway")
    }
    return nil
  }

  /// The state database of a gateway; nil when there is no folder for it.
  static func database(of gateway: GatewayID, _ environment: [String: String]) -> String? {
    path(environment).map { below($0, "\(gateway).db") }
  }

  /// What this process was started with, as far as it is about the folder.
  static var environment: [String: String] {
    var environment: [String: String] = [:]
    for name in ["STATE_DIRECTORY", "XDG_STATE_HOME", "HOME"] {
      if let value = getenv(name) { environment[name] = String(cString: value) }
    }
    return environment
  }

  private static func isAbsolute(_ path: some StringProtocol) -> Bool { path.utf8.first == UInt8(ascii: "/") }

  private static func below(_ folder: String, _ name: String) -> String {
    folder.hasSuffix("/") ? folder + name : "\(folder)/\(name)"
  }
}
