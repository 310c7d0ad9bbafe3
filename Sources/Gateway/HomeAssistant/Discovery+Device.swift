import GATT
import JSON
import MQTT

extension Discovery {
  /// What Home Assistant is told of a micro:bit that this gateway holds.
  ///
  /// - Parameters:
  ///   - hasGateway: whether it is told of the gateway too. What a device refers to it makes up when it does not know
  ///     it, and it renews the reference only with a document that has changed.
  ///   - before: what it was told of the same device earlier.
  func document(
    of info: DeviceInfo, topics: DeviceTopics, hasGateway: Bool = true, before: Announced? = nil,
    isRevival: Bool = false
  ) -> DiscoveryDocument {
    DiscoveryDocument(
      object: object(of: .device(info.identifier)), prefix: prefix,
      device: description(of: info, hasGateway: hasGateway),
      availability: [topics.availability, self.topics.bridgeState], qos: qos,
      components: components(of: info, topics: topics), before: before, isRevival: isRevival)
  }

  private func description(of info: DeviceInfo, hasGateway: Bool) -> JSONValue {
    func text(_ text: String?) -> JSONValue? { text.flatMap(DisplayName.clean).map(JSONValue.string) }
    let profile = topics.profile
    return [
      "name": text(info.label) ?? text(info.name) ?? .string(info.id.description),
      "mf": .string(profile.manufacturer),
      "mdl": text(info.model) ?? profile.model.map(JSONValue.string),
      "sw": text(info.firmware),
      "sn": text(info.serial),
      "sa": text(info.area),
      // The same as Home Assistant's own Bluetooth integrations give, so that what they know of this micro:bit stands
      // on the same page instead of making a second device of it.
      "cns": [["bluetooth", .string(info.identifier.description)]],
      "via_device": hasGateway ? .string(object(of: .gateway)) : nil,
    ]
  }

  private func components(of info: DeviceInfo, topics: DeviceTopics) -> [DiscoveryComponent] {
    let silent = Removal.silence(object(of: .device(info.identifier)), prefix: prefix)
    let offered = zip(self.topics.profile.properties, topics.properties).filter { info.mayOffer($0.0.name) }
    let properties: [DiscoveryComponent] = offered.compactMap { property, topics in
      property.homeAssistant.flatMap { entity in
        guard let component = component(for: property, as: entity, topics: topics) else { return nil }
        // It has offered it before, and may again.
        return info.missing.contains(property.name) ? component.unavailable(silent) : component
      }
    }
    return properties + [
      // With the gateway away nobody knows; with the micro:bit away that is just what it says.
      .connectivity(
        "connectivity", name: "Connectivity", topic: topics.availability,
        availability: [self.topics.bridgeState]),
      .sensor(
        "rssi", name: "Signal strength", topic: topics.info, template: InfoTemplate("rssi"),
        deviceClass: "signal_strength", stateClass: "measurement", unit: "dBm", category: "diagnostic"),
      .sensor(
        "firmware", name: "Firmware", topic: topics.info, template: InfoTemplate("firmware"),
        category: "diagnostic"),
      .sensor(
        "model", name: "Model", topic: topics.info, template: InfoTemplate("model"), category: "diagnostic"),
      // Of use when the micro:bit is away, most of all.
      .button(
        "reconnect", name: "Reconnect", command: self.topics.bridgeRequest("device/reconnect"),
        request: ["id": .string(info.id.description)], category: "diagnostic", deviceClass: "restart",
        availability: [self.topics.bridgeState]),
    ]
  }

  private func component(
    for property: Property, as entity: HomeAssistantEntity, topics: DeviceTopics.Topics
  ) -> DiscoveryComponent? {
    let unit = entity.unit ?? (property.unit?.isEmpty == true ? nil : property.unit)
    switch entity.kind {
    case .sensor(let stateClass):
      return .sensor(
        property.name, name: entity.name, topic: topics.value, deviceClass: entity.deviceClass,
        stateClass: stateClass?.rawValue, unit: unit, category: entity.category?.rawValue)
    case .number(let mode):
      return .number(
        property.name, name: entity.name, topic: topics.value, command: topics.set, range: property.integers,
        mode: mode.rawValue, deviceClass: entity.deviceClass, unit: unit, category: entity.category?.rawValue)
    case .event, .text:
      // None of the default properties is one.
      return nil
    }
  }
}
