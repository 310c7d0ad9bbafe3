import Configuration
import Devices
import Findings

/// What other gateways have in another way for a device, and what the user can do about it.
struct Disagreements {
  /// The gateway whose entry differs, and in what.
  private var differences: (gateway: GatewayID, what: String)?
  /// The gateway that announces the device to Home Assistant too, and whose `info` does not arrive here.
  var announcer: GatewayID?

  /// The `info` of another gateway has arrived.
  mutating func received(_ notice: OwnershipMachine.Notice, of device: DeviceDescription) {
    announcer = nil
    guard notice.id == device.id else { return }
    let name = device.settings.name == device.bluetoothName ? nil : device.settings.name
    let what = [
      notice.name == name ? nil : "name", notice.profile == device.profile.name ? nil : "profile",
    ].compactMap { $0 }
    differences = what.isEmpty ? nil : (notice.gateway, what.joined(separator: " and "))
  }

  /// - Parameter elsewhere: what another gateway, which owns the device, publishes of it under another id.
  func finding(
    of device: DeviceDescription, elsewhere: OwnershipMachine.Notice?, _ topics: TopicMap
  ) -> Finding? {
    let id = device.id
    if let announcer {
      return .warning(
        .device,
        "\(id): the gateway \(announcer) announces it to Home Assistant too, and its info does not arrive here",
        remedy: "let a bridge between brokers pass on \(topics.base)/# as well, or give each gateway its own"
          + " home_assistant.prefix")
    }
    if let elsewhere {
      return .warning(
        .device,
        "\(id): the gateway \(elsewhere.gateway) knows it as \(elsewhere.id) and publishes it: this one publishes nothing"
          + " of it",
        remedy: "give it one id: \"id\": \"\(elsewhere.id)\" in its entry of config.json here, or:"
          + " sudo microbit-gateway rename \(id) \(elsewhere.id)")
    }
    guard let differences else { return nil }
    return .warning(
      .device, "\(id): the gateway \(differences.gateway) has another \(differences.what) for it",
      remedy: "use the same entry at both, by config.json or by \(topics.fleetConfiguration)")
  }
}
