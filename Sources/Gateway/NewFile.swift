import Configuration
import EventLoop
import Glibc

/// A file that is complete on the disk before it replaces what is at its path: nobody ever sees a part of it.
struct NewFile {
  let path: String
  private let temporary: String

  /// - Parameter owner: only root may give a file away; nil: this user.
  init(
    at path: String, _ bytes: [UInt8], mode: mode_t, owner: (user: uid_t, group: gid_t)? = nil
  ) throws(CommandFailure) {
    self.path = path
    temporary = "\(path).new-\(getpid())"
    unlink(temporary)
    let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    try Self.check(descriptor >= 0, path)
    defer { close(descriptor) }
    do throws(CommandFailure) {
      var rest = bytes[...]
      while !rest.isEmpty {
        let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
        try Self.check(count > 0, path)
        rest = rest.dropFirst(count)
      }
      if let owner, geteuid() == 0 {
        try Self.check(fchown(descriptor, owner.user, owner.group) == 0, path)
      }
      try Self.check(fchmod(descriptor, mode) == 0, path)
      try Self.check(fsync(descriptor) == 0, path)
    } catch {
      unlink(temporary)
      throw error
    }
  }

  /// A copy of a file, with its mode and owner.
  init(at path: String, copyOf file: String) throws(CommandFailure) {
    let bytes = try? FileProblem.read(file)
    try Self.check(bytes != nil, file)
    let status = FileProblem.status(file) ?? stat()
    try self.init(
      at: path, bytes ?? [], mode: status.st_mode & 0o777, owner: (status.st_uid, status.st_gid))
  }

  /// Puts the file in its place.
  func replace() throws(CommandFailure) {
    try Self.check(rename(temporary, path) == 0, path)
    Folder.synchronize(ConfigurationFile.folder(of: path))
  }

  /// Removes the file, if it is not in its place.
  func discard() { unlink(temporary) }

  /// The folder, or the nearest one above it that exists.
  static func existingFolder(_ folder: String) -> String {
    var folder = folder
    while access(folder, F_OK) != 0, errno == ENOENT || errno == ENOTDIR, folder != "/", folder != "." {
      folder = ConfigurationFile.folder(of: folder)
    }
    return folder
  }

  /// Throws the reason in `errno`, unless a call has succeeded.
  private static func check(_ isDone: Bool, _ path: String) throws(CommandFailure) {
    if isDone { return }
    throw CommandFailure(.refused, "cannot write \(path): \(String(cString: strerror(errno)))")
  }
}
