import CLinux
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
    guard access(bootFolder, F_OK) == 0, run(["cat", Self.name]) == 0 else { return .absent }
    return run(["is-active", "--quiet", Self.name]) == 0 ? .running : .stopped
  }

  /// Blocks until the service is ready or has failed.
  /// - Returns: whether it is ready.
  func start(again: Bool) -> Bool {
    guard again else { return run(["enable", "--now", Self.name]) == 0 }
    return run(["restart", Self.name]) == 0
  }

  /// The exit status; 127 if it cannot be run.
  private func run(_ arguments: [String]) -> Int32 {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    for descriptor in [STDIN_FILENO, STDOUT_FILENO] {
      posix_spawn_file_actions_addopen(&actions, descriptor, "/dev/null", O_RDWR, 0)
    }
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    // This process has blocked signals.
    var none = sigset_t()
    sigemptyset(&none)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
    defer {
      posix_spawn_file_actions_destroy(&actions)
      posix_spawnattr_destroy(&attributes)
    }
    var argv = ([program] + arguments).map { strdup($0) } + [nil]
    defer { for pointer in argv { free(pointer) } }
    var pid = pid_t()
    guard posix_spawnp(&pid, program, &actions, &attributes, &argv, environ) == 0 else { return 127 }
    var status: Int32 = 0
    while waitpid(pid, &status, 0) < 0 { guard errno == EINTR else { return 127 } }
    return status & 0x7F == 0 ? (status >> 8) & 0xFF : 128 + (status & 0x7F)
  }
}
