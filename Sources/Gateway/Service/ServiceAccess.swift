import CLinux
import Configuration
import Glibc

/// What the systemd service can read: what is not hidden from it, by the owners and modes of files.
struct ServiceAccess {
  static let user = ConfigurationFile.serviceUser
  /// The folders that deploy/microbit-gateway.service hides or replaces: `ProtectHome=` and `PrivateTmp=`.
  static let hidden = ["/home", "/root", "/run/user", "/tmp", "/var/tmp"]
  /// systemd gives the user access to them by access control lists.
  private static let credentials = "/run/credentials/"

  private let user: uid_t
  private let groups: Set<gid_t>
  private let hidden: [String]

  /// - Parameter hidden: the folders that the service does not see.
  init(user: uid_t, groups: Set<gid_t>, hidden: [String] = Self.hidden) {
    (self.user, self.groups, self.hidden) = (user, groups, hidden)
  }

  /// Looks up the user of the service; nil: there is none.
  init?() {
    guard let entry = getpwnam(Self.user)?.pointee else { return nil }
    var groups = [gid_t](repeating: 0, count: 64)
    var count = Int32(groups.count)
    guard getgrouplist(entry.pw_name, entry.pw_gid, &groups, &count) >= 0 else { return nil }
    self.init(user: entry.pw_uid, groups: Set(groups.prefix(Int(count))))
  }

  /// Why the service cannot read a file.
  enum Obstacle: Equatable {
    /// The file's owner and mode.
    case file
    /// The file is in a folder that the service may not enter, or does not see.
    case folder
  }

  /// Why the service cannot read the file; nil: it can, as far as this process may know.
  func obstacle(to path: String) -> Obstacle? {
    guard let file = Self.real(path) else { return nil }
    if file.hasPrefix(Self.credentials) { return nil }
    // A link to the file may be hidden as well.
    if [path, file].contains(where: isHidden) { return .folder }
    var folder = ConfigurationFile.folder(of: file)
    while folder != "/" {
      if !has(S_IXUSR, folder) { return .folder }
      folder = ConfigurationFile.folder(of: folder)
    }
    return has(S_IRUSR, file) ? nil : .file
  }

  /// Whether the service can change the file or folder; also if there is none.
  func mayWrite(_ path: String) -> Bool { has(S_IWUSR, path) }

  func isHidden(_ path: String) -> Bool { hidden.contains { "\(path)/".hasPrefix("\($0)/") } }

  /// The path without symbolic links; nil: there is no such file.
  static func real(_ path: String) -> String? {
    guard let real = realpath(path, nil) else { return nil }
    defer { free(real) }
    return String(cString: real)
  }

  /// - Parameter permission: the bit for the owner.
  private func has(_ permission: mode_t, _ path: String) -> Bool {
    // An access control list may give what the mode does not.
    guard let status = FileProblem.status(path), getxattr(path, "system.posix_acl_access", nil, 0) < 0
    else { return true }
    if status.st_uid == user { return status.st_mode & permission != 0 }
    let shift: mode_t = groups.contains(status.st_gid) ? 3 : 6
    return status.st_mode & (permission >> shift) != 0
  }

  /// A command that makes a copy in `folder` that the service can read.
  static func copyCommand(_ path: String, to folder: String) -> String {
    installCommand("-m 600 -o \(user)", path, "\(folder)/")
  }

  /// `install` replaces a link by a copy.
  static func installCommand(_ options: String, _ path: String, _ target: String) -> String {
    "sudo install \(options) \((real(path) ?? path).shellWord) \(target.shellWord)"
  }
}
