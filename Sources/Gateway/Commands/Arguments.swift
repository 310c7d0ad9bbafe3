import Configuration
import EventLoop
import Log

/// The options of the command line.
enum Option: String, CaseIterable {
  case config
  case logLevel = "log-level"
  case logFormat = "log-format"
  case timeout, json, live, csv, wide, raw, gateway, passkey, help, version
  // Of init.
  case broker, port, tls
  case caFile = "ca-file"
  case username
  case passwordFile = "password-file"
  case certFile = "cert-file"
  case keyFile = "key-file"
  case http
  case httpPasswordFile = "http-password-file"
  case device, all, area, id, fleet
  // Of setup.
  case apply
  case noTest = "no-test"
  case yes

  /// What the help calls its value; nil: it takes none.
  var value: String? {
    switch self {
    case .config, .caFile, .certFile, .keyFile, .passwordFile, .httpPasswordFile: "FILE"
    case .logLevel: "LEVEL"
    case .logFormat: "FORMAT"
    case .timeout: "S"
    case .gateway, .id: "ID"
    case .passkey, .port: "N"
    case .broker: "HOST"
    case .username, .area: "NAME"
    case .http: "WHO"
    case .device: "ADDRESS[=NAME[,AREA]]"
    case .json, .live, .csv, .wide, .raw, .help, .version, .tls, .all, .fleet, .noTest, .yes, .apply: nil
    }
  }
}

/// The command line: `microbit-gateway COMMAND [OPTION …]`.
struct Arguments {
  /// Carries out the command.
  let action: CommandDeclaration.Action
  /// Whether the command is `run`.
  private(set) var runsGateway = false
  /// The words and options of the command; nil: help or the version is shown.
  private(set) var values: Values?

  /// - Parameter arguments: the program's own name first.
  init(_ arguments: [String]) throws(CommandLineError) {
    let takesValue = Option.allCases.map { ($0.rawValue, $0.value != nil) }
    let line = try CommandLineOptions(arguments, Dictionary(uniqueKeysWithValues: takesValue))
    var given: [Option: [String]] = [:]
    for (name, value) in line.options {
      if let option = Option(rawValue: name) { given[option, default: []].append(value) }
    }
    let commands = CommandDeclaration.all
    let declaration = commands.first { $0.name == line.words.first }
    if given[.help] != nil || line.words == ["help"] {
      action = { printOutput(declaration?.help ?? CommandDeclaration.generalHelp) }
      return
    }
    if given[.version] != nil, line.words.isEmpty {
      action = { CommandDeclaration.printVersion() }
      return
    }
    guard let name = line.words.first else { throw CommandLineError("no command given") }
    guard let declaration else {
      let near = nearest(to: name, among: commands.map(\.name))
      throw CommandLineError("unknown command \(name)" + (near.map { ": did you mean \($0)?" } ?? ""))
    }
    let values = try Values(given, Array(line.words.dropFirst()), declaration)
    action = { try await declaration.run(values) }
    runsGateway = name == "run"
    self.values = values
  }
}

extension Arguments {
  /// The words and options of a command, which are those that it takes.
  struct Values {
    let words: [String]
    private(set) var timeout: Duration?
    /// How long to wait for a device.
    var patience: Duration { timeout ?? .seconds(30) }
    private(set) var passkey: Int?
    /// The word of `[SECONDS]`.
    private(set) var seconds: Int?
    private(set) var logLevel: LogLevel?
    private(set) var logFormat: LogFormat?
    private let options: [Option: [String]]

    init(
      _ options: [Option: [String]], _ words: [String], _ command: CommandDeclaration
    ) throws(CommandLineError) {
      (self.options, self.words) = (options, words)
      let name = command.name
      let known = Set(command.options.map(\.option))
      if let option = options.keys.first(where: { !known.contains($0) }) {
        throw CommandLineError("\(name) does not take --\(option.rawValue)")
      }
      let places = command.arguments.split(separator: " ")
      if words.count > places.count {
        throw CommandLineError("unexpected argument: \(words[places.count...].joined(separator: " "))")
      }
      for (index, place) in places.enumerated() where !place.hasPrefix("[") {
        let isTyped = place.first?.isLowercase != true
        guard index < words.count, isTyped || place.split(separator: "|").contains(Substring(words[index]))
        else {
          throw CommandLineError("\(name): use \(command.usage)")
        }
      }
      if let index = places.firstIndex(of: "[SECONDS]"), let text = word(index) {
        guard let number = Int(text), (0...3600).contains(number) else {
          throw CommandLineError("\(text): must be a whole number of seconds, 0 to 3600")
        }
        seconds = number
      }
      for (one, other) in [(Option.json, Option.live), (.json, .csv)] where has(one) && has(other) {
        throw CommandLineError("--\(one.rawValue) and --\(other.rawValue) must not be combined")
      }
      timeout = try value(.timeout, "a whole number of seconds, 1 to 3600") { text in
        Int(text).flatMap { (1...3600).contains($0) ? .seconds($0) : nil }
      }
      passkey = try value(.passkey, "the six digits that the micro:bit shows", GatewayCommand.passkey)
      let levels = LogLevel.allCases.map(\.name).joined(separator: ", ")
      logLevel = try value(.logLevel, "one of \(levels)") { LogLevel(name: $0) }
      logFormat = try value(.logFormat, "text or json") { LogFormat(rawValue: $0) }
    }

    /// The value of an option; the last one, if it is repeated.
    subscript(option: Option) -> String? { options[option]?.last }

    /// All options by their names with two hyphens, and their values.
    var all: [String: [String]] {
      Dictionary(uniqueKeysWithValues: options.map { ("--\($0.rawValue)", $1) })
    }

    func has(_ option: Option) -> Bool { options[option] != nil }
    func word(_ index: Int) -> String? { index < words.count ? words[index] : nil }

    private func value<Value>(
      _ option: Option, _ expected: String, _ parse: (String) -> Value?
    ) throws(CommandLineError) -> Value? {
      guard let text = self[option] else { return nil }
      guard let value = parse(text) else {
        throw CommandLineError("--\(option.rawValue) \(text): must be \(expected)")
      }
      return value
    }
  }
}
