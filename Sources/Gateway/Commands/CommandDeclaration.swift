import EventLoop

/// A command, declared once: its help, what it takes, and what it does with that.
struct CommandDeclaration {
  let name: String
  /// The words behind the name, such as `ID PROPERTY` of `read`: one in brackets may be left out, one in lower case is
  /// typed as it is, or is one of several.
  let arguments: String
  let summary: String
  let options: [(option: Option, meaning: String)]
  /// Throws a ``CommandFailure``.
  let run: @LoopActor (Arguments.Values) async throws -> Void

  /// A command with its words and options; see ``run``.
  typealias Action = @LoopActor () async throws -> Void

  private init(
    _ name: String, _ arguments: String = "", _ summary: String,
    _ options: [(option: Option, meaning: String)] = [],
    _ run: @escaping @LoopActor (Arguments.Values) async throws -> Void
  ) {
    self.name = name
    self.arguments = arguments
    self.summary = summary
    self.options =
      options + [
        (.logLevel, "debug, info (default of run), notice, warning (default of the others) or error")
      ]
    self.run = run
  }

  /// A command for a device, or for those of a running gateway.
  private static func device(
    _ name: String, _ arguments: String = "", _ summary: String,
    _ options: [(option: Option, meaning: String)] = [],
    _ run: @escaping @LoopActor (DeviceCommand) async throws -> Void
  ) -> CommandDeclaration {
    CommandDeclaration(name, arguments, summary, options + [gateway, config]) { values in
      guard let access = try GatewayAccess.open(values) else {
        throw GatewayAccess.noneRuns(configuration: values[.config])
      }
      defer { access.close() }
      try await run(DeviceCommand(values: values, access: access))
    }
  }

  private static let gateway = (
    option: Option.gateway, meaning: "which running gateway, if there are several"
  )
  private static let config = (
    option: Option.config,
    meaning: "the configuration file (default: ./config.json, then /etc/microbit-gateway/config.json)"
  )
  private static let json = (option: Option.json, meaning: "print JSON")
  private static let wait = (option: Option.timeout, meaning: "seconds to wait for the device (default: 30)")

  static var all: [CommandDeclaration] {
    [
      CommandDeclaration(
        "init", "", "set up: the page, the broker (which is tried), which micro:bits, the area",
        [
          (.config, "the file to write (default: ./config.json; as root /etc/microbit-gateway/config.json)"),
          (.http, "who may open the page: network, computer or nobody"),
          (.httpPasswordFile, "the file whose first line is the password of the page"),
          (.broker, "the broker"), (.port, "its port"), (.tls, "use TLS"),
          (.caFile, "the certificate of the authority that signed the broker's"),
          (.certFile, "the gateway's own certificate"), (.keyFile, "its key"),
          (.username, "the user at the broker"),
          (.passwordFile, "the file whose first line is the password"), (.noTest, "do not try the broker"),
          (.all, "use every micro:bit in range, now and later"),
          (.device, "use this micro:bit; may be repeated"), (.area, "the area of the gateway"),
          (.id, "the gateway's id in topics"),
          (.fleet, "take entries from the configuration of the whole fleet"),
          (.yes, "ask nothing: take the default of what is not given"),
        ]
      ) { try await Setup(options: $0.all).run() },
      CommandDeclaration(
        "setup", "", "print how to set up in a browser: the addresses, and the one-time code",
        [
          (.apply, "write what was answered there: the service does it, as root, when it starts"),
          (.config, "the file to write (default: /etc/microbit-gateway/config.json)"),
        ]
      ) {
        if $0.has(.apply) { try GatewayCommand.applySetup($0[.config]) } else { try await Invitation.run() }
      },
      CommandDeclaration(
        "run", "", "run until stopped (Ctrl-C)",
        [config, (.logFormat, "text (default), or json: one JSON object per line")]
      ) { try await GatewayCommand.run($0[.config]) },
      CommandDeclaration(
        "check", "", "check the configuration and show the settings of every device", [config]
      ) { try await GatewayCommand.check($0[.config]) },
      CommandDeclaration(
        "doctor", "",
        "find what is wrong (configuration, Bluetooth, broker, devices) and what to do about it",
        [json, config]
      ) { try await Doctor(configuration: $0[.config], json: $0.has(.json)).run() },
      CommandDeclaration(
        "scan", "", "list the Bluetooth devices in range, and what the gateway does with each",
        [
          (.timeout, "seconds to scan (default: 10)"), json,
          (.live, "a table that is updated continuously, until Ctrl-C"), config,
        ]
      ) { try await Scan(values: $0).run() },
      device("devices", "", "list the devices of the running gateway", [json]) { try await $0.list() },
      device("add", "ID [NAME [AREA]]", "add a device to the running gateway, until it is removed") {
        try await $0.add()
      },
      device("rename", "ID NAME", "give a device another name, and the id in topics that follows") {
        try await $0.rename()
      },
      device("remove", "ID", "remove a device, and ignore it until it is added again") {
        try await $0.remove()
      },
      device(
        "permit-join", "[SECONDS]",
        "add the micro:bits in range in the next seconds (default: 254; 0: no more)"
      ) { try await $0.permitJoin() },
      CommandDeclaration(
        "inspect", "ID", "show the services of a peripheral, and their values", [json, wait, gateway, config]
      ) { try await DeviceCommand.inspect($0) },
      device("read", "ID PROPERTY", "read a property now", [json, wait]) { try await $0.read() },
      device("write", "ID PROPERTY VALUE", "set a property, and print the result", [json, wait]) {
        try await $0.write()
      },
      device(
        "watch", "[ID [PROPERTY]]", "show readings as they arrive, until Ctrl-C",
        [json, (.csv, "print a spreadsheet: time, device, property, value, unit")]
      ) { try await $0.watch() },
      device(
        "record", "start|stop|list|csv|delete [NAME]",
        "record the readings of all devices until stop; list the recordings; print one, the newest by default, as CSV; delete one",
        [
          json,
          (.wide, "with csv: a column for each property of each device, instead of a row for each reading"),
        ]
      ) { try await $0.record() },
      device(
        "pair", "ID", "pair with a peripheral", [(.passkey, "the passkey that the micro:bit displays")]
      ) { try await $0.pair() },
      device("unpair", "ID", "remove its pairing") { try await $0.unpair() },
      device("identify", "ID", "show the name of a micro:bit on its LEDs") { try await $0.identify() },
      device(
        "log", "ID", "print the data log of a micro:bit V2 as CSV, which takes minutes if it is long",
        [(.raw, "as the micro:bit has it, instead of one table")]
      ) { try await $0.log() },
      device("bonds", "", "list the devices that are paired") { try await $0.bonds() },
      CommandDeclaration("profiles", "[NAME]", "list the profiles, or print one as JSON", [config]) {
        try GatewayCommand.profiles($0.word(0), $0[.config])
      },
      CommandDeclaration("profile", "check FILE", "check a file of profiles") {
        try GatewayCommand.checkProfiles($0.words[1])
      },
      CommandDeclaration(
        "forget", "", "clear all that the broker retains of this gateway, before it is removed for good",
        [(.yes, "do not ask"), config]
      ) { try await Forget(values: $0).run() },
      CommandDeclaration("version", "", "print the version") { _ in printVersion() },
    ]
  }

  @LoopActor static func printVersion() { printOutput("microbit-gateway \(Version.current)") }

  // MARK: Help

  var usage: String { arguments.isEmpty ? name : "\(name) \(arguments)" }

  /// The text of `COMMAND --help`.
  var help: String {
    let options = self.options + [(.help, "print this help")]
    let hasID = arguments.split { " []".contains($0) }.first == "ID"
    return """
      Usage: microbit-gateway \(usage) [OPTION …]

      \(summary.prefix(1).uppercased())\(summary.dropFirst()).
      \(hasID ? "\nID is an address, a device's id, or part of its name, if unique.\n" : "")
      Options:
      \(Self.table(options.map { ("--\($0.rawValue)" + ($0.value.map { " \($0)" } ?? ""), $1) }))
      """
  }

  static var generalHelp: String {
    """
    Usage: microbit-gateway COMMAND [OPTION …]

    Connects BBC micro:bits and other Bluetooth LE peripherals to MQTT.

    \(table(all.map { ($0.usage, $0.summary) }))

    microbit-gateway COMMAND --help shows the options of a command.

    ID is an address, a device's id, or part of its name, if unique. Commands with an ID, devices, permit-join, watch,
    record and bonds ask the running gateway; init, doctor, scan, and inspect if none is running, use Bluetooth themselves.

    Exit status: 0 success; 1 the peripheral refused, or doctor found faults; 64 wrong command line; 66 run cannot
    read the configuration; 69 no Bluetooth, no gateway, or the device is not in range; 78 wrong configuration.
    """
  }

  /// Two columns; what is too long for the first has a line of its own.
  private static func table(_ rows: [(String, String)]) -> String {
    let width = 18
    return rows.map { first, second in
      first.count <= width
        ? "  \(padded(first, width))  \(second)" : "  \(first)\n\(padded("", width + 4))\(second)"
    }.joined(separator: "\n")
  }
}
