import Configuration
import EventLoop
import Gateway
import Log

/// The command line: `microbit-gateway COMMAND [OPTION …]`.
struct Arguments {
  let command: GatewayCommand
  let logLevel: LogLevel?
  let logFormat: LogFormat?

  enum Usage: Error {
    /// The help.
    case help(String)
    /// What is wrong, and how to get help.
    case wrong(String)
  }

  private enum Option: String, CommandLineOption {
    case config
    case logLevel = "log-level"
    case logFormat = "log-format"
    case timeout, json, live, csv, gateway, passkey, help, version
    // Of init.
    case broker, port, tls
    case caFile = "ca-file"
    case username
    case passwordFile = "password-file"
    case device, all
    case noTest = "no-test"
    case yes

    var takesValue: Bool {
      switch self {
      case .config, .logLevel, .logFormat, .timeout, .gateway, .passkey, .broker, .port, .caFile, .username,
        .passwordFile, .device:
        true
      case .json, .live, .csv, .help, .version, .tls, .all, .noTest, .yes: false
      }
    }
  }

  /// - Parameter arguments: the program's own name first.
  init(_ arguments: [String]) throws(Usage) {
    let line: CommandLineOptions<Option>
    do throws(CommandLineError) {
      line = try CommandLineOptions(arguments)
    } catch {
      throw Self.wrong(error.description)
    }
    var values: [Option: String] = [:]
    for (option, value) in line.options { values[option] = value }
    let devices = line.options.filter { $0.option == .device }.map(\.value)
    let words = line.words
    if values[.help] != nil || words == ["help"] {
      throw .help(CommandHelp.all.first { $0.name == words.first }?.text ?? CommandHelp.general)
    }
    if values[.version] != nil, words.isEmpty {
      self.command = .version
      self.logLevel = nil
      self.logFormat = nil
      return
    }
    guard let name = words.first else {
      throw Self.wrong("no command given")
    }
    var rest = words.dropFirst()
    self.command =
      name == "init"
      ? .setUp(try Self.setup(devices, &values)) : try Self.command(name, &rest, &values)
    guard rest.isEmpty else { throw Self.wrong("unexpected argument: \(rest.joined(separator: " "))") }
    self.logLevel = try Self.level(values.removeValue(forKey: .logLevel))
    self.logFormat = name == "run" ? try Self.format(values.removeValue(forKey: .logFormat)) : nil
    if let (option, _) = values.first { throw Self.wrong("\(name) does not take --\(option.rawValue)") }
  }

  private static func command(
    _ name: String, _ words: inout ArraySlice<String>, _ values: inout [Option: String]
  ) throws(Usage) -> GatewayCommand {
    switch name {
    case "run": return .run(configuration: values.removeValue(forKey: .config))
    case "check": return .check(configuration: values.removeValue(forKey: .config))
    case "scan":
      let json = values.removeValue(forKey: .json) != nil
      let live = values.removeValue(forKey: .live) != nil
      if json, live { throw wrong("--json and --live must not be combined") }
      return .scan(
        Scan(
          timeout: try seconds(values.removeValue(forKey: .timeout)), json: json, live: live,
          configuration: values.removeValue(forKey: .config)))
    case "profiles":
      return .profiles(name: words.popFirst(), configuration: values.removeValue(forKey: .config))
    case "profile":
      guard words.popFirst() == "check", let file = words.popFirst() else {
        throw wrong("profile: use profile check FILE")
      }
      return .checkProfiles(file: file)
    case "inspect", "read", "write", "watch", "pair", "unpair", "devices", "add", "rename", "remove":
      return .device(try deviceCommand(name, &words, &values))
    case "bonds": return .bonds
    case "doctor":
      let json = values.removeValue(forKey: .json) != nil
      return .doctor(Doctor(configuration: values.removeValue(forKey: .config), json: json))
    case "forget":
      let isConfirmed = values.removeValue(forKey: .yes) != nil
      return .forget(Forget(configuration: values.removeValue(forKey: .config), isConfirmed: isConfirmed))
    case "version": return .version
    default:
      let near = nearest(to: name, among: CommandHelp.all.map(\.name))
      throw wrong("unknown command \(name)" + (near.map { ": did you mean \($0)?" } ?? ""))
    }
  }

  private static func setup(
    _ devices: [String], _ values: inout [Option: String]
  ) throws(Usage) -> Setup {
    var setup = Setup()
    setup.configuration = values.removeValue(forKey: .config)
    setup.devices = devices
    values[.device] = nil
    setup.usesAll = values.removeValue(forKey: .all) != nil
    setup.broker = values.removeValue(forKey: .broker)
    setup.port = values.removeValue(forKey: .port)
    setup.caFile = values.removeValue(forKey: .caFile)
    setup.isEncrypted = values.removeValue(forKey: .tls) != nil || setup.caFile != nil
    setup.username = values.removeValue(forKey: .username)
    setup.passwordFile = values.removeValue(forKey: .passwordFile)
    setup.triesBroker = values.removeValue(forKey: .noTest) == nil
    setup.isUnattended = values.removeValue(forKey: .yes) != nil
    setup.timeout = try seconds(values.removeValue(forKey: .timeout))
    return setup
  }

  private static func deviceCommand(
    _ name: String, _ words: inout ArraySlice<String>, _ values: inout [Option: String]
  ) throws(Usage) -> DeviceCommand {
    let id = name == "devices" ? nil : words.popFirst()
    guard id != nil || name == "watch" || name == "devices" else {
      throw wrong("\(name): which device? \(deviceUsage[name] ?? "")")
    }
    var json = false
    let action: DeviceCommand.Action
    switch name {
    case "read", "write":
      guard let property = words.popFirst() else {
        throw wrong("\(name): which property? \(deviceUsage[name] ?? "")")
      }
      json = values.removeValue(forKey: .json) != nil
      if name == "read" {
        action = .read(property: property)
      } else {
        guard let value = words.popFirst() else {
          throw wrong("write: which value? \(deviceUsage[name] ?? "")")
        }
        action = .write(property: property, value: value)
      }
    case "watch":
      json = values.removeValue(forKey: .json) != nil
      let csv = values.removeValue(forKey: .csv) != nil
      if json, csv { throw wrong("--json and --csv must not be combined") }
      action = .watch(property: words.popFirst(), csv: csv)
    case "pair":
      action = .pair(passkey: try passkey(values.removeValue(forKey: .passkey)))
    case "unpair": action = .unpair
    case "devices":
      json = values.removeValue(forKey: .json) != nil
      action = .list
    case "add": action = .add(name: words.popFirst(), area: words.popFirst())
    case "rename":
      guard let label = words.popFirst() else {
        throw wrong("rename: which name? \(deviceUsage[name] ?? "")")
      }
      action = .rename(to: label)
    case "remove": action = .remove
    default:
      json = values.removeValue(forKey: .json) != nil
      action = .inspect
    }
    return DeviceCommand(
      action, name: id, json: json,
      timeout: try seconds(values.removeValue(forKey: .timeout)) ?? .seconds(30),
      configuration: values.removeValue(forKey: .config), gateway: values.removeValue(forKey: .gateway))
  }

  private static let deviceUsage = [
    "inspect": "inspect ID", "read": "read ID PROPERTY", "write": "write ID PROPERTY VALUE",
    "pair": "pair ID [--passkey N]", "unpair": "unpair ID",
    "add": "add ID [NAME [AREA]]", "rename": "rename ID NAME", "remove": "remove ID",
  ]

  private static func passkey(_ text: String?) throws(Usage) -> Int? {
    guard let text else { return nil }
    guard let number = Int(text), (0...999_999).contains(number), text.utf8.count <= 6 else {
      throw wrong("--passkey \(text): must be the six digits that the micro:bit shows")
    }
    return number
  }

  private static func seconds(_ text: String?) throws(Usage) -> Duration? {
    guard let text else { return nil }
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

  private static func format(_ text: String?) throws(Usage) -> LogFormat? {
    guard let text else { return nil }
    guard let format = LogFormat(rawValue: text) else {
      throw wrong("--log-format \(text): must be text or json")
    }
    return format
  }

  private static func wrong(_ text: String) -> Usage {
    .wrong("\(text)\nTry: microbit-gateway --help")
  }
}
