import EventLoop
import Glibc

/// An option of a program whose command line sets `Arguments`.
public struct ProgramOption<Arguments>: Sendable {
  let takesValue: Bool
  /// Throws why the value cannot be used.
  let apply: @Sendable (inout Arguments, String) throws -> Void

  /// An option with a value.
  public static func value(_ apply: @escaping @Sendable (inout Arguments, String) throws -> Void) -> Self {
    Self(takesValue: true, apply: apply)
  }

  /// An option without one.
  public static func flag(_ apply: @escaping @Sendable (inout Arguments) -> Void) -> Self {
    Self(takesValue: false) { arguments, _ in apply(&arguments) }
  }

  /// Applies a command line, in its order; `--help` and `--version` end the program.
  /// - Parameters:
  ///   - line: the program's own name first.
  ///   - options: by their names.
  public static func apply(
    _ line: [String], _ options: [String: Self], to arguments: inout Arguments, program: String, help: String
  ) throws(CommandLineError) {
    let takesValue = options.mapValues(\.takesValue).merging(["help": false, "version": false]) { $1 }
    let line = try CommandLineOptions(line, takesValue)
    for (name, value) in line.options {
      switch name {
      case "help", "version":
        print(name == "help" ? help : "\(program) \(Version.current)\n", terminator: "")
        exit(0)
      default:
        do {
          try options[name]?.apply(&arguments, value)
        } catch {
          throw CommandLineError("--\(name): \(error)")
        }
      }
    }
    if let word = line.words.first { throw CommandLineError("unexpected argument: \(word)") }
  }
}

/// What `read` makes of the command line; if that is wrong, the program says so, and ends.
package func readCommandLine<Arguments>(
  of program: String, _ read: ([String]) throws(CommandLineError) -> Arguments
) -> Arguments {
  do throws(CommandLineError) {
    return try read(ProgramArguments.all)
  } catch {
    printError("\(error)\nTry '\(program) --help'.", of: program)
    // EX_USAGE of sysexits.h.
    exit(64)
  }
}

/// Writes a line to standard error.
package func printError(_ text: String, of program: String) {
  let line = "\(program): \(text)\n"
  _ = write(STDERR_FILENO, line, line.utf8.count)
}
