import EventLoop
import Glibc

/// A file with the alias that an adapter had before it got a peripheral's name. bluetoothd keeps the alias, so it must be
/// restored even if this program was killed.
struct AliasFile {
  /// The path; nil: there is no folder for the file, and the alias is only kept in memory.
  let path: String?

  /// - Parameter folder: created, with the folders above it.
  init(of adapter: String, in folder: String?) {
    path = folder.map { "\($0)/\(adapter).alias" }
    if let folder { Folder.make(folder) }
  }

  /// The alias before; nil if none is stored, or if the adapter no longer has the peripheral's name: then somebody else
  /// has changed it.
  func original(ifNow alias: String) -> String? {
    guard let path, let bytes = Folder.content(ofFile: path) else { return nil }
    let lines = String(decoding: bytes, as: UTF8.self)
      .split(separator: "\n", omittingEmptySubsequences: false)
    return lines.count > 1 && lines[1] == alias ? String(lines[0]) : nil
  }

  func store(_ original: String, replacedBy alias: String) {
    guard let path, let file = fopen(path, "w") else { return }
    fputs("\(original)\n\(alias)\n", file)
    fclose(file)
  }

  func remove() { if let path { unlink(path) } }
}
