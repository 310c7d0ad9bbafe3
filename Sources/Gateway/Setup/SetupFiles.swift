import Configuration
import Glibc

/// Writes what `init` has found out: each file beside its place, then renamed, so that a gateway or an interruption
/// never sees a part of it.
struct SetupFiles: Sendable {
  /// The configuration of the service; its password file belongs to the service's user.
  static let serviceConfiguration = "/etc/microbit-gateway/config.json"

  let path: String
  var serviceConfiguration = Self.serviceConfiguration
  var serviceUser = ServiceAccess.user

  private var folder: String { ConfigurationFile.folder(of: path) }

  /// Why nothing can be written there; nil: it probably can.
  var problem: String? {
    // The first folder that exists: those below it are created.
    var folder = folder
    while access(folder + "/.", F_OK) != 0, errno == ENOENT, folder != "/", folder != "." {
      folder = ConfigurationFile.folder(of: folder)
    }
    guard access(folder + "/.", W_OK) == 0 else {
      let reason = String(cString: strerror(errno))
      let hint = errno == EACCES ? ": use sudo, or name another file with --config" : ""
      return "cannot write \(path): \(reason)\(hint)"
    }
    return nil
  }

  /// Writes all of it or nothing.
  /// - Parameter backup: the name of the copy of the present config.json.
  /// - Returns: what the user should know.
  func write(_ plan: SetupPlan, backup: String) throws(CommandFailure) -> [String] {
    createFolder(folder)
    var notes: [String] = []
    var new: [(temporary: String, path: String)] = []
    /// Undone, in this order, if a later step fails.
    var undo: [() -> Void] = []
    do throws(SystemFailure) {
      if let password = plan.password {
        let file = "\(folder)/\(plan.passwordFile)"
        let owner = passwordOwner(file, &notes)
        new.append((try create(file, password, mode: 0o600, owner), file))
      }
      if let text = plan.text {
        let present = Status(path)
        if let present {
          let bytes = try read(path)
          let copy = "\(folder)/\(backup)"
          let temporary = try create(copy, bytes, mode: present.mode, present.owner)
          try SystemFailure.check(rename(temporary, copy), copy)
          undo.append { unlink(copy) }
        }
        new.append(
          (try create(path, Array(text.utf8), mode: present?.mode ?? 0o644, present?.owner), path))
      }
      for (index, file) in new.enumerated() {
        // The password is replaced first; its old content returns if config.json cannot be replaced.
        let status = Status(file.path)
        let old = index + 1 < new.count && status != nil ? try read(file.path) : nil
        try SystemFailure.check(rename(file.temporary, file.path), file.path)
        undo.append {
          if let old, let status {
            if let copy = try? create(file.path, old, mode: status.mode, status.owner) {
              rename(copy, file.path)
            }
          } else {
            unlink(file.path)
          }
        }
      }
    } catch {
      for step in undo.reversed() { step() }
      for file in new { unlink(file.temporary) }
      throw CommandFailure(.refused, "cannot write \(error.path): \(error.reason). Nothing was changed.")
    }
    removeOldBackups()
    synchronize(folder)
    return notes
  }

  /// The newest copies of earlier files that are kept.
  private static let mostBackups = 3

  private func removeOldBackups() {
    let name = path.split(separator: "/").last ?? ""
    let backups = RuntimeFolder.names(in: folder).filter { $0.hasPrefix("\(name).bak-") }.sorted()
    for old in backups.dropLast(Self.mostBackups) { unlink("\(folder)/\(old)") }
  }

  /// The user of the service, for the service's configuration; else who has it now.
  private func passwordOwner(_ file: String, _ notes: inout [String]) -> Owner? {
    guard geteuid() == 0, path == serviceConfiguration else { return Status(file)?.owner }
    if let entry = getpwnam(serviceUser) {
      return Owner(user: entry.pointee.pw_uid, group: entry.pointee.pw_gid)
    }
    notes.append(
      "there is no user \(serviceUser) yet: when there is, sudo chown \(serviceUser) \(file.shellWord)")
    return nil
  }

  // MARK: Files

  private struct Owner {
    let user: uid_t
    let group: gid_t
  }

  private struct Status {
    let mode: mode_t
    let owner: Owner

    /// Nil: there is no such file.
    init?(_ path: String) {
      var status = stat()
      guard stat(path, &status) == 0 else { return nil }
      mode = status.st_mode & 0o777
      owner = Owner(user: status.st_uid, group: status.st_gid)
    }
  }

  private struct SystemFailure: Error {
    let path: String
    let reason: String

    init(_ path: String) {
      self.path = path
      reason = String(cString: strerror(errno))
    }

    static func check(_ result: Int32, _ path: String) throws(SystemFailure) {
      if result != 0 { throw SystemFailure(path) }
    }
  }

  /// A new file beside `path`, written to the disk.
  private func create(
    _ path: String, _ bytes: [UInt8], mode: mode_t, _ owner: Owner?
  ) throws(SystemFailure) -> String {
    let temporary = "\(path).new-\(getpid())"
    unlink(temporary)
    let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw SystemFailure(path) }
    defer { close(descriptor) }
    do throws(SystemFailure) {
      var rest = bytes[...]
      while !rest.isEmpty {
        let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
        guard count > 0 else { throw SystemFailure(path) }
        rest = rest.dropFirst(count)
      }
      // Only root may give a file away.
      if let owner, geteuid() == 0 {
        try SystemFailure.check(fchown(descriptor, owner.user, owner.group), path)
      }
      try SystemFailure.check(fchmod(descriptor, mode), path)
      try SystemFailure.check(fsync(descriptor), path)
    } catch {
      unlink(temporary)
      throw error
    }
    return temporary
  }

  private func read(_ path: String) throws(SystemFailure) -> [UInt8] {
    do throws(FileProblem) {
      return try FileProblem.read(path, limit: 1 << 20)
    } catch {
      throw SystemFailure(path)
    }
  }

  private func createFolder(_ folder: String) {
    guard access(folder, F_OK) != 0, folder != "/" else { return }
    createFolder(ConfigurationFile.folder(of: folder))
    // A failure shows when a file is created in it.
    mkdir(folder, 0o755)
  }

  /// Writes the names of the files to the disk.
  private func synchronize(_ folder: String) {
    let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    fsync(descriptor)
    close(descriptor)
  }
}
