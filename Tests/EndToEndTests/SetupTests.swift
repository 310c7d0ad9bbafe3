import Glibc
import TestSupport
import Testing

/// `init`: from no configuration to readings at the broker, and the errors on the way.
@Suite struct SetupTests {
  private static let passwords = """
    fixture:$7$101$HE8HDFYMmlF1Jpv/$jtvTvbBwb4XrHEBlv1b4aHopv4zB2qLLGRR042T2g2UHmpbHpEFos+wFv4LSo+A7/r5qCtHbh5m4qzBEIFVM3w==

    """

  private static func plan() -> Plan {
    Plan(devices: 2, absent: [.gateway])
  }

  /// The broker asks for a login.
  private static func planWithLogin() -> Plan {
    var plan = plan()
    plan.access = { folder in "allow_anonymous false\npassword_file \(folder)/passwords" }
    plan.files = ["passwords": passwords]
    plan.observer = ("fixture", "secret")
    return plan
  }

  private func start(_ fixture: Fixture, _ options: [String]) throws -> TerminalProcess {
    try TerminalProcess(
      try program("microbit-gateway"), ["init"] + options, environment: fixture.environment)
  }

  private func run(
    _ fixture: Fixture, _ options: [String], prefix: [String] = []
  ) async throws -> (status: Int32, text: String) {
    let words = prefix + [try program("microbit-gateway"), "init"] + options
    let process = try ChildProcess(words[0], Array(words.dropFirst()), environment: fixture.environment)
    return (try await process.exitStatus(within: Fixture.patience), process.text)
  }

  private func text(_ path: String) -> String? {
    guard let stream = fopen(path, "r") else { return nil }
    defer { fclose(stream) }
    var bytes = [UInt8](repeating: 0, count: 1 << 16)
    let count = fread(&bytes, 1, bytes.count, stream)
    return String(decoding: bytes[..<count], as: UTF8.self)
  }

  @Test("The configuration made from a user's answers is used by run, and a reading arrives")
  func configurationFromAnswers() async throws {
    try await withFixture(Self.planWithLogin()) { fixture in
      let devices = try await fixture.simulator.devices()
      let folder = fixture.folder.path + "/new"
      let path = folder + "/config.json"
      let setup = try start(fixture, ["--config", path])
      try await setup.answer("Who may open the page?", "network")
      try await setup.answer("Password for the page", "page-word")
      try await setup.answer("Broker", "127.0.0.1")
      try await setup.answer("TLS", "n")
      try await setup.answer("Port", "\(fixture.broker.port)")
      try await setup.answer("User name", "fixture")
      try await setup.answer("Password", "wrong-word")
      try await setup.shows("the broker rejected the login")
      try await setup.answer("What now?", "change")
      for question in ["Broker", "TLS", "Port", "User name"] { try await setup.answer(question, "") }
      try await setup.answer("Password", "secret")
      try await setup.shows("the gateway may publish and receive all that it needs")
      #expect((try? names(in: folder)) ?? [] == [])
      try await setup.answer("Which micro:bits?", "")
      try await setup.answer("Area", "Kitchen")
      try await setup.answer("Write this?", "")
      #expect(try await setup.exitStatus() == 0)
      #expect(setup.text.contains(":8484/"), "\(setup.text)")
      #expect(
        !setup.text.contains("page-word") && !setup.text.contains("secret")
          && !setup.text.contains("wrong-word"), "\(setup.text)")

      #expect(try names(in: folder) == ["config.json", "http.password", "mqtt-password"])
      var status = stat()
      #expect(stat(folder + "/mqtt-password", &status) == 0 && status.st_mode & 0o777 == 0o600)
      let gateway = try ChildProcess(
        try program("microbit-gateway"), ["run", "--config", path], environment: fixture.environment)
      let reading = try await fixture.message("\(devices[0].id)/temperature")
      #expect(Int(reading.text) != nil)
      gateway.signal(SIGTERM)
      #expect(try await gateway.exitStatus() == 0)
      let check = try ChildProcess(
        try program("microbit-gateway"), ["check", "--config", path], environment: fixture.environment)
      #expect(try await check.exitStatus() == 0)
      #expect(check.text.contains("\(path): valid"), "\(check.text)")
    }
  }

  @Test("In a browser: from an empty configuration to a reading, with the code that the command prints")
  func inABrowser() async throws {
    let port = try ReservedPort()
    try await withFixture(Self.planWithLogin()) { fixture in
      let devices = try await fixture.simulator.devices()
      let path = try fixture.folder.write(#"{"http":{"port":\#(port.number)}}"#, to: "empty.json")
      let gateway = try ChildProcess(
        try program("microbit-gateway"), ["run", "--config", path], environment: fixture.environment)
      _ = try await gateway.line(within: Fixture.patience) { $0.contains("started") }
      let setup = try await invitation(fixture)
      #expect(setup.status == 0 && setup.text.contains(":\(port.number)/"), "\(setup.text)")
      let code = try #require(setup.text.firstMatch(of: /[0-9A-Z]{4}-[0-9A-Z]{4}/)?.0)
      try await eventually("the code is in the log") { gateway.text.contains(code) }
      // Members of the group reach the socket, but may not set up.
      if geteuid() == 0 {
        try #require(chmod(fixture.folder.path, 0o755) == 0)
        let member = try ChildProcess(
          "/usr/bin/setpriv",
          ["--reuid=65534", "--clear-groups", try program("microbit-gateway"), "setup"],
          environment: fixture.environment)
        #expect(try await member.exitStatus(within: Fixture.patience) == 69)
        #expect(member.text.contains("only root may ask for the code") && !member.text.contains(code))
      }
      @Sendable func post(_ verb: String, _ more: String = "") async throws -> HTTPReply {
        try await HTTPReply(
          "POST /api/setup/\(verb)", port: port.number, body: #"{"code":"\#(code)"\#(more)}"#)
      }
      try await eventually("the micro:bits are listed") {
        try await post("situation").body.contains(#""name":"\#(devices[0].name)""#)
      }
      func submit(_ password: String) async throws -> HTTPReply {
        try await post(
          "submit",
          #","answers":{"page_password":"page word","host":"127.0.0.1","port":\#(fixture.broker.port),"#
            + #""username":"fixture","password":"\#(password)"}"#)
      }
      let rejected = try await submit("wrong")
      #expect(rejected.status == 409 && rejected.body.contains("rejected the login"), "\(rejected)")
      let before = text(path)
      let done = try await submit("secret")
      #expect(done.status == 200 && text(path) == before, "\(done)")
      let reading = try await fixture.message("\(devices[0].id)/temperature")
      #expect(Int(reading.text) != nil)
      try await eventually("the page asks for the password") {
        (try? await HTTPReply("GET /health", port: port.number).status) == 401
      }
      let login = ["Authorization: Basic YTpwYWdlIHdvcmQ="]
      #expect(try await HTTPReply("GET /api/devices", port: port.number, login).status == 200)
      #expect(try await post("situation").status == 401)
      let again = try await invitation(fixture)
      #expect(again.status == 69 && again.text.contains("the gateway is set up"), "\(again.text)")
      for name in ["http.password", "mqtt-password"] {
        var status = stat()
        #expect(stat("\(fixture.folder.path)/\(name)", &status) == 0 && status.st_mode & 0o777 == 0o600)
      }
      gateway.signal(SIGTERM)
      #expect(try await gateway.exitStatus() == 0)
    }
  }

  /// The command `setup`.
  private func invitation(_ fixture: Fixture) async throws -> (status: Int32, text: String) {
    let command = try ChildProcess(
      try program("microbit-gateway"), ["setup"], environment: fixture.environment)
    return (try await command.exitStatus(within: Fixture.patience), command.text)
  }

  @Test("A configuration that the gateway cannot write is not said to be set up")
  func readOnlyConfiguration() async throws {
    try await withFixture(Plan(devices: 0, absent: [.gateway, .observer])) { fixture in
      let folder = fixture.folder.path + "/closed"
      try #require(mkdir(folder, 0o700) == 0)
      let path = try fixture.folder.write("{}", to: "closed/config.json")
      try #require(chmod(folder, 0o555) == 0)
      defer { chmod(folder, 0o700) }
      // Permissions do not restrict root with all of its capabilities.
      let restricted = ["/usr/bin/setpriv", "--bounding-set=-dac_override", "--inh-caps=-dac_override"]
      let run = [try program("microbit-gateway"), "run", "--config", path]
      let words = (geteuid() == 0 ? restricted : []) + run
      let gateway = try ChildProcess(words[0], Array(words.dropFirst()), environment: fixture.environment)
      _ = try await gateway.line(within: Fixture.patience) { $0.contains("started") }
      let (status, text) = try await invitation(fixture)
      #expect(
        status == 69
          && text.contains("nothing is set up, and the gateway cannot write \(path): edit it, and restart"),
        "\(text)\n\(gateway.text)")
      gateway.signal(SIGTERM)
      #expect(try await gateway.exitStatus() == 0)
    }
  }

  @Test("The page for set-up follows a reload, and is there again when nothing is set up any more")
  func reloadedBeforeSetUp() async throws {
    let ports = (try ReservedPort(), try ReservedPort())
    let (port, another) = (ports.0.number, ports.1.number)
    try await withFixture(Plan(devices: 0, absent: [.gateway, .observer])) { fixture in
      let path = try fixture.folder.write(#"{"http":{"port":\#(port)}}"#, to: "empty.json")
      let gateway = try ChildProcess(
        try program("microbit-gateway"), ["run", "--config", path], environment: fixture.environment)
      _ = try await gateway.line(within: Fixture.patience) { $0.contains("started") }
      #expect(try await invitation(fixture).text.contains(":\(port)/"))
      for (text, answer) in [
        (#"{"http":{"port":\#(another)}}"#, ":\(another)/"), (#"{"fleet":true}"#, "the gateway is set up"),
        (#"{"http":{"port":\#(port)}}"#, ":\(port)/"),
      ] {
        try fixture.folder.write(text, to: "empty.json")
        gateway.signal(SIGHUP)
        try await eventually("\(text) is in force") {
          try await invitation(fixture).text.contains(answer)
        }
      }
      gateway.signal(SIGTERM)
      #expect(try await gateway.exitStatus() == 0)
    }
  }

  @Test("An interrupt at any question changes no file, and turns the terminal's echo on again")
  func interrupted() async throws {
    try await withFixture(Self.plan()) { fixture in
      let questions = [
        ("Who may open the page?", "computer"), ("Broker", "127.0.0.1"),
        ("TLS", ""), ("Port", "\(fixture.broker.port)"), ("User name", "u"), ("Password", "p"),
        ("Which micro:bits?", "all"), ("Area", ""), ("Write this?", ""),
      ]
      let folder = fixture.folder.path + "/kept"
      try #require(mkdir(folder, 0o700) == 0)
      let path = folder + "/config.json"
      let before = #"{"mqtt":{"host":"old"},"devices":[]}"#
      try fixture.folder.write(before, to: "kept/config.json")
      try await withThrowingTaskGroup(of: Void.self) { group in
        for last in questions.indices {
          for (key, status) in [("\u{3}", Int32(130)), ("\u{4}", 1)] {
            group.addTask {
              let setup = try start(fixture, ["--config", path])
              for (question, answer) in questions[..<last] { try await setup.answer(question, answer) }
              try await setup.shows(questions[last].0)
              try await setup.shows(": ")
              setup.type(key)
              #expect(try await setup.exitStatus() == status, "\(questions[last].0): \(setup.text)")
              #expect(setup.text.contains("nothing was changed"), "\(setup.text)")
              #expect(setup.isTypingShown)
            }
          }
          try await group.waitForAll()
        }
      }
      #expect(try names(in: folder) == ["config.json"] && text(path) == before)
    }
  }

  @Test("With all options given there are no questions, and an existing file is backed up")
  func unattended() async throws {
    try await withFixture(Self.plan()) { fixture in
      let device = try await fixture.simulator.device(0)
      let folder = fixture.folder.path + "/unattended"
      let options = ["--config", folder + "/config.json", "--yes", "--broker", "127.0.0.1", "--port"]
      let named = ["\(fixture.broker.port)", "--device", "\(device.address)=Kitchen,Ground floor"]
      let first = try await run(fixture, options + named)
      #expect(first.status == 0, "\(first.text)")
      let written = try #require(text(folder + "/config.json"))
      #expect(try names(in: folder) == ["config.json"])
      // The same options again.
      let same = try await run(fixture, options + named)
      #expect(same.status == 0 && same.text.contains("Nothing has to be changed"), "\(same.text)")
      let all = try await run(fixture, options + ["\(fixture.broker.port)", "--all"])
      #expect(all.status == 0, "\(all.text)")
      let files = try names(in: folder)
      let copy = try #require(files.first { $0.hasPrefix("config.json.bak-") })
      #expect(files.count == 2 && text("\(folder)/\(copy)") == written)
      let new = try JSON.parse(try #require(text(folder + "/config.json")))
      #expect(new["devices"]?.array?.count == 2)
      #expect(new["devices"]?.array?.first?["id"]?.string == "kitchen")
      // An unreachable broker or an invalid option changes nothing.
      let before = text(folder + "/config.json")
      for (arguments, expected, reason) in [
        (["1", "--all"], Int32(69), "check the port (usual: 1883, with TLS 8883)"),
        (["0", "--all"], 64, "--port: "),
        (["1883", "--device", "kitchen"], 64, "--device: kitchen"),
      ] {
        let (status, text) = try await run(fixture, options + arguments)
        #expect(status == expected && text.contains(reason), "\(status) \(text)")
      }
      #expect(try names(in: folder) == files && text(folder + "/config.json") == before)
    }
  }

  @Test("A full disk or an unwritable folder is reported, and no file is left")
  func unwritableFolder() async throws {
    try await withFixture(Self.plan()) { fixture in
      let options = ["--yes", "--all", "--no-test"]
      let path = fixture.folder.path + "/full.json"
      let full = try await run(
        fixture, ["--config", path] + options, prefix: ["/usr/bin/prlimit", "--fsize=10"])
      #expect(full.status == 1, "\(full.text)")
      #expect(
        full.text.contains("cannot write \(path): File too large. Nothing was changed."), "\(full.text)")
      #expect(try names(in: fixture.folder.path).allSatisfy { !$0.hasPrefix("full.json") })
      // No file can be created there, as on a read-only disk; reported before any question.
      let never = try await run(fixture, ["--config", "/dev/null/config.json"])
      #expect(
        never.status == 1 && never.text.hasPrefix("cannot write /dev/null/config.json: "), "\(never.text)")
    }
  }
}
