import Configuration
import Devices
import EventLoop
import Findings
import JSON
import Log

extension Bridge: RequestHost {
  package func otherOwner(of device: DeviceDescription) -> GatewayID? {
    guard let publisher = publisher(device.address), !isResponsible(for: publisher),
      case .other(let gateway) = publisher.owner
    else { return nil }
    return gateway
  }

  package func idElsewhere(of id: DeviceID) -> DeviceID? { publisher(id)?.elsewhere?.id }

  /// What the gateway publishes of itself.
  package var info: JSONValue { report.info.json }

  package var health: JSONValue {
    let engine = context.engine
    let findings =
      engine.findings + disagreements + (state.trouble.map { [Finding.stateNotWritable($0)] } ?? [])
      + fleetFindings
      + brokerFindings + [cautionFinding, pageFinding].compactMap { $0 }
    // A device's fault is not the gateway's.
    let problems = findings.filter { $0.level == .fault && $0.check != .device }.map(\.text)
    return [
      "healthy": .bool(problems.isEmpty),
      "problems": .array(problems.map(JSONValue.string)),
      "findings": .array(findings.map(\.json)),
      "run": .string(context.run.description),
      "version": .string(Version.current),
      "configuration": configurationFile.map {
        ["file": .string($0.path), "digest": .string($0.digest)]
      },
      "uptime": .integer(Int(context.begin.duration(to: .now).components.seconds)),
      "resident_kib": ResidentMemory.kibibytes.map(JSONValue.integer),
      "adapters": .array(engine.adapters.map(\.json)),
      "devices": ["known": .integer(engine.deviceCount), "online": .integer(engine.onlineCount)],
      "page": page.map(JSONValue.string),
    ]
  }

  /// What other gateways know of the same devices in another way.
  private var disagreements: [Finding] {
    publishers.compactMap(\.disagreement).sorted { $0.text < $1.text }
  }

  private var fleetFindings: [Finding] {
    guard let fleet = report.fleet else { return [] }
    let topic = context.topics.fleetConfiguration
    let version = fleet.version.map { " \($0)" } ?? ""
    guard let reason = fleet.reason else {
      return [.ok(.configuration, "version\(version) of \(topic) is in force")]
    }
    return [
      .warning(
        .configuration, "version\(version) of \(topic) was rejected: \(reason)",
        remedy: "correct the message, and publish it with another version")
    ]
  }

  private var brokerFindings: [Finding] {
    if admission.hasIDConflict {
      return [
        .fault(
          .gateway,
          "another gateway at this broker has the id \(context.gateway): this one publishes nothing",
          remedy: "give each its own gateway.id in config.json, then: sudo systemctl restart microbit-gateway"
        )
      ]
    }
    return report.isConnected
      ? []
      : [
        .fault(
          .broker,
          "the running gateway is not connected to the broker" + (report.failure.map { ": \($0)" } ?? ""),
          remedy: (report.hint.map { "\($0); " } ?? "")
            + "if mqtt in config.json was changed: sudo systemctl restart microbit-gateway")
      ]
  }
}

extension Finding {
  /// - Parameter reason: from the state database.
  fileprivate static func stateNotWritable(_ reason: String) -> Finding {
    .fault(
      .state, "changes will be lost on restart: \(reason)",
      remedy:
        "sudo chown -R microbit-gateway: /var/lib/microbit-gateway; sudo systemctl restart microbit-gateway"
        + " (that is the folder of the service); if its disk is full, free some space: df -h /var/lib")
  }
}
