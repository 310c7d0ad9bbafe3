import BlueZ
import Configuration
import Devices
import EventLoop
import Findings
import GATT
import Glibc
import JSON

/// `init`: asks for what a configuration needs, tries it, and writes it.
public struct Setup: Sendable, Equatable {
  /// The file to write; nil: that of the service as root, else `config.json` in the working folder.
  public var configuration: String?
  /// `ADDRESS`, `ADDRESS=NAME` or `ADDRESS=NAME,AREA`.
  public var devices: [String] = []
  /// Whether every micro:bit in range is used.
  public var usesAll = false
  /// The broker's name or address.
  public var broker: String?
  /// The broker's port.
  public var port: String?
  /// Whether the connection uses TLS; false: it is asked for.
  public var isEncrypted = false
  /// The certificates trusted to sign the broker's.
  public var caFile: String?
  /// The user name at the broker.
  public var username: String?
  /// The file whose first line is the password.
  public var passwordFile: String?
  /// Whether the broker is tried.
  public var triesBroker = true
  /// Whether all that is not given has its default, without questions.
  public var isUnattended = false
  /// How long to look for micro:bits.
  public var timeout: Duration?

  /// All is asked for.
  public init() {}

  func run(on loop: EventLoop) async -> GatewayCommand.ExitStatus {
    let console = SetupConsole(on: loop)
    let interruption = Interruption(on: loop)
    interruption.action = { signal in
      console.showTyping()
      printError("\nInterrupted: nothing was changed.")
      exit(128 + signal)
    }
    let status: GatewayCommand.ExitStatus
    do throws(CommandFailure) {
      status = try await SetupRun(self, console, interruption, loop).run()
      await console.finish()
    } catch {
      await console.finish()
      printError(error.text)
      status = error.status
    }
    return status
  }
}

/// A run of `init`: carries out the steps of its dialogue.
private final class SetupRun {
  private let setup: Setup
  private let console: SetupConsole
  private let interruption: Interruption
  private let loop: EventLoop
  private let files: SetupFiles
  private let present: PresentConfiguration
  private var dialogue: SetupDialogue

  init(
    _ setup: Setup, _ console: SetupConsole, _ interruption: Interruption, _ loop: EventLoop
  ) throws(CommandFailure) {
    self.setup = setup
    self.console = console
    self.interruption = interruption
    self.loop = loop
    let path = setup.configuration ?? (geteuid() == 0 ? SetupFiles.serviceConfiguration : "./config.json")
    present = PresentConfiguration(readingFrom: path)
    files = SetupFiles(path: present.path)
    if let problem = files.problem { throw CommandFailure(.refused, problem) }
    if setup.isUnattended, let problem = present.problem {
      throw CommandFailure(
        .configuration, "\(problem)\nNothing was changed: correct it, or move the file away.")
    }
    dialogue = try setup.dialogue(present, backup: SetupFiles.backupName(of: present.path))
  }

  func run() async throws(CommandFailure) -> GatewayCommand.ExitStatus {
    if !setup.isUnattended { console.show(introduction) }
    if let problem = present.problem { console.show(["", "The present file has errors:", problem]) }
    var step = dialogue.start()
    while true {
      switch step {
      case .ask(let question):
        guard let answer = await console.ask(question) else {
          if question.topic == .service {
            console.show([""] + dialogue.closing)
            return .done
          }
          throw CommandFailure(.refused, "\nThe input has ended: nothing was changed.")
        }
        step = dialogue.answer(answer)
      case .scan: step = await scan()
      case .tryBroker(let configuration): step = dialogue.brokerTried(await trouble(with: configuration))
      case .write(let plan):
        try await write(plan)
        let files = files
        step = dialogue.written(
          await EventLoop.blocking { files.isOfService ? ServiceUnit().state : .absent }, isRunning: isRunning
        )
      case .useService(let restart):
        try await useService(restart)
        return .done
      case .end(let lines):
        console.show(lines)
        return .done
      case .fail(let failure): throw failure
      }
    }
  }

  private var introduction: [String] {
    [
      "This writes the configuration of the gateway: \(present.path)",
      "Press Enter to accept the answer in [brackets]. Ctrl-C ends this;",
      "nothing is changed before the last question.",
    ]
      + (present.problem == nil
        ? []
        : ["To keep what is in it, press Ctrl-C and correct it first; a copy of it is kept in any case."])
      + (setup.configuration == nil && geteuid() != 0 && access(SetupFiles.serviceConfiguration, F_OK) == 0
        ? [
          "The installed service does not use this file, but \(SetupFiles.serviceConfiguration): for that one press",
          "Ctrl-C, and use: sudo microbit-gateway init",
        ] : [])
  }

  // MARK: Steps

  private func scan() async -> SetupDialogue.Step {
    let limit = setup.timeout ?? .seconds(10)
    console.show(["", "Looking for micro:bits for \(limit.components.seconds) s …"])
    let found = Found()
    let view = AdapterView(adapters: present.configuration.bluetooth.adapters, loop: loop) {
      found.request.add($0)
    }
    var problem: String?
    do throws(CommandFailure) {
      try await view.start()
      await view.scan()
      try? await loop.sleep(for: limit)
      problem = await view.scanFindings.first?.line
    } catch {
      problem = error.text
    }
    await view.stop()
    let candidates = found.request.peripherals.compactMap(candidate)
    let inRange = Set(found.request.peripherals.map(\.address))
    for device in dialogue.microbits.devices where !inRange.contains(device.address) {
      console.show(["Note: \(device.address) was not found: \(problem ?? "is the address right?")"])
    }
    if candidates.isEmpty, let problem { return dialogue.scanFailed(problem) }
    return dialogue.found(candidates)
  }

  private final class Found {
    var request = ScanRequest()
  }

  private func candidate(_ peripheral: Peripheral) -> SetupCandidate? {
    let isMicrobit =
      peripheral.name?.hasPrefix(SetupDocument.prefix) == true || present.entry(of: peripheral.address) != nil
    guard isMicrobit, peripheral.rssi != nil || peripheral.isConnected else { return nil }
    return SetupCandidate(
      address: peripheral.address, name: peripheral.name, signal: peripheral.rssi.map { Int($0) })
  }

  /// Whether a gateway with the id of the written configuration runs.
  private var isRunning: Bool {
    guard case .success(let configuration) = dialogue.configuration else { return false }
    let id = StateFolder.gatewayID(of: configuration)
    let presence = GatewayCheck(gateway: id.description, environment: RuntimeFolder.environment)
      .connect(on: loop)
    if case .running(_, let client) = presence { client.close() }
    if case .absent = presence { return false }
    return true
  }

  private func trouble(with configuration: Configuration) async -> [String] {
    console.show(["", "Trying the broker \(configuration.mqtt.host):\(configuration.mqtt.port) …"])
    let findings = await BrokerCheck(
      configuration, gateway: StateFolder.gatewayID(of: configuration), loop: loop
    ).run()
    let lines = findings.flatMap { finding in
      [Excerpt.harmless(finding.text)]
        + (finding.remedy.map { ["  " + Excerpt.harmless(SetupBroker.inWords($0))] } ?? [])
    }
    if findings.contains(where: { $0.level == .fault }) { return lines }
    console.show(lines)
    return []
  }

  private func write(_ plan: SetupPlan) async throws(CommandFailure) {
    guard !plan.isEmpty else { return console.show(["Nothing has to be changed in \(present.path)."]) }
    // From here on it is completed.
    interruption.action = { _ in }
    let (files, backup) = (files, dialogue.backup)
    let result = await EventLoop.blocking { () -> Result<[String], CommandFailure> in
      do throws(CommandFailure) {
        return .success(try files.write(plan, backup: backup))
      } catch {
        return .failure(error)
      }
    }
    interruption.action = { exit(128 + $0) }
    let notes = try result.get()
    console.show(["Written: \(present.path)"] + notes.map { "Note: \($0)" })
    do throws(ConfigurationFailure) {
      for warning in try ConfigurationFile.load(path: present.path).warnings {
        console.show(["Note: \(warning)"])
      }
    } catch {
      throw CommandFailure(.configuration, error.description)
    }
  }

  private func useService(_ restart: Bool) async throws(CommandFailure) {
    let isRunning = await EventLoop.blocking { ServiceUnit().start(again: restart) }
    guard isRunning else {
      throw CommandFailure(
        .unavailable,
        "the service does not start: see journalctl -u microbit-gateway -n 20"
          + (present.isThere ? "; the earlier file is kept as \(dialogue.backup)" : ""))
    }
    console.show(["The gateway is running. Its readings: sudo microbit-gateway watch"])
  }
}
