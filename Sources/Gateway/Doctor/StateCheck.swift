import Configuration
import EventLoop
import Findings
import Glibc
import Store

/// Whether the gateway can store its state.
struct StateCheck {
  let gateway: GatewayID
  let environment: [String: String]
  var service = StateFolder.service
  /// What the user of the service may use; nil: there is no service.
  var serviceAccess = ServiceAccess()
  /// The user of the process.
  var user = geteuid()

  /// Fewer bytes do not last.
  var least = 50 << 20

  func run() -> [Finding] {
    guard let database = StateFolder.databaseToRead(gateway, environment, service: service) else {
      return [
        .fault(
          .state, "there is no state folder: changes will be lost on restart",
          remedy: "set STATE_DIRECTORY, XDG_STATE_HOME or HOME to an absolute path")
      ]
    }
    // Root without a database of its own asks about the service, which has none yet either.
    let isService = user == 0 && serviceAccess != nil && environment["STATE_DIRECTORY"] == nil
    let path = isService && !database.isThere ? "\(service)/\(gateway).db" : database.path
    let folder = ConfigurationFile.folder(of: path)
    // A folder that does not exist is created in the nearest one that does.
    let existing = NewFile.existingFolder(folder)
    if existing == folder, let finding = serviceMayNotWrite(path, folder) { return [finding] }
    let isWritable =
      access(existing, W_OK | X_OK) == 0 && (access(path, F_OK) != 0 || access(path, W_OK) == 0)
    guard isWritable else { return [notWritable(path, existing, folder)] }
    do throws(StoreError) {
      _ = try StateDatabase.sections(path: path)
    } catch {
      return [
        .fault(
          .state, error.description,
          remedy:
            "use the version of microbit-gateway that wrote it, or move the file away: the next start creates a new one"
        )
      ]
    }
    guard isService, folder != service else { return [space(in: existing, folder)] }
    return [
      space(in: existing, folder),
      .warning(
        .state,
        "\(folder) is that of a gateway started by \(FileProblem.name(ofUser: user)), not that of the service",
        remedy: "to check that one: sudo STATE_DIRECTORY=\(service) microbit-gateway doctor; "
          + "to delete this one: sudo rm -r \(folder.shellWord)"),
    ]
  }

  /// Whether the disk is nearly full; the rest is known to the running gateway.
  func space() -> [Finding] {
    guard let database = StateFolder.databaseToRead(gateway, environment, service: service) else { return [] }
    let folder = ConfigurationFile.folder(of: database.path)
    return [space(in: NewFile.existingFolder(folder), folder)].filter { $0.level != .ok }
  }

  /// Root may write everything, the service may not.
  private func serviceMayNotWrite(_ path: String, _ folder: String) -> Finding? {
    guard folder == service, user == 0, let serviceAccess,
      let closed = [folder, path, path + ".lock"].first(where: { !serviceAccess.mayWrite($0) })
    else { return nil }
    let effect = closed == path ? "it waits until it may" : "changes will be lost on restart"
    return .fault(
      .state, "the service, which runs as \(ServiceAccess.user), may not write \(closed): \(effect)",
      remedy: "sudo chown -R \(ServiceAccess.user): \(folder.shellWord)")
  }

  /// - Parameter existing: the state folder, or if there is none, the nearest folder above it.
  private func notWritable(_ path: String, _ existing: String, _ folder: String) -> Finding {
    if user != 0, folder != service, serviceAccess != nil, environment["STATE_DIRECTORY"] == nil {
      return .warning(
        .state,
        "you cannot write \(folder), where a gateway that you start yourself would store its state; the service's own "
          + "was not checked",
        remedy: "sudo microbit-gateway doctor")
    }
    let status = FileProblem.status(existing)
    if let status, status.st_mode & S_IFMT != S_IFDIR {
      return .fault(
        .state, "\(existing) is not a folder: changes will be lost on restart",
        remedy: "move it away: mv \(existing.shellWord) \("\(existing).old".shellWord)")
    }
    let owner = status.map { FileProblem.name(ofUser: $0.st_uid) } ?? "another user"
    if folder == service {
      return .warning(
        .state, "\(folder) belongs to the service (\(owner)), and cannot be checked by you",
        remedy: "sudo STATE_DIRECTORY=\(service) microbit-gateway doctor")
    }
    guard existing == folder else {
      return .fault(
        .state, "cannot create \(folder): changes will be lost on restart",
        remedy: "set STATE_DIRECTORY to a folder that you may write")
    }
    let item = access(path, F_OK) == 0 ? path : folder
    return .fault(
      .state, "cannot write \(item), which belongs to \(owner): changes will be lost on restart",
      remedy: "sudo chown -R $USER \(folder.shellWord); chmod -R u+rwX \(folder.shellWord)")
  }

  private func space(in existing: String, _ folder: String) -> Finding {
    var disk = statvfs()
    guard statvfs(existing, &disk) == 0 else { return .ok(.state, "\(folder) is writable") }
    let free = Folder.free(on: disk)
    let shown = "\(free >> 20) MiB are free"
    if free < least {
      return .warning(
        .state, "the disk of \(folder) is nearly full: \(shown)",
        remedy: "free some space: df -h \(existing.shellWord)")
    }
    return .ok(.state, "\(folder) is writable, \(shown)")
  }
}
