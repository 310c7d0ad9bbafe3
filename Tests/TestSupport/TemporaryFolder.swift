import Glibc

/// A folder that is removed, with what is in it, when the object goes.
public final class TemporaryFolder: Sendable {
  /// Absolute, without a slash at the end.
  public let path: String

  /// An empty one in `parent`, that nobody else may enter.
  public init(in parent: String = "/tmp") throws {
    var template = Array("\(parent)/microbit-gateway-test.XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw Failure("mkdtemp: errno \(errno)") }
    path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
  }

  deinit {
    _ = try? ChildProcess("/bin/rm", ["-rf", path]).waitForExit()
  }

  /// Writes a file into the folder; returns its path.
  @discardableResult
  public func write(_ text: String, to name: String) throws -> String {
    try write(Array(text.utf8), to: name)
  }

  /// Writes `bytes` into a file of the folder, in place of what it held; returns its path.
  @discardableResult
  public func write(_ bytes: [UInt8], to name: String) throws -> String {
    let file = path + "/" + name
    guard let stream = fopen(file, "w") else { throw Failure("\(file): errno \(errno)") }
    defer { fclose(stream) }
    guard fwrite(bytes, 1, bytes.count, stream) == bytes.count else { throw Failure("\(file): short write") }
    return file
  }

  /// Writes a shell script that can be executed; returns its path.
  ///
  /// Another process writes it: the kernel executes no file that is open for writing (ETXTBSY), as it would be in a
  /// program that another test starts at this moment.
  public func script(_ text: String, named name: String) throws -> String {
    let source = try write("#!/bin/sh\n" + text, to: name + ".sh")
    let program = path + "/" + name
    try ChildProcess("/usr/bin/install", ["-m", "755", source, program]).waitForExit()
    return program
  }
}

/// The names in a folder, sorted.
public func names(in folder: String) throws -> [String] {
  guard let directory = opendir(folder) else { throw Failure("\(folder): errno \(errno)") }
  defer { closedir(directory) }
  var names: [String] = []
  while let entry = readdir(directory) {
    let name = withUnsafePointer(to: &entry.pointee.d_name) {
      $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
    }
    if name != ".", name != ".." { names.append(name) }
  }
  return names.sorted()
}

/// Something that a test needed did not happen.
public struct Failure: Error, CustomStringConvertible {
  /// What did not happen, for the person who reads the report.
  public let description: String
  /// What failed has to be said in words: there is no code to look up.
  public init(_ description: String) { self.description = description }
}
