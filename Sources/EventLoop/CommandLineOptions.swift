import CLinux
import Glibc

/// A command line, split by getopt_long(3) into options and words, which may stand in any order.
public struct CommandLineOptions {
  /// The options in their order, each with its value: `--config FILE` or `--config=FILE`; empty if it takes none.
  public private(set) var options: [(name: String, value: String)] = []
  /// What is not an option, in order; a negative number is a word.
  public private(set) var words: [String] = []

  /// - Parameters:
  ///   - arguments: the program's own name first.
  ///   - takesValue: whether each option, by its long name, takes a value; one is `help`, which is `-h` too.
  public init(_ arguments: [String], _ takesValue: [String: Bool]) throws(CommandLineError) {
    // Never freed: getopt keeps pointers to them.
    var argv = arguments.map { strdup($0) } + [nil]
    let all = Array(takesValue)
    // Above every letter, which getopt returns for a short option.
    let first: Int32 = 256
    var table = all.enumerated().map { index, option in
      CLinux.option(
        name: strdup(option.key), has_arg: option.value ? required_argument : no_argument,
        flag: nil, val: first + Int32(index))
    }
    table.append(CLinux.option())
    clinux_reset_getopt()
    // Words are returned in order too (-), and so are negative numbers: a digit with what follows it.
    let short = "-:h" + (0...9).map { "\($0)::" }.joined()
    while true {
      let result = getopt_long(Int32(arguments.count), &argv, short, table, nil)
      if result == -1 { break }
      let value = clinux_optarg().map { String(cString: $0) } ?? ""
      if result >= first {
        options.append((all[Int(result - first)].key, value))
      } else if result == 1 {
        words.append(value)
      } else if let digit = UInt8(exactly: result), (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit) {
        words.append("-" + String(decoding: [digit], as: UTF8.self) + value)
      } else if result == Int32(UInt8(ascii: "h")) {
        options.append(("help", ""))
      } else {
        let refused = Self.refused(argv)
        throw CommandLineError(
          result == Int32(UInt8(ascii: ":"))
            ? "\(refused) needs a value"
            : "unknown option \(refused)"
              + (words.count > 1 ? " (before a value that begins with -, write --)" : "")
        )
      }
    }
    // What follows --.
    words += (Int(clinux_optind())..<arguments.count).compactMap { argv[$0].map { String(cString: $0) } }
  }

  /// The option that `getopt_long` has just refused.
  private static func refused(_ argv: [UnsafeMutablePointer<CChar>?]) -> String {
    // A short option, perhaps one of several in the argument; else the last argument.
    if let letter = UInt8(exactly: clinux_optopt()), letter > 0 {
      return "-" + String(decoding: [letter], as: UTF8.self)
    }
    return argv[Int(clinux_optind()) - 1].map { String(cString: $0) } ?? ""
  }
}

/// What is wrong with a command line.
public struct CommandLineError: Error, CustomStringConvertible {
  /// What is wrong, for the user.
  public let description: String

  /// - Parameter description: for the user.
  public init(_ description: String) { self.description = description }
}
