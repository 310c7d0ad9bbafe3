import Glibc

/// Why a file cannot be read.
package struct FileProblem: Error, CustomStringConvertible {
  /// For a person.
  package let description: String
  package private(set) var isMissing = false

  package init(_ description: String) {
    self.description = description
  }

  /// Of `errno`.
  init() {
    let code = errno
    description = String(cString: strerror(code))
    isMissing = code == ENOENT
  }

  /// The whole file, which is no longer than `limit` bytes.
  package static func read(_ path: String, limit: Int) throws(FileProblem) -> [UInt8] {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw FileProblem() }
    defer { close(descriptor) }
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

  static func isFolder(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
  }

  static func isReadableByAll(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & S_IROTH != 0
  }
}

extension String {
  /// A file's name as it stands in a file of `folder`: absolute, or relative to that.
  package func resolved(in folder: String) -> String { hasPrefix("/") ? self : "\(folder)/\(self)" }
}
