import Configuration
import Devices
import EventLoop
import Findings

/// What other gateways have said of a device, what they have in another way, and what the user can do about it.
package struct OtherGateways: Sendable {
  /// How many times another gateway's `info` of the device has arrived.
  package private(set) var notices = 0
  /// The gateways that they came from; beyond ``mostInformants``, further ones are left out.
  package private(set) var informants: Set<GatewayID> = []
  private static let mostInformants = 64
  /// The names of properties that they have published.
  package private(set) var properties: Set<PropertyName> = []
  /// The last `info` of another gateway under the device's id.
  private var entry: (gateway: GatewayID, name: String?, profile: String?)?
  /// The gateway that announces the device to Home Assistant too, and whose `info` does not arrive here.
  package internal(set) var announcer: GatewayID?
  /// The gateway that uses the device's id for another device, where neither can be renamed.
  var sameID: GatewayID?

  /// The `info` of another gateway has arrived.
  /// - Parameter isOwnID: whether under the id that the device has here.
  mutating func received(_ notice: OwnershipMachine.Notice, isOwnID: Bool) {
    notices += 1
    if informants.count < Self.mostInformants { informants.insert(notice.gateway) }
    properties.add(notice.properties)
    announcer = nil
    if isOwnID { entry = (notice.gateway, notice.name, notice.profile) }
  }

  /// The `info` under the device's id is cleared.
  mutating func cleared() { (entry, sameID) = (nil, nil) }

  /// The gateway is offline: it may have another configuration when it is back.
  mutating func wentOffline(_ gateway: GatewayID) {
    if entry?.gateway == gateway { entry = nil }
    if announcer == gateway { announcer = nil }
    if sameID == gateway { sameID = nil }
  }

  /// There is no connection to the broker; what still holds is told again on the next one.
  mutating func disconnected() { (entry, announcer, sameID) = (nil, nil, nil) }

  /// - Parameters:
  ///   - elsewhere: what another gateway, which owns the device, publishes of it under another id.
  ///   - owner: of the device.
  ///   - online: the other gateways that are.
  func finding(
    of device: DeviceDescription, _ owner: Owner, elsewhere: OwnershipMachine.Notice?, online: Set<GatewayID>,
    _ topics: TopicMap
  ) -> Finding? {
    let id = device.id
    if let sameID {
      return .fault(
        .device, "\(id): the gateway \(sameID) uses this id for another device: the values of both are mixed",
        remedy: "give each its own id in config.json, or: sudo microbit-gateway rename \(id) NAME")
    }
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
    guard let entry, owner == .other(entry.gateway), online.contains(entry.gateway) else { return nil }
    let name = device.settings.name == device.bluetoothName ? nil : device.settings.name
    let differences = [
      entry.name == name ? nil : "name", entry.profile == device.profile.name ? nil : "profile",
    ].compactMap { $0 }
    guard !differences.isEmpty else { return nil }
    return .warning(
      .device,
      "\(id): the gateway \(entry.gateway) has another \(differences.joined(separator: " and ")) for it",
      remedy: "use the same entry at both, by config.json or by \(topics.fleetConfiguration)")
  }
}
