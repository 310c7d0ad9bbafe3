import BlueZ
import Configuration
import EventLoop
import GATT
import Glibc
import JSON

/// `init`: asks for what a configuration needs, tries it, and writes it.
struct Setup: Sendable {
  /// The options of the command line, such as `--broker`, with their values. What none answers is asked for.
  var options: [String: [String]] = [:]

  func has(_ option: String) -> Bool { options[option] != nil }
  /// Whether all that is not given has its default, without questions.
  var isUnattended: Bool { has("--yes") }

  @LoopActor func run() async throws(CommandFailure) {
    let console = Console()
    let interruption = Interruption()
    interruption.action = { signal in
      console.showTyping()
      printError("\nInterrupted: nothing was changed.")
      exit(128 + signal)
    }
    let path =
      options["--config"]?.last ?? (geteuid() == 0 ? ConfigurationFile.service : "./config.json")
    let files = SetupFiles(path: path)
    try await SetupRun(
      setup: self, console: console, interruption: interruption,
      present: PresentConfiguration(readingFrom: path), files: files, backup: files.newBackup
    ).run()
  }

  /// A text for someone who has answered questions and has not seen the keys of config.json.
  static func inWords(_ text: String) -> String {
    // The order matters: mqtt.host and mqtt.tls begin other keys.
    let words = [
      ("mqtt.hosts", "a list of brokers"), ("mqtt.host", "the broker's name"), ("mqtt.port", "the port"),
      ("mqtt.username", "the user name"),
      ("mqtt.password_file", "the password"), ("mqtt.tls.ca_file", "the CA certificate"),
      ("mqtt.tls", "whether it needs TLS"),
    ]
    return text.split(separator: " ").map { word in
      words.first { word.hasPrefix($0.0) }.map { $0.1 + word.dropFirst($0.0.count) } ?? String(word)
    }.joined(separator: " ")
  }

  /// The answers by the options; passwords are those in the files that are named.
  func given(_ present: PresentConfiguration) throws(CommandFailure) -> [String: String] {
    var given = options.compactMapValues(\.last)
    if has("--all") {
      given["--all"] = "all"
    } else if has("--device"), !present.isThere {
      given["--all"] = "join"
    }
    let isEncrypted = ["--tls", "--ca-file", "--cert-file", "--key-file"].contains(where: has)
    if isEncrypted || given["--port"] == "8883" { given["--tls"] = "yes" }
    let present = present.configuration
    let network = SetupAnswers.Page.network.rawValue
    let page = given["--http"] ?? (isUnattended ? SetupAnswers.Page(present.http).rawValue : network)
    if has("--http-password-file"), !network.hasPrefix(page.lowercased()) {
      throw CommandFailure(.usage, "--http-password-file needs --http network")
    }
    if has("--password-file"), !has("--username"), present.mqtt.username == nil {
      throw CommandFailure(.usage, "--password-file needs --username")
    }
    for option in ["--password-file", "--http-password-file"] {
      guard let file = given[option] else { continue }
      do throws(FileProblem) {
        given[option] = String(decoding: try ConfigurationFile.password(in: file), as: UTF8.self)
      } catch {
        throw CommandFailure(.usage, "\(option) \(file): \(error)")
      }
    }
    return given
  }

  /// The present configuration, with the micro:bits that the options name.
  func answers(_ present: PresentConfiguration) throws(CommandFailure) -> SetupAnswers {
    var answers = SetupAnswers(present)
    do throws(SetupRefusal) {
      for device in options["--device"] ?? [] { try answers.addDevice(device) }
      try answers.checkNames()
    } catch {
      throw CommandFailure(.usage, "--device: \(error)")
    }
    return answers
  }
}

private struct SetupRun {
  let setup: Setup
  let console: Console
  let interruption: Interruption
  let present: PresentConfiguration
  let files: SetupFiles
  let backup: String

  @LoopActor func run() async throws(CommandFailure) {
    if let problem = files.problem { throw CommandFailure(.refused, problem) }
    if let problem = present.problem, setup.isUnattended {
      throw CommandFailure(
        .configuration, "\(problem)\nNothing was changed: correct it, or move the file away.")
    }
    var answers = try setup.answers(present)
    if files.isOfService, let access = ServiceAccess() {
      answers.isReadable = { access.obstacle(to: $0) == nil }
    }
    // Off the loop: a file can be standard input, at which the user types.
    let given = try await EventLoop.blocking { [setup, present] () throws(CommandFailure) in
      try setup.given(present)
    }
    var interview = SetupInterview(
      answers: answers, given: given, isUnattended: setup.isUnattended,
      triesBroker: !setup.has("--no-test"),
      reply: { [console] in await console.ask($0.text, isSecret: $0.isSecret) }, tryBroker: trouble)
    if !setup.isUnattended { await console.show(introduction) }
    let plan = try await interview.plan()
    let service = await EventLoop.blocking { [files] in files.isOfService ? ServiceUnit().state : .absent }
    if plan.isEmpty { await console.show(["Nothing has to be changed in \(present.path)."]) }
    // A restart would only end the links.
    if plan.isEmpty, service != .stopped { return }
    let consent = try await interview.choose(Self.question(plan, service), shown(plan), SetupConsent.yes)
    guard consent == .yes else { return await console.show(["Nothing was changed."]) }
    try await write(plan)
    if let text = RFKill.unblock(present.configuration.bluetooth.adapters) { await console.show([text]) }
    try await start(service)
    let http = try interview.answers.configuration().http
    if http.isEnabled {
      await console.show(["The page is at \(http.urls().joined(separator: " or "))"])
    }
  }

  private static func question(_ plan: SetupPlan, _ service: ServiceUnit.State) -> String {
    let write = plan.isEmpty ? "" : "Write this"
    return switch service {
    case .absent: "\(write)?"
    case .running: "\(write), and restart the gateway?"
    case .stopped where plan.isEmpty: "Start the gateway, now and whenever this computer starts?"
    case .stopped: "\(write), and start the gateway, now and whenever this computer starts?"
    }
  }

  private var introduction: [String] {
    var lines = [
      "This writes the configuration of the gateway: \(present.path)",
      "Press Enter to accept the answer in [brackets]. Ctrl-C ends this;",
      "nothing is changed before the last question.",
    ]
    if !setup.has("--config"), geteuid() != 0, access(ConfigurationFile.service, F_OK) == 0 {
      lines += [
        "The installed service does not use this file, but \(ConfigurationFile.service):",
        "for that one press Ctrl-C, and use: sudo microbit-gateway init",
      ]
    }
    guard let problem = present.problem else { return lines }
    return lines + [
      "", "The present file has errors. To keep what is in it, press Ctrl-C and correct it first;",
      "a copy of it is kept in any case.", problem,
    ]
  }

  /// What is to be written.
  private func shown(_ plan: SetupPlan) -> [String] {
    var lines = [""]
    if let text = plan.text {
      lines += ["\(present.document == nil ? "" : "Changes in ")\(present.path):", ""]
      lines += present.changes(to: text) + [""]
      if present.isThere { lines.append("The present file is kept as \(backup).") }
    }
    for name in plan.secrets.keys.sorted() {
      lines.append("The password goes to \(name) beside it, readable only by the gateway.")
    }
    return lines.map { Excerpt.harmless($0) }
  }

  @LoopActor private func trouble(with configuration: Configuration) async -> [String] {
    let check = ClusterCheck(
      configuration: configuration, gateway: StateFolder.gatewayID(of: configuration))
    let places = check.brokers.map(\.description).joined(separator: ", ")
    await console.show(["", "Trying the broker \(places) …"])
    let findings = await check.run()
    let lines = findings.flatMap { finding in
      [finding.text] + (finding.remedy.map { ["  " + Setup.inWords($0)] } ?? [])
    }.map { Excerpt.harmless($0) }
    let isUsable = findings.allSatisfy { $0.level != .fault }
    if isUsable { await console.show(lines) }
    return isUsable ? [] : lines
  }

  @LoopActor private func write(_ plan: SetupPlan) async throws(CommandFailure) {
    guard !plan.isEmpty else { return }
    // The write is completed from here on: interruptions are ignored.
    interruption.action = { _ in }
    let result = await EventLoop.blocking { [files, backup] in
      Result { () throws(CommandFailure) in try files.write(plan, backup: backup) }
    }
    interruption.action = { exit(128 + $0) }
    let notes = try result.get()
    await console.show(["Written: \(present.path)"] + notes.map { "Note: \($0)" })
    do throws(ConfigurationErrors) {
      for warning in try ConfigurationFile.load(path: present.path).warnings {
        await console.show(["Note: \(warning)"])
      }
    } catch {
      throw CommandFailure(.configuration, error.description)
    }
  }

  /// Starts the service, or says how to start the gateway.
  @LoopActor private func start(_ service: ServiceUnit.State) async throws(CommandFailure) {
    guard service != .absent else {
      let program = ProgramArguments.all.first ?? "microbit-gateway"
      return await console.show([
        "Start the gateway with: \(program.shellWord) run --config \(present.path.shellWord)"
      ])
    }
    guard await EventLoop.blocking({ ServiceUnit().start(again: service == .running) }) else {
      throw CommandFailure(
        .unavailable,
        "the service does not start: see journalctl -u microbit-gateway -n 20"
          + (present.isThere ? "; the earlier file is kept as \(backup)" : ""))
    }
    await console.show(["The gateway is running. Its readings: sudo microbit-gateway watch"])
  }
}

extension RFKill {
  /// Ends the blocking of the adapters by software, as on a new Raspberry Pi; bluetoothd then turns them on.
  /// - Returns: what came of it; nil: nothing had to be done, or this process may not.
  static func unblock(_ adapters: [String]) -> String? {
    guard mayUnblock, adapters.contains(where: { block(ofAdapter: $0) == .software }) else { return nil }
    guard let reason = unblockBluetooth() else { return "Bluetooth is no longer blocked." }
    return "Bluetooth cannot be turned on: \(reason). Try: sudo rfkill unblock bluetooth"
  }
}
