import Glibc

/// A program of this system, run by the shell.
enum SystemProgram {
  /// Blocks until it ends.
  /// - Parameter command: its arguments are harmless, or ``Swift/String/shellWord``s.
  /// - Returns: its exit status, 127 if it cannot be run, and what it has printed on standard output.
  static func run(_ command: String) -> (status: Int32, output: String) {
    guard let stream = popen("\(command) < /dev/null", "re") else { return (127, "") }
    var output: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4096)
    while case let count = fread(&chunk, 1, chunk.count, stream), count > 0 { output += chunk[..<count] }
    let status = pclose(stream)
    return (
      status & 0x7F == 0 ? (status >> 8) & 0xFF : 128 + (status & 0x7F),
      String(decoding: output, as: UTF8.self)
    )
  }
}
