import Glibc
import Store
import TestSupport
import Testing

/// The command line: what is printed, and the exit status.
@Suite struct CommandLineTests {
  /// Runs microbit-gateway to its end.
  static func run(
    _ arguments: [String], bus: String = "unix:path=/nonexistent/bus"
  ) async throws -> (status: Int32, text: String) {
    let process = try ChildProcess(
      try program("microbit-gateway"), arguments, environment: ["DBUS_SYSTEM_BUS_ADDRESS": bus])
    let status = try await process.exitStatus(within: Fixture.patience)
    return (status, process.text)
  }

  private static let commands = [
    "init", "run", "check", "doctor", "scan", "devices", "add", "rename", "remove", "permit-join", "inspect",
    "read",
    "write",
    "watch", "pair", "unpair", "identify", "bonds", "profiles", "profile", "forget", "version",
  ]

  @Test("The help lists every command", arguments: [["--help"], ["-h"], ["help"], ["nothing", "--help"]])
  func help(arguments: [String]) async throws {
    let (status, text) = try await Self.run(arguments)
    #expect(status == 0 && text.hasPrefix("Usage: microbit-gateway COMMAND"))
    for command in Self.commands { #expect(text.contains("\n  \(command) "), "\(command)") }
    #expect(!text.contains("--password-file"))
  }

  @Test("A command's help has its options, and none of others", arguments: commands)
  func helpOfCommand(command: String) async throws {
    let (status, text) = try await Self.run([command, "--help"])
    #expect(status == 0 && text.hasPrefix("Usage: microbit-gateway \(command)"))
    #expect(text.contains("--log-level") && text.contains("--log-format") == (command == "run"))
    #expect(text.contains("--yes") == ["init", "forget"].contains(command))
    #expect(text.contains("--config") == !["profile", "version"].contains(command))
    #expect(text.contains("--gateway ID") == Self.commands[5...17].contains(command))
  }

  @Test("The version is printed", arguments: [["version"], ["--version"]])
  func version(arguments: [String]) async throws {
    let (status, text) = try await Self.run(arguments)
    #expect(status == 0)
    #expect(text.wholeMatch(of: /microbit-gateway \d+\.\d+\.\d+\S*/) != nil)
  }

  @Test(
    "A usage error names the wrong argument, with status 64",
    arguments: [
      ([], "no command given"), (["docter"], "unknown command docter: did you mean doctor?"),
      (["--colour", "run"], "--colour"), (["run", "-x"], "-x"), (["run", "--config"], "--config"),
      (["run", "now"], "unexpected argument: now"), (["profile"], "profile check FILE"),
      (["profile", "look", "a"], "profile check FILE"), (["profiles", "a", "b"], "unexpected argument: b"),
      (["inspect"], "inspect ID"), (["write", "a", "b"], "write ID PROPERTY VALUE"),
      (["add"], "add ID [NAME [AREA]]"), (["check", "--timeout", "1"], "check does not take --timeout"),
      (["devices", "--timeout", "1"], "devices does not take --timeout"),
      (["scan", "--log-format", "json"], "--log-format"), (["scan", "--timeout", "0"], "1 to 3600"),
      (["scan", "--timeout", "99999999999999999999"], "1 to 3600"),
      (["pair", "a", "--passkey", "12345678"], "six digits"),
      (["pair", "a", "--passkey", "+12345"], "six digits"),
      (["watch", "--json", "--csv"], "--csv must not be combined"),
      (["scan", "--json", "--live"], "--live must not be combined"),
      (["run", "--log-level", "loud"], "loud"),
      (["run", "--log-format", "xml"], "xml"),
    ] as [([String], String)])
  func usageError(arguments: [String], expected: String) async throws {
    let (status, text) = try await Self.run(arguments)
    #expect(status == 64)
    #expect(text.contains(expected), "\(text)")
    #expect(text.contains("--help"))
  }

  /// Runs a line of a shell, in which `$0` is the program and `$1` a name for a file, to its end.
  private static func shell(_ line: String) async throws -> (status: Int32, text: String) {
    let folder = try TemporaryFolder()
    let process = try ChildProcess(
      "/bin/sh", ["-c", line, try program("microbit-gateway"), folder.path + "/file"])
    let status = try await process.exitStatus(within: Fixture.patience)
    return (status, process.text)
  }

  @Test(
    "Output that cannot be written is an error",
    arguments: ["version", "--help", "profiles", "profiles microbit", "doctor --json --config /nonexistent"])
  func fullDisk(command: String) async throws {
    let (status, text) = try await Self.shell("\"$0\" \(command) > /dev/full")
    #expect(status == 1)
    #expect(text.hasSuffix("cannot write the output: No space left on device"), "\(text)")
  }

  @Test("Output that nobody reads is none")
  func closedOutput() async throws {
    let (status, text) = try await Self.shell(
      #"mkfifo "$1"; exec 3<> "$1" 4> "$1" 3>&-; "$0" profiles microbit >&4"#)
    #expect(status == 0 && text.isEmpty, "\(text)")
  }

  @Test("A command can be stopped while it waits for a file that its caller has opened")
  func stopWhileReading() async throws {
    let folder = try TemporaryFolder()
    let pipe = folder.path + "/pipe"
    // Open for writing too, so that reading does not end.
    let process = try ChildProcess(
      "/bin/sh",
      [
        "-c", #"mkfifo "$1"; exec 3<> "$1"; exec "$0" check --config /dev/fd/3"#,
        try program("microbit-gateway"), pipe,
      ])
    try await eventually("the program reads the pipe") {
      (try? process.descriptors)?.filter { $0 == pipe }.count == 2
    }
    process.signal(SIGTERM)
    #expect(try await process.exitStatus(within: Fixture.patience) == 128 + SIGTERM)
  }

  @Test("A configuration may come through a pipe of the shell")
  func configurationFromPipe() async throws {
    let (status, text) = try await Self.shell("echo '{}' | \"$0\" check --config /dev/stdin")
    #expect(status == 0 && text.hasPrefix("/dev/stdin: valid"), "\(text)")
  }

  @Test("A profile is printed as JSON that is a valid profile file")
  func profiles() async throws {
    let folder = try TemporaryFolder()
    let (status, text) = try await Self.run(["profiles", "microbit"])
    #expect(status == 0)
    let copy = try folder.write(
      text.replacing(#"{"microbit""#, with: #"{"copy""#).replacing(#""microbit": {"#, with: #""copy": {"#),
      to: "copy.json")
    let (valid, answer) = try await Self.run(["profile", "check", copy])
    #expect(valid == 0 && answer.hasPrefix("\(copy): valid: copy"))
    let file = try folder.write(#"{"devices":[],"profiles_directory":"."}"#, to: "config")
    let listed = try await Self.run(["profiles", "--config", file])
    #expect(listed.status == 0)
    #expect(
      listed.text.split(separator: "\n").map { $0.prefix(while: { $0 != ":" }) } == [
        "microbit", "bthome", "copy",
      ])
    let unknown = try await Self.run(["profiles", "fan", "--config", file])
    #expect(
      unknown.status == 64
        && unknown.text.hasPrefix("there is no profile \"fan\"; there are microbit, bthome, copy"))
  }

  @Test("An invalid profile file is reported with line and column")
  func invalidProfile() async throws {
    let folder = try TemporaryFolder()
    let file = try folder.write("{ \"fan\": {\n  \"properties\": { \"Speed\": {} } } }", to: "fan.json")
    let (status, text) = try await Self.run(["profile", "check", file])
    #expect(status == 78)
    #expect(text.contains("\(file):2:"), "\(text)")
    let missing = try await Self.run(["profile", "check", folder.path + "/none.json"])
    #expect(missing.status == 78 && missing.text.contains("none.json"))
  }

  @Test("A preloaded library that changes the environment does not change the arguments")
  func preloadedLibrary() async throws {
    let folder = try TemporaryFolder()
    // Either change alone hides the arguments from Swift's runtime, whether linked statically or dynamically.
    let source = """
      #include <stdlib.h>
      static char *none[] = {0};
      char **environ = none;
      __attribute__((constructor)) static void change(void) { setenv("PRELOADED", "1", 1); }
      """
    let library = folder.path + "/preloaded.so"
    let compiler = try ChildProcess(
      "/usr/bin/gcc", ["-shared", "-fPIC", "-o", library, try folder.write(source, to: "preloaded.c")])
    try #require(try await compiler.exitStatus() == 0, "\(compiler.text)")
    let file = try folder.write("{}", to: "a file.json")
    for (name, arguments, expected) in [
      ("microbit-gateway", ["version"], "microbit-gateway "),
      ("microbit-gateway", ["check", "--config", file], "\(file): valid"),
      ("microbit-gateway", ["run", ""], "unexpected argument: "),
      ("microbit-simulator", ["--version"], "microbit-simulator "),
    ] {
      let process = try ChildProcess(try program(name), arguments, environment: ["LD_PRELOAD": library])
      try await process.exitStatus()
      #expect(process.text.contains(expected), "\(name) \(arguments): \(process.text)")
      #expect(!process.text.contains("no command given"))
    }
  }

  // MARK: check

  @Test("check prints the path of the state database")
  func checkState() async throws {
    let folder = try TemporaryFolder()
    let file = try folder.write(
      #"{"gateway":{"id":"check-state"},"devices":[{"match":{"identifier":"C5:A1:B2:C3:D4:E5"}}]}"#,
      to: "config.json")
    func check(_ environment: [String: String]) async throws -> [Substring] {
      let process = try ChildProcess(
        try program("microbit-gateway"), ["check", "--config", file], environment: environment)
      try #require(try await process.exitStatus(within: Fixture.patience) == 0, "\(process.text)")
      return process.text.split(separator: "\n")
    }
    let path = folder.path + "/check-state.db"
    #expect(
      try await check(["STATE_DIRECTORY": folder.path])
        .contains("state database: \(path) (not created yet)"))
    let store = await StateDatabase(path: path)
    await store.put(
      "devices/C5:A1:B2:C3:D4:E5", Array(#"{"name":"BBC","desired":{"period":{"value":5}}}"#.utf8))
    await store.put("devices/D0:5A:00:00:C0:DE", Array(#"{"name":"BBC"}"#.utf8))
    await store.close(within: Fixture.patience)
    let lines = try await check(["STATE_DIRECTORY": folder.path])
    #expect(lines.contains { $0.hasPrefix("state database: \(path) (of the user ") })
    #expect(lines.contains(#"D0:5A:00:00:C0:DE "BBC": no entry of config.json matches it"#))
    // A stored period below the present minimum is not applied.
    #expect(lines.contains { $0.contains(/period +– +default/) }, "\(lines)")
    let user = "\(folder.path)/microbit-gateway/check-state.db"
    #expect(
      try await check(["STATE_DIRECTORY": "", "XDG_STATE_HOME": folder.path])
        .contains("state database: \(user) (not created yet)"))
    try folder.write(#"{"gateway":{"id":"check-state"},"fleet":true}"#, to: "config.json")
    #expect(
      try await check(["STATE_DIRECTORY": folder.path]).contains("fleet: no configuration was received"))
    try folder.write("no database", to: "check-state.db")
    #expect(
      try await check(["STATE_DIRECTORY": folder.path])
        .contains("fleet: what was received is not known, as the state database cannot be read"))
  }

  @Test("A valid configuration is summarised")
  func validConfiguration() async throws {
    let folder = try TemporaryFolder()
    let file = try folder.write(
      """
      {"gateway":{"id":"lab"}, "mqtt":{"host":"broker.example","port":8883,"tls":{}},
       "devices":[{"match":{"identifier":"C5:A1:B2:C3:D4:E5"},"id":"kitchen"}]}
      """, to: "config.json")
    let (status, text) = try await Self.run(["check", "--config", file])
    #expect(status == 0)
    for word in ["valid", "lab", "broker.example", "8883", "C5:A1:B2:C3:D4:E5", "kitchen"] {
      #expect(text.contains(word))
    }
  }

  private static let invalidConfigurations: [(text: String, position: String)] = [
    (#"{"mqtt":"#, "config.json:1:9: "),
    (#"{"mqtt":{"prot":1883}}"#, "mqtt.prot: unknown key (did you mean port?)"),
    (##"{"gateway":{"id":"\u001b[31m"}}"##, "gateway.id: "),
    ("{\"gateway\":{\"id\":\"\u{1B}[31m\"}}", "config.json:1:19: "),
  ]

  @Test(
    "An invalid configuration is reported with its position, nothing is started, status 78",
    arguments: ["check", "run"])
  func invalidConfiguration(command: String) async throws {
    let folder = try TemporaryFolder()
    for (text, position) in Self.invalidConfigurations {
      let file = try folder.write(text, to: "config.json")
      let (status, output) = try await Self.run([command, "--config", file])
      #expect(status == 78, "\(text)")
      #expect(output.contains(position), "\(text): \(output)")
      #expect(output.contains("config.json:"))
      #expect(!output.contains("\u{1B}"))
      #expect(!output.contains("started"))
    }
  }

  @Test("check reports a password file that is missing")
  func missingPasswordFile() async throws {
    let folder = try TemporaryFolder()
    let file = try folder.write(#"{"mqtt":{"username":"u","password_file":"nowhere"}}"#, to: "config.json")
    let (status, text) = try await Self.run(["check", "--config", file])
    #expect(status == 78)
    #expect(text.contains("config.json:1:41: mqtt.password_file: "), "\(text)")
    #expect(text.contains("nowhere: No such file or directory (create it, or correct the path)"), "\(text)")
  }

  @Test(
    "A configuration that is missing, a directory or not UTF-8: status 78, or 66 for run if it cannot be read",
    arguments: [("check", 78), ("run", 66)])
  func unreadableConfiguration(command: String, unreadable: Int32) async throws {
    let folder = try TemporaryFolder()
    let missing = try await Self.run([command, "--config", folder.path + "/none.json"])
    #expect(missing.status == unreadable)
    #expect(missing.text.contains("none.json"))
    let directory = try await Self.run([command, "--config", folder.path])
    #expect(directory.status == unreadable)
    #expect(directory.text.contains(folder.path) && directory.text.contains("directory"))
    let file = try folder.write([0x7B, 0xFF, 0xFE, 0x7D], to: "config.json")
    let binary = try await Self.run([command, "--config", file])
    #expect(binary.status == 78)
  }

  @Test("Without --config, ./config.json is read")
  func defaultConfiguration() async throws {
    let folder = try TemporaryFolder()
    try folder.write(#"{"gateway":{"id":"here"}}"#, to: "config.json")
    let shell = try ChildProcess(
      "/bin/sh", ["-c", "cd \"$0\" && exec \"$1\" check", folder.path, try program("microbit-gateway")])
    try #require(try await shell.exitStatus(within: Fixture.patience) == 0)
    #expect(shell.text.hasPrefix("./config.json: valid"))
    #expect(shell.text.contains("here"))
  }

  // MARK: run

  @Test(
    "--log-level sets the lowest level that is logged",
    arguments: [("warning", []), ("debug", ["notice", "debug"])] as [(String, [String])])
  func logLevel(level: String, others: [String]) async throws {
    try await withFixture(Plan(absent: [.gateway])) { fixture in
      try fixture.startGateway(["--log-level", level])
      try await fixture.online(try await fixture.id())
      try await fixture.simulator.control(#"{"op":"power","on":false}"#)
      try await fixture.logged("the adapter hci0 is off")
      let levels = Set(try fixture.lines(with: "").map { $0.split(separator: " ")[1] })
      try #require(levels.isSuperset(of: others.map { $0[...] } + ["warning"]))
      try #require(level == "debug" || levels == ["warning"])
    }
  }

  @Test("--log-format json: every line is an object; lines about a device have its id and address")
  func logFormat() async throws {
    try await withFixture(Plan(absent: [.gateway])) { fixture in
      try fixture.startGateway(["--log-format", "json"])
      let device = try await fixture.simulator.device(0)
      try await fixture.online(device.id)
      try await fixture.logged(#""message":"online""#)
      let entry = try JSON.parse(
        String(try #require(try fixture.lines(with: #""message":"online""#).first)))
      #expect(entry["level"]?.string == "notice" && entry["component"]?.string == "gateway")
      #expect(entry["device"]?.string == device.id && entry["address"]?.string == device.address)
      #expect(isTimestamp(entry["time"]?.string))
      for line in try fixture.lines(with: "") { _ = try JSON.parse(String(line)) }
    }
  }
}
