import CLinux
import Configuration
import Findings
import Glibc

/// What the user of the systemd service may read, by the owners and modes of files.
struct ServiceAccess {
  static let user = "microbit-gateway"
  /// The service does not see them (`ProtectHome=` of deploy/microbit-gateway.service).
  private static let hidden = ["/home/", "/root/", "/run/user/"]
  /// systemd gives the user access to them by access control lists.
  private static let credentials = "/run/credentials/"

  private let user: uid_t
  private let groups: Set<gid_t>

  /// For tests.
  init(user: uid_t, groups: Set<gid_t>) { (self.user, self.groups) = (user, groups) }

  /// Nil: there is no such user.
  init?() {
    guard let entry = getpwnam(Self.user)?.pointee else { return nil }
    var groups = [gid_t](repeating: 0, count: 64)
    var count = Int32(groups.count)
    guard getgrouplist(entry.pw_name, entry.pw_gid, &groups, &count) >= 0 else { return nil }
    self.init(user: entry.pw_uid, groups: Set(groups.prefix(Int(count))))
  }

  /// Why the service cannot read a file.
  enum Obstacle: Equatable {
    /// Its owner and mode.
    case file
    /// It is in a folder that the service may not enter, or does not see.
    case folder
  }

  /// Nil: it can, as far as this process may know.
  func obstacle(to path: String) -> Obstacle? {
    guard let real = realpath(path, nil) else { return nil }
    defer { free(real) }
    let file = String(cString: real)
    if file.hasPrefix(Self.credentials) { return nil }
    if Self.hidden.contains(where: file.hasPrefix) { return .folder }
    var folder = ConfigurationFile.folder(of: file)
    while folder != "/" {
      if !has(S_IXUSR, folder) { return .folder }
      folder = ConfigurationFile.folder(of: folder)
    }
    return has(S_IRUSR, file) ? nil : .file
  }

  /// - Parameter permission: the bit for the owner.
  private func has(_ permission: mode_t, _ path: String) -> Bool {
    var status = stat()
    // An access control list may give what the mode does not.
    guard stat(path, &status) == 0, getxattr(path, "system.posix_acl_access", nil, 0) < 0 else { return true }
    if status.st_uid == user { return status.st_mode & permission != 0 }
    let shift: mode_t = groups.contains(status.st_gid) ? 3 : 6
    return status.st_mode & (permission >> shift) != 0
  }

  /// A command that makes a readable copy beside config.json.
  static func copyCommand(_ path: String) -> String {
    "sudo install -m 600 -o \(user) \(path) \(ConfigurationFile.folder(of: SetupFiles.serviceConfiguration))/"
  }

  /// What the service cannot read of its configuration: config.json, and the files that it names.
  func findings(_ file: ConfigurationFile) -> [Finding] {
    let mqtt = file.configuration.mqtt
    let named = [
      ("mqtt.password_file", mqtt.passwordFile), ("mqtt.tls.ca_file", mqtt.tls?.caFile),
      ("mqtt.tls.cert_file", mqtt.tls?.certFile), ("mqtt.tls.key_file", mqtt.tls?.keyFile),
    ]
    return [finding(file.path, remedy: "sudo chmod 644 \(file.path)")].compactMap { $0 }
      + named.compactMap { key, path in
        guard let path else { return nil }
        return finding(
          path, remedy: "sudo chown \(Self.user) \(path); sudo chmod 600 \(path)",
          copy: "\(Self.copyCommand(path)); then name the copy in \(key)")
      }
  }

  private func finding(_ path: String, remedy: String, copy: String? = nil) -> Finding? {
    guard let obstacle = obstacle(to: path) else { return nil }
    return .fault(
      .configuration, "the service, which runs as \(Self.user), may not read \(path)",
      remedy: obstacle == .folder
        ? copy ?? "sudo chmod 755 \(ConfigurationFile.folder(of: path)); \(remedy)" : remedy)
  }
}
