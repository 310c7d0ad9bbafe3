import Configuration
import Devices
import EventLoop
import Findings
import JSON

extension Bridge: RequestHost {
  package func otherOwner(of device: DeviceDescription) -> GatewayID? {
    guard let publisher = publisher(device.identifier), !isResponsible(for: publisher),
      case .other(let gateway) = publisher.ownership.owner
    else { return nil }
    return gateway
  }

  package var health: JSONValue {
    let (adapters, known, online, found) = context.engine.assumeIsolated { engine in
      (engine.adapters, engine.deviceCount, engine.onlineCount, engine.findings)
    }
    // The broker is not checked: a request over MQTT shows that it is connected.
    let findings = found + (state.trouble.map { [Finding.stateNotWritable($0)] } ?? [])
    // A fault of a device is none of the gateway.
    let problems = findings.filter { $0.level == .fault && $0.check != .device }.map(\.text)
    return [
      "healthy": .bool(problems.isEmpty),
      "problems": .array(problems.map(JSONValue.string)),
      "findings": .array(findings.map(\.json)),
      "run": .string(context.run.description),
      "version": .string(Version.current),
      "uptime": .integer(Int(Timestamp.now.milliseconds - context.started.milliseconds) / 1000),
      "resident_kib": ResidentMemory.kibibytes.map(JSONValue.integer),
      "adapters": .array(adapters.map { BridgeInfo.Adapter($0).json }),
      "devices": ["known": .integer(known), "online": .integer(online)],
    ]
  }
}

extension Finding {
  /// - Parameter reason: from the state database.
  package static func stateNotWritable(_ reason: String) -> Finding {
    .fault(
      .state, "changes will be lost on restart: \(reason)",
      remedy: "check the owner and the permissions of the state folder, and the free space of its disk")
  }
}
