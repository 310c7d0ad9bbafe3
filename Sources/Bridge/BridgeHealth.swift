import Configuration
import Devices
import EventLoop
import JSON

extension Bridge: RequestHost {
  package func otherOwner(of device: DeviceDescription) -> GatewayID? {
    guard let publisher = publisher(device.identifier), !isResponsible(for: publisher),
      case .other(let gateway) = publisher.ownership.owner
    else { return nil }
    return gateway
  }

  package var health: JSONValue {
    let (adapter, known, online) = context.engine.assumeIsolated { engine in
      (engine.adapter, engine.deviceCount, engine.onlineCount)
    }
    // The broker is not checked: a request over MQTT shows that it is connected.
    var problems: [String] = []
    if !adapter.isOn { problems.append("the adapter is \(adapter.word)") }
    if let trouble = state.trouble { problems.append("changes will be lost on restart: \(trouble)") }
    return [
      "healthy": .bool(problems.isEmpty),
      "problems": .array(problems.map(JSONValue.string)),
      "run": .string(context.run.description),
      "version": .string(Version.current),
      "uptime": .integer(Int(Timestamp.now.milliseconds - context.started.milliseconds) / 1000),
      "resident_kib": ResidentMemory.kibibytes.map(JSONValue.integer),
      "adapter": .string(adapter.word),
      "devices": ["known": .integer(known), "online": .integer(online)],
    ]
  }
}
