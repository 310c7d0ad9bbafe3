import Configuration
import Devices
import EventLoop
import Findings
import JSON

/// The running gateway, and what it knows.
enum GatewayCheck {
  /// - Parameters:
  ///   - health: the response to the request `health`.
  ///   - devices: the response to the request `devices`.
  static func findings(_ gateway: String, health: JSONValue, devices: JSONValue) -> [Finding] {
    let own = ["well", "findings"].flatMap { health[$0]?.elements ?? [] }.compactMap { Finding($0) }
    let version = health["version"]?.text ?? ""
    let minutes = (health["uptime"]?.integer ?? 0) / 60
    let running = Finding.ok(
      .gateway, "the gateway \(gateway) has been running for \(minutes) minute\(minutes == 1 ? "" : "s")")
    let outdated = Finding.warning(
      .gateway, "the gateway \(gateway) runs version \(version), and \(Version.current) is installed",
      remedy: "sudo systemctl restart microbit-gateway")
    let known = devices.elements.filter { device in
      let name = device["id"]?.text ?? ""
      return !own.contains { $0.check == .device && $0.text.hasPrefix("\(name): ") }
    }
    let adapters = health["adapters"]?.elements ?? []
    let page = health["page"]?.text.map { Finding.ok(.gateway, "its page for a browser is at \($0)") }
    return [version == Version.current ? running : outdated, page].compactMap { $0 } + own
      + known.compactMap { device($0, of: adapters) }
  }

  /// Whether config.json has changed since the running gateway read it. Blocks while it reads the file.
  /// - Parameters:
  ///   - health: the response to the request `health`.
  ///   - process: the gateway's; nil: it is not visible from here.
  static func changedConfiguration(_ health: JSONValue, process: UInt32?) -> Finding? {
    guard let file = health["configuration"]?["file"]?.text,
      let bytes = try? FileProblem.read(file),
      ConfigurationFile.digest(bytes) != health["configuration"]?["digest"]?.text
    else { return nil }
    let isValid = (try? ConfigurationFile.load(path: file, filesMayBeAway: true)) != nil
    return .warning(
      .configuration, "\(file) has changed since the running gateway read it",
      remedy: (isValid
        ? "" : "correct its mistakes first (microbit-gateway check --config \(file.shellWord)); then: ")
        + (file == ConfigurationFile.service
          ? "sudo systemctl reload microbit-gateway"
          : process.map { "kill -HUP \($0)" } ?? "restart the gateway"))
  }

  private static func device(_ json: JSONValue, of adapters: [JSONValue]) -> Finding? {
    guard let id = json["id"]?.text, let session = json["session"]?.text else { return nil }
    let isMonitored = adapters.contains { $0["name"] == json["adapter"] && $0["monitors"] == .bool(true) }
    let isSender = json.identifier?.radioSender != nil
    let way = isSender ? "radio" : isMonitored ? "advertisement monitors" : "discovery"
    let details = [
      session, json["rssi"]?.integer.map { "\($0) dBm" },
      session == SessionState.listening.rawValue
        ? (json["heard_per_minute"]?.integer).map { "heard \($0) times a minute, by \(way)" }
        : json["paired"] == .bool(true) ? "paired" : "not paired",
    ].compactMap { $0 }
    return .ok(.device, "\(id): \(details.joined(separator: ", "))")
  }
}

extension Finding {
  /// Whether this fault, found by `doctor` itself, is the one that a running gateway has found.
  func isSameCause(as other: Finding) -> Bool {
    guard level == .fault, other.level == .fault, check == other.check else { return false }
    return switch check {
    case .bus, .bluetoothd, .broker, .topics: true
    // The other one may be that of another adapter.
    default: text.hasPrefix(other.text)
    }
  }
}
