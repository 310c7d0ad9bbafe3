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
    let (adapters, known, online) = context.engine.assumeIsolated { engine in
      (engine.adapters, engine.deviceCount, engine.onlineCount)
    }
    // The broker is not checked: a request over MQTT shows that it is connected.
    var problems = adapters.filter { !$0.state.isOn }.map { "the adapter \($0.name) is \($0.state.word)" }
    if let trouble = state.trouble { problems.append("changes will be lost on restart: \(trouble)") }
    return [
      "healthy": .bool(problems.isEmpty),
      "problems": .array(problems.map(JSONValue.string)),
      "run": .string(context.run.description),
      "version": .string(Version.current),
      "uptime": .integer(Int(Timestamp.now.milliseconds - context.started.milliseconds) / 1000),
      "resident_kib": ResidentMemory.kibibytes.map(JSONValue.integer),
      "adapters": .array(adapters.map { BridgeInfo.Adapter($0).json }),
      "devices": ["known": .integer(known), "online": .integer(online)],
    ]
  }
}
