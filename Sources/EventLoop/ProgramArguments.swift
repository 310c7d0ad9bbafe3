import Glibc

/// The program's command-line arguments.
public enum ProgramArguments {
  /// All arguments, the program's name first, as the kernel reports them (proc(5), cmdline); empty if there is no such file.
  ///
  /// Swift's runtime finds them on the stack next to the environment before `main` runs, and finds none if a preloaded
  /// library has replaced the environment by then.
  public static var all: [String] {
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
