import BlueZ
import Configuration
import EventLoop
import GATT
import Glibc
import JSON

/// `init`: asks for what a configuration needs, tries it, and writes it.
public struct Setup: Sendable, Equatable {
  /// The options of the command line, such as `--broker`, with their values. What none answers is asked for.
  private let options: [String: [String]]
  /// How long to look for micro:bits.
  fileprivate let timeout: Duration

  /// A set-up of the command line.
  public init(_ options: [String: [String]] = [:], timeout: Duration? = nil) {
    self.options = options
    self.timeout = timeout ?? .seconds(10)
  }

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
      options["--config"]?.last ?? (geteuid() == 0 ? SetupFiles.serviceConfiguration : "./config.json")
    let present = PresentConfiguration(readingFrom: path)
    try await SetupRun(
      setup: self, console: console, interruption: interruption, present: present,
      files: SetupFiles(path: present.path), backup: SetupFiles.backupName(of: present.path)
    ).run()
  }

  /// How the user starts the gateway.
  static func closing(
    _ service: ServiceUnit.State, _ path: String, program: String, isRunning: Bool = false
  ) -> String {
    let run = "\(program.shellWord) run --config \(path.shellWord)"
    return switch service {
    case .running: "The running gateway uses this after: sudo systemctl restart microbit-gateway"
    case .stopped: "Start the gateway with: sudo systemctl enable --now microbit-gateway"
    case .absent where isRunning:
      "A gateway is running: to use this, end that one, and start it with: \(run)"
    case .absent: "Start the gateway with: \(run)"
    }
  }

  /// A text for someone who has answered questions and has not seen the keys of config.json.
  static func inWords(_ text: String) -> String {
    // The order matters: mqtt.tls begins other keys.
    let words = [
      ("mqtt.host", "the broker's name"), ("mqtt.port", "the port"), ("mqtt.username", "the user name"),
      ("mqtt.password_file", "the password"), ("mqtt.tls.ca_file", "the CA certificate"),
      ("mqtt.tls", "whether it needs TLS"),
    ]
    return text.split(separator: " ").map { word in
      words.first { word.hasPrefix($0.0) }.map { $0.1 + word.dropFirst($0.0.count) } ?? String(word)
    }.joined(separator: " ")
  }

  /// What the command line and the present file answer.
  func answers(
    _ present: PresentConfiguration, isOfService: Bool = false
  ) throws(CommandFailure) -> SetupAnswers {
    var answers = SetupAnswers(present)
    answers.given = options.compactMapValues(\.last)
    if has("--tls") || has("--ca-file") { answers.given["--tls"] = "y" }
    for text in options["--device"] ?? [] {
      let device = try SetupDevice(option: text, in: present)
      guard !answers.devices.contains(where: { $0.address == device.address }) else {
        throw CommandFailure(.usage, "--device: \(device.address) is given twice")
      }
      answers.devices.append(device)
    }
    answers.isChosen = has("--all") || has("--device")
    let keepsEvery = answers.isChosen && present.hasEveryMicrobit && present.hasOwnEntries
    answers.servesLater = has("--all") || keepsEvery
    // Micro:bits that the command line names are looked for too: a wrong address is noticed.
    if answers.isChosen, answers.devices.isEmpty { answers.candidates = [] }
    if isOfService, let access = ServiceAccess() { answers.isReadable = { access.obstacle(to: $0) == nil } }
    guard let passwordFile = answers.given["--password-file"] else { return answers }
    guard has("--username") || answers.mqtt["username"] != nil else {
      throw CommandFailure(.usage, "--password-file needs --username")
    }
    do throws(FileProblem) {
      let password = try ConfigurationFile.password(in: passwordFile)
      answers.given["--password-file"] = String(decoding: password, as: UTF8.self)
    } catch {
      throw CommandFailure(.usage, "--password-file \(passwordFile): \(error)")
    }
    return answers
  }
}

/// A run of `init`.
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
    var interview = SetupInterview(
      answers: try setup.answers(present, isOfService: files.isOfService), isUnattended: setup.isUnattended,
      triesBroker: !setup.has("--no-test"), backup: backup,
      reply: { [console] in await console.ask($0.text, isSecret: $0.isSecret) }, isBlocked: isBlocked,
      unblock: unblock, scan: scan,
      tryBroker: trouble)
    if !setup.isUnattended { await console.show(introduction) }
    guard let plan = try await interview.plan() else { return await console.show(["Nothing was changed."]) }
    try await write(plan)
    let service = await EventLoop.blocking { [files] in files.isOfService ? ServiceUnit().state : .absent }
    // Nothing has changed: a restart would only end the links.
    if plan.isEmpty, service == .running { return }
    // The configuration is written: that the input ends here is no error.
    var isAnswered = false
    if service != .absent {
      isAnswered = (try? await interview.ask([SetupQuestion.service(service)])) != nil
    }
    guard isAnswered, interview.answers.isAgreed else {
      let id = StateFolder.gatewayID(of: try interview.answers.configuration())
      let presence = GatewayCheck(gateway: id.description, environment: RuntimeFolder.environment)
        .connect()
      return await console.show([
        Setup.closing(
          service, present.path, program: ProgramArguments.all.first ?? "microbit-gateway",
          isRunning: presence.isRunning)
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

  private var introduction: [String] {
    var lines = [
      "This writes the configuration of the gateway: \(present.path)",
      "Press Enter to accept the answer in [brackets]. Ctrl-C ends this;",
      "nothing is changed before the last question.",
    ]
    if !setup.has("--config"), geteuid() != 0, access(SetupFiles.serviceConfiguration, F_OK) == 0 {
      lines += [
        "The installed service does not use this file, but \(SetupFiles.serviceConfiguration):",
        "for that one press Ctrl-C, and use: sudo microbit-gateway init",
      ]
    }
    guard let problem = present.problem else { return lines }
    return lines + [
      "", "The present file has errors. To keep what is in it, press Ctrl-C and correct it first;",
      "a copy of it is kept in any case.", problem,
    ]
  }

  // MARK: Steps

  private func isBlocked() -> Bool {
    RFKill.mayUnblock
      && present.configuration.bluetooth.adapters.contains { RFKill.block(ofAdapter: $0) == .software }
  }

  /// bluetoothd then turns the adapters on.
  @LoopActor private func unblock() async {
    let problem = RFKill.unblockBluetooth()
    await console.show([
      problem.map { "Bluetooth cannot be turned on: \($0). Try: sudo rfkill unblock bluetooth" }
        ?? "Bluetooth is no longer blocked."
    ])
  }

  @LoopActor private func scan(_ answers: SetupAnswers) async -> (found: [SetupDevice], problem: String?) {
    await console.show(["", "Looking for micro:bits for \(setup.timeout.components.seconds) s …"])
    var found: [SetupDevice] = []
    var problem: String?
    do throws(CommandFailure) {
      let scan = try await AdapterView.scan(
        present.configuration.bluetooth.adapters, for: setup.timeout)
      let signals = await GatewayAccess.signals()
      found = scan.found.map {
        SetupDevice(
          $0.address, name: $0.name, signal: $0.rssi ?? signals[$0.address.description],
          isConnected: $0.rssi == nil, in: present)
      }
      problem = scan.faults.first?.line
    } catch {
      problem = error.text
    }
    for device in answers.devices where !found.contains(where: { $0.address == device.address }) {
      await console.show(["Note: \(device.address) was not found: \(problem ?? "is the address right?")"])
    }
    let microbits = found.filter { $0.isConfigured || $0.name?.hasPrefix(Profile.microbitNamePrefix) == true }
    return (microbits, problem)
  }

  @LoopActor private func trouble(with configuration: Configuration) async -> [String] {
    let check = BrokersCheck(
      configuration, gateway: StateFolder.gatewayID(of: configuration))
    let places = check.brokers.map(\.description).joined(separator: ", ")
    await console.show(["", "Trying the broker \(places) …"])
    let findings = await check.run()
    let lines = findings.flatMap { finding in
      [finding.text] + (finding.remedy.map { ["  " + Setup.inWords($0)] } ?? [])
    }.map(Excerpt.harmless)
    let isUsable = findings.allSatisfy { $0.level != .fault }
    if isUsable { await console.show(lines) }
    return isUsable ? [] : lines
  }

  @LoopActor private func write(_ plan: SetupPlan) async throws(CommandFailure) {
    guard !plan.isEmpty else { return await console.show(["Nothing has to be changed in \(present.path)."]) }
    // The write is completed from here on: interruptions are ignored.
    interruption.action = { _ in }
    let result = await EventLoop.blocking { [files, backup] in
      Result { () throws(CommandFailure) in try files.write(plan, backup: backup) }
    }
    interruption.action = { exit(128 + $0) }
    let notes = try result.get()
    await console.show(["Written: \(present.path)"] + notes.map { "Note: \($0)" })
    do throws(ConfigurationFailure) {
      for warning in try ConfigurationFile.load(path: present.path).warnings {
        await console.show(["Note: \(warning)"])
      }
    } catch {
      throw CommandFailure(.configuration, error.description)
    }
  }
}
