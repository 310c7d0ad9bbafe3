import JSON

/// What `devices` prints: a row for each device of the gateway.
struct DeviceList {
  private static let header = ["ID", "NAME", "AREA", "STATE", "SIGNAL", "PROPERTIES"]

  let lines: [String]

  /// - Parameters:
  ///   - devices: the answer to the request `devices`.
  ///   - gateway: the id of the gateway that has answered.
  init(_ devices: JSONValue, gateway: String) {
    let rows = devices.elements.map { device -> [String] in
      let signal = device["rssi"].map { "\($0.shown) dBm" }
      let properties = device["properties"]?.elements.map(\.shown) ?? []
      let names = ["id", "name", "area"].map { device[$0]?.shown ?? "-" }
      return names + [Self.state(device, gateway), signal ?? "-", properties.joined(separator: ", ")]
    }
    let ofFleet = devices.elements.filter { $0["fleet"] == .bool(true) }.compactMap { $0["id"]?.shown }
    lines =
      (rows.isEmpty ? [] : aligned([Self.header] + rows))
      + (ofFleet.isEmpty ? [] : ["", "by the fleet's configuration: \(ofFleet.joined(separator: ", "))"])
  }

  private static func state(_ device: JSONValue, _ gateway: String) -> String {
    if let owner = device["owner"]?.text, owner != gateway {
      return "at the gateway \(Excerpt.harmless(owner))"
    }
    switch device["session"]?.text {
    case "disabled": return "disabled"
    case "live": return "online"
    case _:
      if let position = device["turn"]?["position"] { return "waits for a connection (\(position.shown))" }
      if device.isBetweenLinks { return "online" }
      let since = device["offline_since"]?.time.map { " since \($0.dated())" } ?? ""
      return "offline\(since)" + (device["last_error"].map { ": \($0.shown)" } ?? "")
    }
  }
}
