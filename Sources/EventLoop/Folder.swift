import Glibc

/// Calls for folders and small files. All of them block.
package enum Folder {
  /// Makes the folder, with those above it.
  /// - Parameter mode: for this user alone by default, as the XDG Base Directory Specification requires.
  /// - Returns: the folder that could not be made, with the reason in `errno`; nil: all exist now.
  @discardableResult
  package static func make(_ path: String, mode: mode_t = 0o700) -> String? {
    for end in path.indices.dropFirst() + [path.endIndex] where end == path.endIndex || path[end] == "/" {
      let folder = String(path[..<end])
      guard mkdir(folder, mode) != 0 else { continue }
      // Existing folders are fine, although a read-only file system reports EROFS rather than EEXIST.
      let reason = errno
      guard access(folder, F_OK) != 0 else { continue }
      errno = reason
      return folder
    }
    return nil
  }

  /// The bytes of a disk that are free; file systems over a network report any number.
  package static func free(on disk: statvfs) -> Int {
    let (bytes, overflow) = UInt64(disk.f_bavail).multipliedReportingOverflow(by: UInt64(disk.f_frsize))
    return overflow ? .max : Int(clamping: bytes)
  }

  /// The paths that match a pattern (glob(7)), in order.
  package static func matches(_ pattern: String) -> [String] {
    var found = glob_t()
    defer { globfree(&found) }
    guard glob(pattern, 0, nil, &found) == 0 else { return [] }
    return (0..<Int(found.gl_pathc)).compactMap { found.gl_pathv[$0].map { String(cString: $0) } }
  }

  /// The content of a file, such as those of proc(5); nil: it cannot be opened.
  package static func content(ofFile path: String) -> [UInt8]? {
    guard let file = fopen(path, "re") else { return nil }
    defer { fclose(file) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4096)
    while true {
      let count = fread(&chunk, 1, chunk.count, file)
      if count == 0 { return bytes }
      bytes += chunk[..<count]
    }
  }

  /// Makes the names of its files durable.
  package static func synchronize(_ path: String) {
    let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    fsync(descriptor)
    close(descriptor)
  }
}
