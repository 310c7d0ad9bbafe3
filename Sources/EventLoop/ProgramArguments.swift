import Glibc

/// The program's command-line arguments.
public enum ProgramArguments {
  /// All arguments, the program's name first.
  ///
  /// Swift's runtime finds them on the stack next to the environment before `main` runs, and finds none if a preloaded
  /// library has replaced the environment by then: read them from the kernel in that case.
  public static var all: [String] { CommandLine.arguments.isEmpty ? ofKernel : CommandLine.arguments }

  /// The arguments as the kernel reports them (proc(5), cmdline); empty if there is no such file.
  static var ofKernel: [String] {
    let bytes = Folder.content(ofFile: "/proc/self/cmdline") ?? []
    // Every argument ends with a NUL, including the last.
    return bytes.split(separator: 0, omittingEmptySubsequences: false).dropLast()
      .map { String(decoding: $0, as: UTF8.self) }
  }

  /// Replaces the process by the same program with the same arguments. Returns if that is not possible.
  public static func startAgain() {
    let arguments = all.map { strdup($0) } + [nil]
    execv("/proc/self/exe", arguments)
  }
}
