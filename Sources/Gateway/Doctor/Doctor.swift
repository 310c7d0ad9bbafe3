import BlueZ
import Configuration
import Devices
import EventLoop
import Findings
import Glibc
import JSON

/// `doctor`: finds what is wrong with the configuration, the machine, Bluetooth, the broker and the devices, and what
/// to do about it. The checks run in order; none of them can hold up the others.
@LoopActor final class Doctor {
  private let path: String?
  private let json: Bool
  private let interruption = Interruption()
  private var findings: [Finding] = []
  private let environment = StateFolder.environment

  /// The limit of checks of this machine.
  private static let limit = Duration.seconds(10)
  private static let brokerLimit = Duration.seconds(30)
  private static let scanTime = Duration.seconds(8)
  private static let scanLimit = Duration.seconds(30)
  /// Until an adapter is on.
  private static let startLimit = Duration.seconds(60)
  /// Devices that are connected to; the others are not checked.
  private static let mostInspections = 8

  init(configuration: String?, json: Bool) {
    (path, self.json) = (configuration, json)
  }

  func run() async throws(CommandFailure) {
    let check = ConfigurationCheck(path: path)
    let file =
      await blocking(.configuration) { check.run() } ?? ConfigurationCheck.Outcome(isUnreadable: true)
    report(file.findings)
    let gateway = file.gateway ?? StateFolder.gatewayID(of: Configuration())
    if let finding = StateFolder.unknownID(of: file.configuration) { report(finding) }
    await report(.clock) { [ClockCheck().run()] }
    let presence = GatewayAccess.presence(file.gateway?.description, environment)
    let state = StateCheck(gateway: gateway, environment: environment)
    let (isRunning, isAnswered): (Bool, Bool) =
      switch presence {
      case .absent, .hidden: (false, false)
      case .denied: (true, false)
      case .running: (true, true)
      }
    await report(.state) { isAnswered ? state.space() : state.run() }
    var stored = StoredGateway(configuration: file.configuration, id: gateway)
    stored = await blocking(.state) { [stored] in stored.withState(of: file.file) } ?? stored
    let isUsable = await checkBluetooth(&stored, isRunning: isRunning)
    await checkBroker(file, gateway)
    await checkGateway(presence, gateway)
    if case .absent = presence {
      let radio = file.configuration.radio
      if radio.isEnabled { await report(.radio) { RadioCheck(ports: radio.ports).run() } }
      if isUsable, isValid(file, ["devices", "profiles", "profiles_directory"], for: .device) {
        await checkDevices(stored)
      }
    }
    try summarize()
  }

  /// Prints the number of faults and warnings, or all findings as JSON; fails if there is a fault.
  private func summarize() throws(CommandFailure) {
    func count(_ number: Int, _ word: String) -> String { "\(number) \(word)\(number == 1 ? "" : "s")" }
    let faults = findings.count { $0.level == .fault }
    let warnings = findings.count { $0.level == .warning }
    printOutput(
      json
        ? JSONValue.array(findings.map(\.json)).written
        : "\(count(faults, "fault")), \(count(warnings, "warning"))")
    if faults > 0 { throw CommandFailure(.refused) }
  }

  private func checkGateway(_ presence: GatewayAccess.Presence, _ gateway: GatewayID) async {
    switch presence {
    case .running(let running):
      // Of several, the first one is asked.
      for other in running.dropFirst() { other.close() }
      await checkRunning(running[0])
      running[0].close()
    case .denied(let gateway, let path):
      report(
        .warning(
          .gateway, "the gateway \(gateway) runs, and what it knows is not checked",
          remedy: RuntimeFolder.denial(path, gateway: gateway)))
    case .hidden(let folder):
      report(
        .warning(
          .gateway, "whether the gateway \(gateway) runs is not known: \(folder) is closed to you",
          remedy: "sudo microbit-gateway doctor"))
    case .absent:
      let service = await blocking(.gateway) { ServiceUnit().state }
      let log = "journalctl -u microbit-gateway -n 20"
      let finding: Finding =
        switch service {
        case .stopped:
          .warning(
            .gateway, "the gateway \(gateway) is not running, although the service is installed",
            remedy: "sudo systemctl enable --now microbit-gateway; if it ends: \(log)")
        case .running:
          .warning(
            .gateway, "the service runs, but no gateway \(gateway) answers: it starts, or waits", remedy: log)
        case .absent, nil: .ok(.gateway, "the gateway \(gateway) is not running")
        }
      report(finding)
    }
  }

  /// Findings are printed as they come, or at the end as JSON.
  private func report(_ new: [Finding]) {
    findings += new
    if !json { for line in new.flatMap(\.lines) { printOutput(line) } }
  }

  private func report(_ finding: Finding) { report([finding]) }

  /// Reports what a check of this machine finds.
  private func report(_ name: Finding.Check, _ check: @escaping @Sendable () -> [Finding?]) async {
    report(await blocking(name, check)?.compactMap { $0 } ?? [])
  }

  /// The result of a check of this machine, which blocks; nil, with a finding, if it takes too long.
  private func blocking<T: Sendable>(
    _ check: Finding.Check, _ body: @escaping @Sendable () -> T
  ) async -> T? {
    await within(Self.limit, check) { await EventLoop.blocking(body) }
  }

  /// The result of `body`; nil, with a finding, if it takes too long. It is then left alone.
  private func within<T: Sendable>(
    _ limit: Duration, _ check: Finding.Check, _ body: @escaping @LoopActor () async -> T
  ) async -> T? {
    let result = await loop.result(within: limit, of: body)
    if result == nil {
      report(
        .fault(
          check, "no result within \(limit.components.seconds) s",
          remedy: "try again; a disk, a network or a daemon that hangs may be the cause: sudo dmesg | tail"))
    }
    return result
  }

  /// - Returns: whether an adapter can be used, and no gateway uses one.
  private func checkBluetooth(_ stored: inout StoredGateway, isRunning: Bool) async -> Bool {
    let bluetooth = stored.configuration.bluetooth
    guard let host = await within(Self.limit, .bus, { await HostReport.read() }) else { return false }
    var version: BluetoothdVersion?
    if let process = host.bluetoothd {
      version = await blocking(.bluetoothd) { BluetoothdVersion.ofProcess(process) } ?? nil
    }
    if stored.adapters.isEmpty, isRunning { stored.adapters = host.held(as: bluetooth.adapters) }
    let adapters = bluetooth.selections(stored.adapters)
    let names = adapters.map { $0.choose(from: host.addresses) }
    let used = host.adapters.filter { names.contains($0.name) }
    let held = used.filter { $0.gateway != nil }
    report(
      AdapterCheck(
        report: host, adapters: adapters, version: version,
        blocks: names.reduce(into: [:]) { $0[$1] = RFKill.block(ofAdapter: $1) },
        mostLinks: bluetooth.links, isGatewayRunning: isRunning || !held.isEmpty
      ).run())
    for name in names { await report(.wifi) { [WiFiCheck(adapter: name).run()] } }
    guard !isRunning else { return false }
    for adapter in held { report(self.held(adapter.name, by: adapter.gateway ?? 0)) }
    return held.isEmpty && used.contains(where: \.isPowered)
  }

  /// The finding about an adapter that another gateway than the configured one holds.
  private func held(_ adapter: String, by process: Int32) -> Finding {
    let finding = CentralState.adapterInUse(by: process > 0 ? process : nil).finding(adapter: adapter)
    guard let user = RuntimeFolder.owner(ofProcess: process), user != FileProblem.name(ofUser: getuid())
    else { return finding }
    let ask = "ask it as that user: sudo -u \(user) microbit-gateway doctor"
    if getuid() != 0 {
      // It may be the one that is examined.
      return .warning(
        .adapter,
        "adapter \(adapter) is used by a gateway of the user \(user) (process \(process)), which you may not ask",
        remedy: user == ServiceAccess.user ? "sudo microbit-gateway doctor" : ask)
    }
    return .fault(
      .adapter, "\(finding.text), of the user \(user)", remedy: "\(ask); or \(finding.remedy ?? "")")
  }

  private func checkBroker(_ file: ConfigurationCheck.Outcome, _ gateway: GatewayID) async {
    guard isValid(file, ["mqtt"], for: .broker) else { return }
    let check = ClusterCheck(configuration: file.configuration, gateway: gateway)
    report(await within(Self.brokerLimit * check.brokers.count, .broker) { await check.run() } ?? [])
  }

  /// Whether these keys of the configuration can be used; otherwise reports that `check` is left out.
  private func isValid(
    _ file: ConfigurationCheck.Outcome, _ keys: Set<String>, for check: Finding.Check
  ) -> Bool {
    if !file.isUnreadable, file.broken.isDisjoint(with: keys) { return true }
    let reason =
      file.isUnreadable
      ? "the configuration cannot be read"
      : "the configuration has errors in \(keys.intersection(file.broken).sorted().joined(separator: ", "))"
    report(
      .warning(check, "not checked, as \(reason)", remedy: "see configuration above; then run doctor again"))
    return false
  }

  // MARK: Devices

  private func checkRunning(_ access: GatewayAccess) async {
    let (gateway, client) = (access.gateway, access.client)
    do throws(RequestError) {
      let health = try await client.request("health", within: Self.limit)
      let devices = try await client.request("devices", within: Self.limit)
      await report(.configuration) { [process = client.process] in
        [GatewayCheck.changedConfiguration(health, process: process)]
      }
      let reported = findings.filter { $0.level == .fault }
      report(
        GatewayCheck.findings(gateway, health: health, devices: devices).filter { finding in
          !reported.contains { $0.isSameCause(as: finding) }
        })
    } catch {
      report(
        .fault(
          .gateway, "the gateway \(gateway): \(error.reason)",
          remedy: (client.isServed
            ? "" : "end programs that are connected to it, such as microbit-gateway watch; else: ")
            + "sudo systemctl restart microbit-gateway"))
    }
  }

  private func checkDevices(_ stored: StoredGateway) async {
    typealias Scanned = Result<(found: [Peripheral], faults: [Finding]), CommandFailure>
    let scan = await within(Self.scanLimit, .device) { () async -> Scanned in
      do throws(CommandFailure) {
        return .success(try await LocalEngine.scan(stored, for: Self.scanTime))
      } catch {
        return .failure(error)
      }
    }
    do throws(CommandFailure) {
      guard let (found, faults) = try scan?.get() else { return }
      let (candidates, findings) = DeviceCheck(stored: stored).classify(found, faults)
      report(findings)
      if candidates.isEmpty { return }
      let local = try await LocalEngine.start(
        stored, timeout: Self.startLimit, forInspections: interruption)
      for candidate in candidates.prefix(Self.mostInspections) {
        let finding = await within(DeviceManager.inspectionLimit, .device) {
          await DeviceCheck.inspect(candidate, by: local.engine)
        }
        if let finding { report(finding) }
      }
      await local.stop()
    } catch {
      report(.fault(.device, error.text, remedy: "sudo systemctl restart bluetooth"))
    }
  }
}

extension Finding {
  /// The finding, and the remedy below it.
  var lines: [String] {
    let head = padded(level.rawValue, 9) + padded(check.rawValue, 16)
    return [head + Excerpt.harmless(text)]
      + (remedy.map { [padded("", head.count) + "→ " + Excerpt.harmless($0)] } ?? [])
  }
}
