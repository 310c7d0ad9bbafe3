import Glibc

/// The gateway's systemd service, seen and started by systemctl.
struct ServiceUnit: Sendable {
  enum State: Equatable, Sendable {
    /// No systemd, or the service is not installed.
    case absent
    case stopped
    case running
  }

  static let name = "microbit-gateway.service"

  /// Exists while systemd is the init system (sd_booted(3)).
  var bootFolder = "/run/systemd/system"
  var program = "systemctl"

  /// Blocks until systemctl answers.
  var state: State {
    guard access(bootFolder, F_OK) == 0, run("cat") == 0 else { return .absent }
    return run("is-active --quiet") == 0 ? .running : .stopped
  }

  /// Blocks until the service is ready or has failed.
  /// - Returns: whether it is ready.
  func start(again: Bool) -> Bool { run(again ? "restart" : "enable --now") == 0 }

  private func run(_ arguments: String) -> Int32 {
    SystemProgram.run("\(program.shellWord) \(arguments) \(Self.name)").status
  }
}
