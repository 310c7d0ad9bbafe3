import Glibc

/// Why a file cannot be read.
package struct FileProblem: Error, CustomStringConvertible {
  /// What is wrong, for a person.
  package let description: String
  package private(set) var isMissing = false
  /// Whether this user has no permission.
  private(set) var isDenied = false

  package init(_ description: String) { self.description = description }

  /// Makes a problem of `errno`.
  init() {
    let code = errno
    description = String(cString: strerror(code))
    isMissing = code == ENOENT
    isDenied = code == EACCES
  }

  /// The whole file, which is no longer than `limit` bytes.
  ///
  /// A named pipe or a device could be waited for without an end, and is refused. What the caller has opened, and names as
  /// a file, may be one: `--config /dev/stdin`, or `--config <(…)` of a shell.
  /// - Parameter followsLink: whether `path` itself may be a symbolic link.
  package static func read(
    _ path: String, limit: Int = 1 << 20, followsLink: Bool = true
  ) throws(FileProblem) -> [UInt8] {
    // With O_NONBLOCK, open(2) does not wait for a writer.
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | (followsLink ? 0 : O_NOFOLLOW))
    guard descriptor >= 0 else { throw FileProblem() }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw FileProblem() }
    // read(2) names the problem of a folder.
    if ![S_IFREG, S_IFDIR].contains(status.st_mode & S_IFMT) {
      let isOpenedByCaller =
        path == "/dev/stdin" || ["/dev/fd/", "/proc/self/fd/"].contains(where: path.hasPrefix)
      guard isOpenedByCaller else { throw FileProblem("it is a pipe or a device, not a file") }
      _ = fcntl(descriptor, F_SETFL, 0)
    }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 64 << 10)
    while true {
      let count = Glibc.read(descriptor, &chunk, chunk.count)
      if count == 0 { return bytes }
      guard count > 0 else { throw FileProblem() }
      bytes += chunk[..<count]
      // Devices and pipes have no length.
      guard bytes.count <= limit else { throw FileProblem("it is longer than \(limit >> 20) MiB") }
    }
  }

  /// Why root must not take a file of the folder that it happens to be in: another user could have put it there, to send a
  /// password of this machine elsewhere, or can exchange it. Nil for other users, and if there is no such file.
  static func distrust(_ path: String) -> String? {
    var status = stat()
    guard geteuid() == 0, lstat(path, &status) == 0 else { return nil }
    for (place, name) in [(path, "it"), (ConfigurationFile.folder(of: path), "its folder")] {
      guard lstat(place, &status) == 0 else { continue }
      if status.st_uid != 0 { return "\(name) belongs to \(self.name(ofUser: status.st_uid))" }
      if status.st_mode & (S_IWGRP | S_IWOTH) != 0 { return "other users can write to \(name)" }
    }
    return nil
  }

  /// The status of a file; nil: there is none.
  package static func status(_ path: String) -> stat? {
    var status = stat()
    return stat(path, &status) == 0 ? status : nil
  }

  package static func name(ofUser id: uid_t) -> String {
    getpwuid(id).map { String(cString: $0.pointee.pw_name) } ?? "user \(id)"
  }

  static func isFolder(_ path: String) -> Bool { (status(path)?.st_mode ?? 0) & S_IFMT == S_IFDIR }
  static func isReadableByAll(_ path: String) -> Bool { (status(path)?.st_mode ?? 0) & S_IROTH != 0 }
}

extension String {
  /// A file's name as it stands in a file of `folder`: absolute, or relative to that.
  package func resolved(in folder: String) -> String { hasPrefix("/") ? self : "\(folder)/\(self)" }
}
