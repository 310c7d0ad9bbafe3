import Configuration
import Devices
import EventLoop
import Findings
import JSON
import Log
import MQTT

/// The state of the gateway itself: the answer to the request `health`.
package struct GatewayHealth: Sendable {
  let findings: [Finding]
  var run: RunID?
  /// The file that the configuration was read from, and the digest of its content.
  package var configuration: (path: String, digest: String)?
  /// The time in seconds.
  package var uptime = 0
  var adapters: [AdapterStatus] = []
  var devices = (known: 0, online: 0)
  /// Where the page for a browser is served; nil: it is not.
  var page: String?

  /// What does not work, or not well.
  package var troubles: [Finding] { findings.filter { $0.level != .ok } }
  /// The faults. That of a device is not the gateway's.
  package var problems: [String] {
    findings.filter { $0.level == .fault && $0.check != .device }.map(\.text)
  }
  package var isHealthy: Bool { problems.isEmpty }

  package var json: JSONValue {
    [
      "healthy": .bool(isHealthy),
      "problems": .array(problems.map(JSONValue.string)),
      "findings": .array(troubles.map(\.json)),
      "well": .array(findings.filter { $0.level == .ok }.map(\.json)),
      "run": run.map { .string($0.description) },
      "version": .string(Version.current),
      "configuration": configuration.map {
        ["file": .string($0.path), "digest": .string($0.digest)]
      },
      "uptime": .integer(uptime),
      "resident_kib": ResidentMemory.kibibytes.map(JSONValue.integer),
      "adapters": .array(adapters.map(\.json)),
      "devices": ["known": .integer(devices.known), "online": .integer(devices.online)],
      "page": page.map(JSONValue.string),
    ]
  }
}

extension Bridge {
  package var health: GatewayHealth {
    let engine = context.engine
    let ofFiles = [state.trouble.map(Finding.stateNotWritable), fleetFinding].compactMap { $0 }
    return GatewayHealth(
      findings: engine.findings + disagreements + absentGateways + ofFiles + brokerFindings
        + [spool.finding, caution.finding, pageFinding].compactMap { $0 },
      run: context.run, configuration: configurationFile,
      uptime: Int(context.started.moment.duration(to: .now).components.seconds), adapters: engine.adapters,
      devices: (engine.deviceCount, engine.onlineCount), page: page)
  }

  /// What other gateways know of the same devices in another way.
  private var disagreements: [Finding] {
    Array(publishers.all.compactMap(\.disagreement).sorted { $0.text < $1.text }.prefix(100))
  }

  /// Other gateways that devices are pinned to, and that are not online: no gateway has these devices.
  private var absentGateways: [Finding] {
    // Who is online is known when what is retained has arrived.
    guard report.isConnected, ownership.isAdmitted else { return [] }
    let absent = context.engine.pinnedElsewhere.filter { !ownership.state.online.contains($0.key) }
    return absent.sorted { $0.key.description < $1.key.description }.prefix(20).map { gateway, devices in
      let names = devices.sorted().prefix(5).joined(separator: ", ")
      let more = devices.count > 5 ? " and \(devices.count - 5) more" : ""
      return .warning(
        .gateway,
        "devices are pinned to the gateway \(gateway), which is not online at this broker: \(names)\(more)",
        remedy: "start that gateway, or correct \"gateway\" in config.json, or, if a request has pinned them,"
          + " device/add them by their addresses"
      ).coded("gateway_absent", ["reason": "\(gateway): \(names)\(more)"])
    }
  }

  private var fleetFinding: Finding? {
    guard let fleet = report.fleet else { return nil }
    let topic = context.topics.fleetConfiguration
    let message = fleet.version.map { "version \($0)" } ?? "the message"
    guard let reason = fleet.reason else {
      return .ok(.configuration, "\(message) of \(topic) is in force")
    }
    return .warning(
      .configuration, "\(message) of \(topic) was rejected: \(reason)",
      remedy: "correct the message, and publish it with another version")
  }

  private var brokerFindings: [Finding] {
    // While the broker cannot be reached, nobody knows whether the other gateway still has the id.
    if ownership.state.idGuard.hasConflict, report.failure == nil {
      return [
        .fault(
          .gateway,
          "another gateway at this broker has the id \(context.gateway): this one publishes nothing",
          remedy: "give each its own gateway.id in config.json, then: sudo systemctl restart microbit-gateway"
        ).coded("same_gateway_id", [:])
      ]
    }
    if report.isConnected {
      if let topic = context.mqtt.unacknowledged {
        let error = MQTTError.unacknowledged(topic)
        return [
          .fault(.broker, "\(error)", remedy: error.hint(at: context.mqtt.broker) ?? "")
            .coded("no_broker", ["reason": "\(error)", "cause": error.code])
        ]
      }
      return refusals.findings(
        isDeaf: ownership.state.barriers.isLate,
        subscription: context.mqtt.refusedSubscription { context.isOwn($0.string) }, isMQTT5: context.isMQTT5,
        remedy: Finding.aclRemedy(
          base: context.topics.base, prefix: context.configuration.homeAssistant.prefix,
          user: context.configuration.mqtt.username), at: .now)
    }
    let restart = "if mqtt in config.json was changed: sudo systemctl restart microbit-gateway"
    return [
      .fault(
        .broker,
        "the running gateway is not connected to the broker" + (report.failure.map { ": \($0)" } ?? ""),
        remedy: report.failure == nil
          ? restart : report.hint.map { "\($0); \(restart)" } ?? "see the broker's log"
      ).coded("no_broker", ["reason": report.failure.map { "\($0)" }, "cause": report.failure?.code])
    ]
  }
}

extension Finding {
  /// For a file of the state folder that cannot be used.
  static let stateRemedy =
    "if its disk is full, free some space: df -h /var/lib; if it belongs to another user (the folder of the service): "
    + "sudo chown -R microbit-gateway: /var/lib/microbit-gateway"

  fileprivate static func stateNotWritable(_ reason: String) -> Finding {
    .fault(
      .state, "changes will be lost on restart: \(reason)", remedy: stateRemedy
    ).coded("state_not_writable", ["reason": reason])
  }
}
