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
