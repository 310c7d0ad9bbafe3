/// A command, declared once: its help, what it takes, and what it makes of that.
struct CommandDeclaration {
  let name: String
  /// The words behind the name, such as `ID PROPERTY` of `read`: one in brackets may be left out, one in lower case is
  /// typed as it is, or is one of several.
  let arguments: String
  let summary: String
  let options: [(option: Option, meaning: String)]
  let make: (Arguments.Values) -> GatewayCommand

  private init(
    _ name: String, _ arguments: String = "", _ summary: String,
    _ options: [(option: Option, meaning: String)] = [],
    _ make: @escaping (Arguments.Values) -> GatewayCommand
  ) {
    self.name = name
    self.arguments = arguments
    self.summary = summary
    self.options =
      options + [
        (.logLevel, "debug, info (default of run), notice, warning (default of the others) or error")
      ]
    self.make = make
  }

  /// A command for a device, or for those of a running gateway.
  private static func device(
    _ name: String, _ arguments: String = "", _ summary: String,
    _ options: [(option: Option, meaning: String)] = [],
    _ action: @escaping (Arguments.Values) -> DeviceCommand.Action
  ) -> CommandDeclaration {
    CommandDeclaration(
      name, arguments, summary,
      options + [(.gateway, "which running gateway, if there are several"), config]
    ) { values in
      .device(
        DeviceCommand(
          action: action(values), name: values.words.first, json: values.has(.json),
          timeout: values.timeout ?? .seconds(30), configuration: values[.config], gateway: values[.gateway]))
    }
  }

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
      ) { .setUp(Setup(options: $0.all)) },
      CommandDeclaration(
        "setup", "", "print how to set up in a browser: the addresses, and the one-time code",
        [
          (.apply, "write what was answered there: the service does it, as root, when it starts"),
          (.config, "the file to write (default: /etc/microbit-gateway/config.json)"),
        ]
      ) { $0.has(.apply) ? .applySetup(configuration: $0[.config]) : .invite },
      CommandDeclaration(
        "run", "", "run until stopped (Ctrl-C)",
        [config, (.logFormat, "text (default), or json: one JSON object per line")]
      ) { .run(configuration: $0[.config]) },
      CommandDeclaration(
        "check", "", "check the configuration and show the settings of every device", [config]
      ) { .check(configuration: $0[.config]) },
      CommandDeclaration(
        "doctor", "",
        "find what is wrong (configuration, Bluetooth, broker, devices) and what to do about it",
        [json, config]
      ) { .doctor(Doctor(configuration: $0[.config], json: $0.has(.json))) },
      CommandDeclaration(
        "scan", "", "list the Bluetooth devices in range, and what the gateway does with each",
        [
          (.timeout, "seconds to scan (default: 10)"), json,
          (.live, "a table that is updated continuously, until Ctrl-C"), config,
        ]
      ) {
        .scan(
          Scan(timeout: $0.timeout, json: $0.has(.json), live: $0.has(.live), configuration: $0[.config]))
      },
      device("devices", "", "list the devices of the running gateway", [json]) { _ in .list },
      device("add", "ID [NAME [AREA]]", "add a device to the running gateway, until it is removed") {
        .add(name: $0.word(1), area: $0.word(2))
      },
      device("rename", "ID NAME", "give a device another name, and the id in topics that follows") {
        .rename(to: $0.words[1])
      },
      device("remove", "ID", "remove a device, and ignore it until it is added again") { _ in .remove },
      device(
        "permit-join", "[SECONDS]",
        "add the micro:bits in range in the next seconds (default: 254; 0: no more)"
      ) { .permitJoin(seconds: $0.seconds) },
      device("inspect", "ID", "show the services of a peripheral, and their values", [json, wait]) { _ in
        .inspect
      },
      device("read", "ID PROPERTY", "read a property now", [json, wait]) { .read(property: $0.words[1]) },
      device("write", "ID PROPERTY VALUE", "set a property, and print the result", [json, wait]) {
        .write(property: $0.words[1], value: $0.words[2])
      },
      device(
        "watch", "[ID [PROPERTY]]", "show readings as they arrive, until Ctrl-C",
        [json, (.csv, "print a spreadsheet: time, device, property, value, unit")]
      ) { .watch(property: $0.word(1), csv: $0.has(.csv)) },
      device(
        "record", "start|stop|list|csv|delete [NAME]",
        "record the readings of all devices until stop; list the recordings; print one, the newest by default, as CSV; delete one",
        [
          json,
          (.wide, "with csv: a column for each property of each device, instead of a row for each reading"),
        ]
      ) {
        .record(RecordCommand($0.words[0], name: $0.word(1), isWide: $0.has(.wide)) ?? .list)
      },
      device(
        "pair", "ID", "pair with a peripheral", [(.passkey, "the passkey that the micro:bit displays")]
      ) { .pair(passkey: $0.passkey) },
      device("unpair", "ID", "remove its pairing") { _ in .unpair },
      device("identify", "ID", "show the name of a micro:bit on its LEDs") { _ in .identify },
      device(
        "log", "ID", "print the data log of a micro:bit V2 as CSV, which takes minutes if it is long",
        [(.raw, "as the micro:bit has it, instead of one table")]
      ) { .log(raw: $0.has(.raw)) },
      device("bonds", "", "list the devices that are paired") { _ in .bonds },
      CommandDeclaration("profiles", "[NAME]", "list the profiles, or print one as JSON", [config]) {
        .profiles(name: $0.word(0), configuration: $0[.config])
      },
      CommandDeclaration("profile", "check FILE", "check a file of profiles") {
        .checkProfiles(file: $0.words[1])
      },
      CommandDeclaration(
        "forget", "", "clear all that the broker retains of this gateway, before it is removed for good",
        [(.yes, "do not ask"), config]
      ) { .forget(Forget(configuration: $0[.config], isConfirmed: $0.has(.yes))) },
      CommandDeclaration("version", "", "print the version") { _ in .version },
    ]
  }

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
      let fill = width - first.count
      return fill >= 0
        ? "  \(first)\(String(repeating: " ", count: fill))  \(second)"
        : "  \(first)\n\(String(repeating: " ", count: width + 4))\(second)"
    }.joined(separator: "\n")
  }
}
