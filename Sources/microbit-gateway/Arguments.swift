import CLinux
import Gateway
import Glibc
import Log

/// The command line: `microbit-gateway COMMAND [OPTION …]`.
struct Arguments {
  let command: GatewayCommand
  let logLevel: LogLevel?

  enum Usage: Error {
    /// The help.
    case help(String)
    /// What is wrong, and how to get help.
    case wrong(String)
  }

  private enum Option: Int32, CaseIterable {
    case config = 256, logLevel, timeout, json, help, version

    var name: StaticString {
      switch self {
      case .config: "config"
      case .logLevel: "log-level"
      case .timeout: "timeout"
      case .json: "json"
      case .help: "help"
      case .version: "version"
      }
    }

    var takesValue: Bool {
      switch self {
      case .config, .logLevel, .timeout: true
      case .json, .help, .version: false
      }
    }
  }

  /// - Parameter arguments: the program's own name first.
  init(_ arguments: [String]) throws(Usage) {
    // Never freed: getopt keeps pointers to it.
    var argv = arguments.map { strdup($0) } + [nil]
    var values: [Option: String] = [:]
    var table = Option.allCases.map { option in
      CLinux.option(
        name: UnsafeRawPointer(option.name.utf8Start).assumingMemoryBound(to: CChar.self),
        has_arg: option.takesValue ? required_argument : no_argument, flag: nil, val: option.rawValue)
    }
    table.append(CLinux.option())
    clinux_reset_getopt()
    while true {
      let result = getopt_long(Int32(arguments.count), &argv, ":h", table, nil)
      if result == -1 { break }
      if result == Int32(UInt8(ascii: "h")) {
        values[.help] = ""
      } else if let option = Option(rawValue: result) {
        values[option] = clinux_optarg().map { String(cString: $0) } ?? ""
      } else {
        let text = Self.refusedOption(argv)
        throw result == Int32(UInt8(ascii: ":"))
          ? Self.wrong("\(text) needs a value") : Self.wrong("unknown option \(text)")
      }
    }
    let words = (Int(clinux_optind())..<arguments.count).compactMap { argv[$0].map { String(cString: $0) } }
    if values[.help] != nil || words == ["help"] { throw .help(Self.help) }
    if values[.version] != nil, words.isEmpty {
      self.command = .version
      self.logLevel = nil
      return
    }
    guard let name = words.first else {
      throw Self.wrong("no command given: use \(Self.commands)")
    }
    var rest = words.dropFirst()
    self.command = try Self.command(name, &rest, &values)
    guard rest.isEmpty else { throw Self.wrong("unexpected argument: \(rest.joined(separator: " "))") }
    self.logLevel = try Self.level(values.removeValue(forKey: .logLevel))
    if let (option, _) = values.first { throw Self.wrong("\(name) does not take --\(option.name)") }
  }

  /// The option that `getopt_long` has just refused.
  private static func refusedOption(_ argv: [UnsafeMutablePointer<CChar>?]) -> String {
    // A short option, perhaps one of several in the argument; else the last argument.
    if let letter = UInt8(exactly: clinux_optopt()), letter > 0 {
      return "-" + String(decoding: [letter], as: UTF8.self)
    }
    return argv[Int(clinux_optind()) - 1].map { String(cString: $0) } ?? ""
  }

  private static func command(
    _ name: String, _ words: inout ArraySlice<String>, _ values: inout [Option: String]
  ) throws(Usage) -> GatewayCommand {
    switch name {
    case "run": return .run(configuration: values.removeValue(forKey: .config))
    case "check": return .check(configuration: values.removeValue(forKey: .config))
    case "scan":
      let timeout = try seconds(values.removeValue(forKey: .timeout))
      return .scan(timeout: timeout, json: values.removeValue(forKey: .json) != nil)
    case "profiles":
      return .profiles(name: words.popFirst(), configuration: values.removeValue(forKey: .config))
    case "profile":
      guard words.popFirst() == "check", let file = words.popFirst() else {
        throw wrong("profile: use profile check FILE")
      }
      return .checkProfiles(file: file)
    case "version": return .version
    default: throw wrong("unknown command \(name): use \(commands)")
    }
  }

  private static let commands = "run, check, scan, profiles, profile check or version"

  private static func seconds(_ text: String?) throws(Usage) -> Duration {
    guard let text else { return .seconds(10) }
    guard let seconds = Int(text), (1...3600).contains(seconds) else {
      throw wrong("--timeout \(text): must be a whole number of seconds, 1 to 3600")
    }
    return .seconds(seconds)
  }

  private static func level(_ text: String?) throws(Usage) -> LogLevel? {
    guard let text else { return nil }
    guard let level = LogLevel(name: text) else {
      let known = LogLevel.allCases.map { "\($0)" }.joined(separator: ", ")
      throw wrong("--log-level \(text): must be one of \(known)")
    }
    return level
  }

  private static func wrong(_ text: String) -> Usage {
    .wrong("\(text)\nTry: microbit-gateway --help")
  }

  private static let help = """
    Usage: microbit-gateway COMMAND [OPTION …]

    Bridges BBC micro:bits and other Bluetooth LE peripherals to MQTT.

      run                 run until stopped (Ctrl-C)
      check               check the configuration and show the settings of every device
      scan                list the Bluetooth devices in range
      profiles [NAME]     list the profiles, or print one as JSON
      profile check FILE  check a file of profiles
      version             print the version

    Options:
      --config FILE      run, check, profiles: the configuration file
                         (default: ./config.json, then /etc/microbit-gateway/config.json)
      --log-level LEVEL  debug, info (default), notice, warning or error
      --timeout S        scan: seconds to scan (default: 10)
      --json             scan: print JSON
      --help             print this help

    Exit status: 0 success, 64 wrong command line, 69 no Bluetooth (scan), 78 wrong configuration.
    """
}
