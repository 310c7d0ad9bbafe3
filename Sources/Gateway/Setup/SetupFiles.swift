import Configuration
import EventLoop
import Glibc
import Log

/// Writes what `init` has found out: all of its files or none.
struct SetupFiles: Sendable {
  /// The configuration, by the name that the gateway uses: files with passwords are beside it.
  let path: String
  /// The configuration of the service; its files with passwords belong to the service's user.
  var serviceConfiguration = ConfigurationFile.service
  var serviceUser = ServiceAccess.user

  /// Whether the service uses the configuration.
  var isOfService: Bool { path == serviceConfiguration && geteuid() == 0 }
  private var folder: String { ConfigurationFile.folder(of: path) }
  /// The file itself: a link is followed, so that the file is replaced and not the link.
  private var target: String { ServiceAccess.real(path) ?? path }

  /// Why nothing can be written there; nil: it probably can.
  var problem: String? {
    let folders = Set([folder, ConfigurationFile.folder(of: target)].map(NewFile.existingFolder))
    if folders.allSatisfy({ access($0 + "/.", W_OK) == 0 }) { return nil }
    let reason = String(cString: strerror(errno))
    return "cannot write \(path): \(reason)"
      + (errno == EACCES ? ": use sudo, or name another file with --config" : "")
  }

  /// The name of a copy that is made now, `config.json.bak-20260102T030405Z`.
  var newBackup: String { Self.backups(of: target) + Timestamp.now.compact }

  /// What the names of all copies begin with.
  private static func backups(of file: String) -> String {
    "\(file.split(separator: "/").last ?? "config.json").bak-"
  }

  /// - Parameter backup: the name of the copy of the present config.json.
  /// - Returns: what the user should know.
  func write(_ plan: SetupPlan, backup: String) throws(CommandFailure) -> [String] {
    Folder.make(folder, mode: 0o755)
    let (path, present) = (target, FileProblem.status(path))
    let backup = "\(ConfigurationFile.folder(of: path))/\(backup)"
    var notes: [String] = []
    // The files in the order in which they get their places.
    var new: [NewFile] = []
    var isReplaced = false
    do throws(CommandFailure) {
      if plan.text != nil, present != nil { new.append(try NewFile(at: backup, copyOf: path)) }
      if let text = plan.text {
        let mode = present.map { $0.st_mode & 0o777 } ?? 0o644
        let owner = present.map { ($0.st_uid, $0.st_gid) }
        new.append(try NewFile(at: path, Array(text.utf8), mode: mode, owner: owner))
      }
      for (name, secret) in plan.secrets.sorted(by: { $0.key < $1.key }) {
        let file = "\(folder)/\(name)"
        new.append(try NewFile(at: file, secret, mode: 0o600, owner: secretOwner(file, &notes)))
      }
      for file in new {
        try file.replace()
        if file.path == path { isReplaced = true }
      }
    } catch {
      for file in new { file.discard() }
      switch (isReplaced, present) {
      case (true, nil): unlink(path)
      case (true, _?): rename(backup, path)
      case (false, _): unlink(backup)
      }
      throw CommandFailure(error.status, "\(error.text). Nothing was changed.")
    }
    removeOldBackups(of: path)
    return notes
  }

  /// The three newest stay, and what the user calls by other names.
  private func removeOldBackups(of file: String) {
    let (folder, prefix) = (ConfigurationFile.folder(of: file), Self.backups(of: file))
    let backups = (FolderNames.all(in: folder) ?? []).filter { name in
      guard name.hasPrefix(prefix) else { return false }
      let time = name.dropFirst(prefix.count)
      return time.count == Timestamp.now.compact.count && time.allSatisfy { "0123456789TZ".contains($0) }
    }
    for old in backups.sorted().dropLast(3) { unlink("\(folder)/\(old)") }
  }

  /// The user of the service, for the service's configuration; else who has it now.
  private func secretOwner(_ file: String, _ notes: inout [String]) -> (uid_t, gid_t)? {
    guard isOfService else { return FileProblem.status(file).map { ($0.st_uid, $0.st_gid) } }
    if let entry = getpwnam(serviceUser) { return (entry.pointee.pw_uid, entry.pointee.pw_gid) }
    notes.append(
      "there is no user \(serviceUser) yet: when there is, sudo chown \(serviceUser) \(file.shellWord)")
    return nil
  }
}
