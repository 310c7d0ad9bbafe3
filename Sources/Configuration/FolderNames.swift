import Glibc

/// What is in a folder.
package enum FolderNames {
  /// The names of all that is in it, in no order; nil, with the reason in `errno`: it cannot be read.
  package static func all(in path: String) -> [String]? {
    guard let folder = opendir(path) else { return nil }
    defer { closedir(folder) }
    var names: [String] = []
    while let entry = readdir(folder) {
      names.append(
        withUnsafePointer(to: &entry.pointee.d_name) {
          $0.withMemoryRebound(to: CChar.self, capacity: Int(NAME_MAX) + 1) { String(cString: $0) }
        })
    }
    return names
  }
}
