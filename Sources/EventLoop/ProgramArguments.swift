import Glibc

/// What the program was started with.
public enum ProgramArguments {
  /// All of them, the program's own name first.
  ///
  /// Swift's runtime finds them on the stack, by way of the environment, before `main` runs. Where a preloaded library
  /// has given the process another environment by then, it finds none; the kernel knows them still.
  public static var all: [String] { CommandLine.arguments.isEmpty ? ofKernel : CommandLine.arguments }

  /// As the kernel has them (proc(5), cmdline); none where there is no such file.
  static var ofKernel: [String] {
    guard let file = fopen("/proc/self/cmdline", "re") else { return [] }
    defer { fclose(file) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4096)
    while true {
      let count = fread(&chunk, 1, chunk.count, file)
      if count == 0 { break }
      bytes += chunk[..<count]
    }
    // Each ends with a null byte, the last one too.
    return bytes.split(separator: 0, omittingEmptySubsequences: false).dropLast()
      .map { String(decoding: $0, as: UTF8.self) }
  }
}
