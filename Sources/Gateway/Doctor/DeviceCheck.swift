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
  let stored: StoredGateway

  /// A device that the gateway would connect to.
  struct Candidate: Sendable {
    let peripheral: Peripheral
    let settings: DeviceSettings
  }

  /// What is in range, and the findings about what is not.
  /// - Parameter faults: of the scan: what is not in range is then unknown.
  func classify(
    _ found: [Peripheral], _ faults: [Finding]
  ) -> (candidates: [Candidate], findings: [Finding]) {
    var candidates: [Candidate] = []
    var findings: [Finding] = []
    /// What is heard in vain, by profile: of strangers, the first stands for all.
    var deaf: [String: Finding] = [:]
    var heard: Set<String> = []
    for peripheral in found {
      switch stored.assignment(peripheral.address, Advertisement(peripheral)) {
      case .here(let settings) where settings.isEnabled && !settings.profile.hasLinks:
        let profile = settings.profile
        if let lack = profile.lack(in: peripheral.advertised) {
          let finding = Finding.heardInVain(settings.shownID, lack, profile)
          if stored.configuration.names(peripheral.address) {
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
    let absent = notInRange(found)
    findings += absent
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

  /// The devices that the gateway knows, and that were not found.
  private func notInRange(_ found: [Peripheral]) -> [Finding] {
    let known = stored.configuration.devices.compactMap(\.match.identifier) + stored.withoutEntry
    return known.compactMap { address in
      // Bluetooth finds no sender by radio.
      guard address.radioSender == nil, !found.contains(where: { $0.address == address }),
        case .here(let settings) = stored.assignment(address, Advertisement()), settings.isEnabled
      else { return nil }
      return .notInRange(settings.shownID)
    }
  }

  /// Connects to a device, and reads what it offers.
  @LoopActor static func inspect(_ candidate: Candidate, by engine: DeviceManager) async -> Finding {
    let settings = candidate.settings
    do throws(RequestError) {
      let inspection = try await engine.inspect(.address(candidate.peripheral.address)) { _ in settings }
      return finding(inspection, settings.shownID, settings.profile, settings.pairing)
    } catch {
      return Trouble.connectFailed(error.reason)
        .finding(settings.shownID, settings.profile, settings.pairing)
    }
  }

  /// - Parameter profile: with the properties in use.
  static func finding(
    _ inspection: Inspection, _ name: String, _ profile: Profile, _ pairing: Configuration.PairingMode
  ) -> Finding {
    let used = Set(profile.properties.map(\.name))
    let lacks = inspection.missing.filter { used.contains($0.property) }
    guard inspection.fits else {
      let properties = lacks.map { Lacks.text($0.property, $0.reason) }
      let trouble = Trouble.unsuitable(
        lacks: Lacks(services: inspection.missingServices, properties: properties))
      return trouble.finding(name, profile, pairing)
    }
    let peripheral = inspection.peripheral
    for item in inspection.items {
      guard case .failure(let error) = item.value,
        let property = item.properties.map(\.name).first(where: used.contains)
      else { continue }
      let trouble =
        error.wantsPairing && !peripheral.isPaired
        ? Trouble.wantsPairing : .subscribeFailed("\(property): \(error)")
      return trouble.finding(name, profile, pairing)
    }
    let missing = lacks.map(\.property)
    guard missing.isEmpty || profile.isAutomatic else {
      guard profile.isBuiltIn else { return .notOffered(name, lacks, profile) }
      return .warning(
        .device, "\(name): does not offer \(missing.joined(separator: ", "))",
        remedy: """
          add the services to its program; if they are there, its memory for services is full (most of all of a \
          micro:bit V1): use fewer services
          """)
    }
    let details = [
      peripheral.name.map { Excerpt($0).description }, peripheral.rssi.map { "\($0) dBm" },
      peripheral.isPaired ? "paired" : "not paired",
      "offers \(profile.properties.map(\.name).filter { !missing.contains($0) }.joined(separator: ", "))",
    ].compactMap { $0 }
    return .ok(.device, "\(name): \(details.joined(separator: ", "))")
  }
}

extension DeviceSettings {
  /// The address unless it was given an id.
  fileprivate var shownID: String {
    source(of: \.id) == .default ? address.description : id.description
  }
}
