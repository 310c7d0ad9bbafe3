import EventLoop

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

  /// Applies a command line, in its order; `--help` and `--version` end it.
  /// - Parameters:
  ///   - line: the program's own name first.
  ///   - options: by their names.
  /// - Returns: what is printed instead of running the program, if anything.
  public static func apply(
    _ line: [String], _ options: [String: Self], to arguments: inout Arguments, program: String, help: String
  ) throws(CommandLineError) -> String? {
    let takesValue = options.mapValues(\.takesValue).merging(["help": false, "version": false]) { $1 }
    let line = try CommandLineOptions(line, takesValue)
    for (name, value) in line.options {
      switch name {
      case "help": return help
      case "version": return "\(program) \(Version.current)\n"
      default:
        do {
          try options[name]?.apply(&arguments, value)
        } catch {
          throw CommandLineError("--\(name): \(error)")
        }
      }
    }
    if let word = line.words.first { throw CommandLineError("unexpected argument: \(word)") }
    return nil
  }
}
