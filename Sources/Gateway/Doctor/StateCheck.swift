import Configuration
import Findings
import Glibc
import Store

/// Whether the gateway can store its state.
struct StateCheck {
  let gateway: GatewayID
  let environment: [String: String]
  var service = StateFolder.service

  /// Fewer bytes do not last.
  private static let least = 50 << 20

  func run() -> [Finding] {
    guard let database = StateFolder.checked(gateway, environment, service: service) else {
      return [
        .fault(
          .state, "there is no state folder: changes will be lost on restart",
          remedy: "set STATE_DIRECTORY, XDG_STATE_HOME or HOME")
      ]
    }
    let path = database.path
    let folder = String(path[..<(path.lastIndex(of: "/") ?? path.endIndex)])
    // A folder that does not exist is created in the nearest one that does.
    var existing = folder
    while access(existing, F_OK) != 0, errno == ENOENT || errno == ENOTDIR,
      let slash = existing.lastIndex(of: "/"),
      existing != "/"
    {
      existing = slash == existing.startIndex ? "/" : String(existing[..<slash])
    }
    let isWritable =
      access(existing, W_OK | X_OK) == 0 && (access(path, F_OK) != 0 || access(path, W_OK) == 0)
    guard isWritable else { return [notWritable(path, existing, folder)] }
    do throws(StoreError) {
      _ = try StateDatabase.sections(path: path, schema: .gateway(gateway))
    } catch {
      return [
        .fault(
          .state, error.description,
          remedy:
            "use the version of microbit-gateway that wrote it, or move the file away: the next start creates a new one"
        )
      ]
    }
    return [space(in: existing, folder)]
  }

  /// - Parameter existing: the state folder, or if there is none, the nearest folder above it.
  private func notWritable(_ path: String, _ existing: String, _ folder: String) -> Finding {
    var status = stat()
    let isThere = stat(existing, &status) == 0
    if isThere, status.st_mode & S_IFMT != S_IFDIR {
      return .fault(
        .state, "\(existing) is not a folder: changes will be lost on restart",
        remedy: "move it away: mv \(existing.shellWord) \("\(existing).old".shellWord)")
    }
    let owner = isThere ? RuntimeFolder.name(ofUser: status.st_uid) : "another user"
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
    let free = Int(clamping: disk.f_bavail) * Int(clamping: disk.f_frsize)
    let shown = "\(free >> 20) MiB are free"
    if free < Self.least {
      return .warning(
        .state, "the disk of \(folder) is nearly full: \(shown)",
        remedy: "free some space: df -h \(existing.shellWord)"
      )
    }
    return .ok(.state, "\(folder) is writable, \(shown)")
  }
}
