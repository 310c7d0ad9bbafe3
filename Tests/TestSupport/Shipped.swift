import Glibc

/// Where a file or folder of the repository is.
/// - Parameter name: its path from the root of the repository: `deploy/profiles`.
public func repositoryPath(_ name: String) -> String {
  // This file is Tests/TestSupport/Shipped.swift.
  "/" + #filePath.split(separator: "/").dropLast(3).joined(separator: "/") + "/" + name
}

/// Reads a file of the repository.
/// - Parameter name: its path from the root of the repository: `deploy/config.schema.json`.
public func shipped(_ name: String) throws -> [UInt8] {
  guard let file = fopen(repositoryPath(name), "r") else { throw Failure("no \(name)") }
  defer { fclose(file) }
  var bytes = [UInt8](repeating: 0, count: 1 << 20)
  let count = fread(&bytes, 1, bytes.count, file)
  return Array(bytes[..<count])
}

/// The files of the repository whose names end with `suffix`, by their paths from its root; hidden folders are left
/// out.
/// - Parameter folder: where to look, with its subfolders: `deploy/profiles`; empty for all of the repository.
public func shippedFiles(in folder: String, endingWith suffix: String) throws -> [String] {
  guard let directory = opendir(repositoryPath(folder)) else { throw Failure("no \(folder)") }
  defer { closedir(directory) }
  var files: [String] = []
  while let entry = readdir(directory) {
    let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
      String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    }
    guard !name.hasPrefix(".") else { continue }
    let path = folder.isEmpty ? name : "\(folder)/\(name)"
    if entry.pointee.d_type == UInt8(DT_DIR) {
      files += try shippedFiles(in: path, endingWith: suffix)
    } else if name.hasSuffix(suffix) {
      files.append(path)
    }
  }
  return files.sorted()
}
