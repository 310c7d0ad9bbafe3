/// What the command line says of one command.
struct CommandHelp {
  let name: String
  let arguments: String
  let summary: String
  /// Each with its value, and what it means.
  let options: [(option: String, meaning: String)]

  private init(
    _ name: String, _ arguments: String = "", _ summary: String,
    _ options: [(option: String, meaning: String)] = []
  ) {
    self.name = name
    self.arguments = arguments
    self.summary = summary
    self.options = options
  }

  private static let config = (
    option: "--config FILE",
    meaning: "the configuration file (default: ./config.json, then /etc/microbit-gateway/config.json)"
  )
  private static let json = (option: "--json", meaning: "print JSON")
  private static let wait = (option: "--timeout S", meaning: "seconds to wait for the device (default: 30)")
  private static let gateway = (
    option: "--gateway ID", meaning: "which running gateway, if there are several"
  )
  private static let device = [wait, gateway, config]
  private static let running = [gateway, config]

  static let all = [
    CommandHelp(
      "init", "set up: find micro:bits, ask for the broker, try it, write the configuration",
      [
        (
          "--config FILE",
          "the file to write (default: ./config.json; as root /etc/microbit-gateway/config.json)"
        ),
        ("--device ADDRESS[=NAME[,AREA]]", "use this micro:bit; may be repeated"),
        ("--all", "use every micro:bit in range, now and later"),
        ("--broker HOST", "the broker"), ("--port N", "its port"), ("--tls", "use TLS"),
        ("--ca-file FILE", "the certificate of the authority that signed the broker's"),
        ("--username NAME", "the user at the broker"),
        ("--password-file FILE", "the file whose first line is the password"),
        ("--no-test", "do not try the broker"), ("--timeout S", "seconds to scan (default: 10)"),
        ("--yes", "ask nothing: take the default of what is not given"),
      ]),
    CommandHelp(
      "run", "run until stopped (Ctrl-C)",
      [config, ("--log-format FORMAT", "text (default), or json: one JSON object per line")]),
    CommandHelp("check", "check the configuration and show the settings of every device", [config]),
    CommandHelp(
      "doctor", "find what is wrong (configuration, Bluetooth, broker, devices) and what to do about it",
      [json, config]),
    CommandHelp(
      "scan", "list the Bluetooth devices in range, and what the gateway does with each",
      [
        ("--timeout S", "seconds to scan (default: 10)"), json,
        ("--live", "a table that is updated continuously, until Ctrl-C"), config,
      ]),
    CommandHelp("devices", "list the devices of the running gateway", [json] + running),
    CommandHelp(
      "add", "ID [NAME [AREA]]", "add a device to the running gateway, until it is removed", running),
    CommandHelp(
      "rename", "ID NAME", "give a device another name, and the id in topics that follows", running),
    CommandHelp("remove", "ID", "remove a device, and ignore it until it is added again", running),
    CommandHelp("inspect", "ID", "show the services of a peripheral, and their values", [json] + device),
    CommandHelp("read", "ID PROPERTY", "read a property now", [json] + device),
    CommandHelp("write", "ID PROPERTY VALUE", "set a property, and print the result", [json] + device),
    CommandHelp(
      "watch", "[ID [PROPERTY]]", "show readings as they arrive, until Ctrl-C",
      [json, ("--csv", "print a spreadsheet: time, device, property, value, unit")] + device),
    CommandHelp(
      "pair", "ID", "pair with a peripheral",
      [("--passkey N", "the passkey that the micro:bit displays")] + device),
    CommandHelp("unpair", "ID", "remove its pairing", device),
    CommandHelp("bonds", "list the paired peripherals"),
    CommandHelp("profiles", "[NAME]", "list the profiles, or print one as JSON", [config]),
    CommandHelp("profile", "check FILE", "check a file of profiles"),
    CommandHelp(
      "forget", "clear all that the broker retains of this gateway, before it is removed for good",
      [("--yes", "do not ask"), config]),
    CommandHelp("version", "print the version"),
  ]

  private init(_ name: String, _ summary: String, _ options: [(option: String, meaning: String)] = []) {
    self.init(name, "", summary, options)
  }

  private var usage: String { arguments.isEmpty ? name : "\(name) \(arguments)" }

  /// For `COMMAND --help`.
  var text: String {
    let options =
      self.options + [
        (
          "--log-level LEVEL",
          "debug, info (default of run), notice, warning (default of the others) or error"
        ),
        ("--help", "print this help"),
      ]
    // Not String.contains(String), with which the program would contain the regular expressions of Swift.
    let hasID = !arguments.isEmpty && self.options.contains { $0.option == Self.gateway.option }
    let id =
      hasID ? "\nID is an address, a device's id, or part of its name, if unique.\n" : ""
    return """
      Usage: microbit-gateway \(usage) [OPTION …]

      \(summary.prefix(1).uppercased())\(summary.dropFirst()).
      \(id)
      Options:
      \(Self.table(options.map { ($0.option, $0.meaning) }))
      """
  }

  static let general = """
    Usage: microbit-gateway COMMAND [OPTION …]

    Connects BBC micro:bits and other Bluetooth LE peripherals to MQTT.

    \(table(all.map { ($0.usage, $0.summary) }))

    microbit-gateway COMMAND --help shows the options of a command.

    ID is an address, a device's id, or part of its name, if unique. Commands with an ID, and watch, ask the running
    gateway; if none is running, inspect, read, write, watch, pair and unpair use Bluetooth themselves.

    Exit status: 0 success; 1 the peripheral refused, or doctor found faults; 64 wrong command line; 66 run cannot
    read the configuration; 69 no Bluetooth, no gateway, or the device is not in range; 78 wrong configuration.
    """

  /// Two columns; what is too long for the first has a line of its own.
  private static func table(_ rows: [(String, String)]) -> String {
    let width = 18
    return rows.map { first, second in
      let fill = width - first.count
      return fill >= 0
        ? "  \(first)\(String(repeating: " ", count: fill))  \(second)"
        : "  \(first)\n\(String(repeating: " ", count: width + 4))\(second)"
    }.joined(separator: "\n")
  }
}
