import BlueZ
import Configuration
import Devices
import EventLoop
import Findings
import GATT
import JSON

/// The devices in range, while no gateway uses the adapter: it scans, and connects to those that the gateway would
/// connect to.
struct DeviceCheck {
  let configuration: Configuration
  /// What the gateway knows of devices: what has joined, was removed, or was changed by requests.
  let state: StoredState
  let gateway: GatewayID

  /// A device that the gateway would connect to.
  struct Candidate: Sendable {
    let peripheral: Peripheral
    let settings: DeviceSettings

    var name: String { settings.shownID }
  }

  private static let scanTime = Duration.seconds(8)

  /// What is in range, and the findings about what is not.
  @LoopActor func scan() async throws(CommandFailure) -> (candidates: [Candidate], findings: [Finding]) {
    let scan = try await LocalEngine.scan(configuration, state, for: Self.scanTime)
    return classify(scan.found, scan.faults)
  }

  /// - Parameter faults: of the scan: what is not in range is then unknown.
  func classify(
    _ found: [Peripheral], _ faults: [Finding]
  ) -> (candidates: [Candidate], findings: [Finding]) {
    var candidates: [Candidate] = []
    var findings: [Finding] = []
    let records = Dictionary(state.records.map { ($0.address, $0) }) { first, _ in first }
    func assignment(_ address: BluetoothAddress, _ advertisement: Advertisement) -> Assignment {
      configuration.assignment(address, advertisement, record: records[address], in: gateway)
    }
    /// What is heard in vain, by profile: of strangers, the first stands for all.
    var deaf: [String: Finding] = [:]
    var heard: Set<String> = []
    for peripheral in found {
      switch assignment(peripheral.address, Advertisement(peripheral)) {
      case .here(let settings) where settings.isEnabled && !settings.profile.hasLinks:
        let profile = settings.profile
        if let lack = profile.lack(in: peripheral.advertised) {
          let finding = Finding.heardInVain(settings.shownID, lack, profile)
          if configuration.names(peripheral.address) {
            findings.append(finding)
          } else if deaf[profile.name] == nil {
            deaf[profile.name] = finding
          }
          continue
        }
        heard.insert(profile.name)
        let signal = peripheral.rssi.map { ", \($0) dBm" } ?? ""
        findings.append(.ok(.device, "\(settings.id): heard, by discovery\(signal)"))
      case .here(let settings) where settings.isEnabled:
        candidates.append(Candidate(peripheral: peripheral, settings: settings))
      case .unmatched where peripheral.name?.hasPrefix(Profile.microbitNamePrefix) == true:
        findings.append(
          .warning(
            .device, "\(peripheral.address): a micro:bit that no entry of the configuration matches",
            remedy: "add it: sudo microbit-gateway init"))
      case .here, .elsewhere, .unmatched, .removed: break
      }
    }
    findings += deaf.filter { !heard.contains($0.key) }.values.sorted { $0.text < $1.text }
    guard faults.isEmpty else { return (candidates, findings + faults) }
    let named = configuration.devices.compactMap(\.match.identifier)
    let known = named + state.records.map(\.address).filter { !named.contains($0) }
    let absent = known.compactMap { address -> DeviceSettings? in
      // Bluetooth finds no sender by radio.
      guard address.radioSender == nil, !found.contains(where: { $0.address == address }),
        case .here(let settings) = assignment(address, Advertisement()), settings.isEnabled
      else { return nil }
      return settings
    }
    findings += absent.map { .notInRange($0.shownID) }
    let isHeard = findings.contains { $0.level == .ok || $0.code == "heard_in_vain" }
    if candidates.isEmpty, absent.isEmpty, !isHeard {
      findings.append(
        .warning(
          .device, "no device that the configuration matches is in range",
          remedy: """
            bring the micro:bit within a few metres and press reset; its program needs the Bluetooth services and, in \
            MakeCode's project settings, "No Pairing Required"; MicroPython has no Bluetooth, and a program that uses \
            radio has none either
            """))
    }
    return (candidates, findings)
  }

  /// Connects to a device, and reads what it offers.
  @LoopActor static func inspect(_ candidate: Candidate, by engine: LocalEngine) async -> [Finding] {
    do throws(RequestError) {
      let inspection = try await engine.inspect(
        candidate.peripheral.address, as: { _ in candidate.settings })
      return findings(inspection, candidate.name, candidate.settings.profile, candidate.settings.pairing)
    } catch {
      let trouble = Trouble.connectFailed(error.reason)
      return [trouble.finding(candidate.name, candidate.settings.profile, candidate.settings.pairing)]
    }
  }

  /// - Parameters:
  ///   - inspection: the response to the request `device/inspect`.
  ///   - profile: with the properties in use.
  static func findings(
    _ inspection: JSONValue, _ name: String, _ profile: Profile, _ pairing: Configuration.PairingMode
  ) -> [Finding] {
    let used = Set(profile.properties.map(\.name))
    let lacks: [(property: String, reason: String)] =
      if case .object(let missing) = inspection["missing"] {
        missing.members.map { (property: $0.name, reason: $0.value.shown) }.filter {
          used.contains($0.property)
        }
      } else {
        []
      }
    guard inspection["fits"] == .bool(true) else {
      let services = (inspection["missing_services"]?.elements ?? []).compactMap {
        $0.text.flatMap(BluetoothUUID.init)
      }
      let properties = lacks.map { Lacks.text($0.property, $0.reason) }
      let trouble = Trouble.unsuitable(lacks: Lacks(services: services, properties: properties))
      return [trouble.finding(name, profile, pairing)]
    }
    let isPaired = inspection["paired"] == .bool(true)
    let failures = (inspection["services"]?.elements ?? []).flatMap { $0["characteristics"]?.elements ?? [] }
      .compactMap { item -> (property: String, error: String, wantsPairing: Bool)? in
        let properties = item["property"]?.text?.split(separator: ",").map(String.init) ?? []
        guard let property = properties.first(where: used.contains) else { return nil }
        return item["error"]?.text.map { (property, $0, item["wants_pairing"] == .bool(true)) }
      }
    if let failure = failures.first {
      let trouble =
        failure.wantsPairing && !isPaired
        ? Trouble.wantsPairing : .subscribeFailed("\(failure.property): \(failure.error)")
      return [trouble.finding(name, profile, pairing)]
    }
    let missing = lacks.map(\.property)
    guard missing.isEmpty || profile.isAutomatic else {
      guard profile.isBuiltIn else { return [.notOffered(name, lacks, profile)] }
      return [
        .warning(
          .device, "\(name): does not offer \(missing.joined(separator: ", "))",
          remedy: """
            add the services to its program; if they are there, its memory for services is full (most of all of a \
            micro:bit V1): use fewer services
            """)
      ]
    }
    let details = [
      inspection["name"]?.text.map { Excerpt($0).description },
      inspection["rssi"]?.integer.map { "\($0) dBm" }, isPaired ? "paired" : "not paired",
      "offers \(profile.properties.map(\.name).filter { !missing.contains($0) }.joined(separator: ", "))",
    ].compactMap { $0 }
    return [.ok(.device, "\(name): \(details.joined(separator: ", "))")]
  }
}

extension DeviceSettings {
  /// The address unless it was given an id.
  fileprivate var shownID: String {
    source(of: \.id) == .default ? address.description : id.description
  }
}
