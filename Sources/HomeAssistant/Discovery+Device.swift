import Bridge
import Configuration
import Devices
import GATT
import JSON
import MQTT

extension Discovery {
  /// The document of a device that this gateway owns.
  ///
  /// - Parameters:
  ///   - hasGateway: whether the gateway is announced. Home Assistant creates a device that others refer to, and renews the
  ///     reference only with a document that has changed.
  ///   - before: what was announced of the device earlier.
  func document(
    of device: DeviceDescription, topics: DeviceTopics, hasGateway: Bool = true, before: Announced? = nil,
    isReannouncement: Bool = false
  ) -> DiscoveryDocument {
    DiscoveryDocument(
      object: object(of: .device(device.identifier)), prefix: prefix,
      device: description(of: device, hasGateway: hasGateway),
      availability: [topics.availability, self.topics.bridgeState], qos: qos,
      components: components(of: device, topics: topics), before: before, isReannouncement: isReannouncement)
  }

  private func description(of device: DeviceDescription, hasGateway: Bool) -> JSONValue {
    func text(_ text: String?) -> JSONValue? { text.flatMap(DisplayName.clean).map(JSONValue.string) }
    let profile = device.profile
    return [
      "name": text(device.label) ?? text(device.name) ?? .string(device.id.description),
      "mf": .string(profile.manufacturer),
      "mdl": text(device.model) ?? profile.model.map(JSONValue.string),
      "sw": text(device.firmware),
      "sn": text(device.serial),
      "sa": text(device.area),
      // As Home Assistant's own Bluetooth integrations give it, which then show the same device.
      "cns": [["bluetooth", .string(device.identifier.description)]],
      "via_device": hasGateway ? .string(object(of: .gateway)) : nil,
    ]
  }

  private func components(of device: DeviceDescription, topics: DeviceTopics) -> [DiscoveryComponent] {
    let placeholder = Removal.placeholder(object(of: .device(device.identifier)), prefix: prefix)
    let offered = zip(device.profile.properties, topics.properties).filter { device.mayOffer($0.0.name) }
    let properties = offered.flatMap { property, topics in
      property.homeAssistantParts.map { part in
        let component = component(for: property, part, topics: topics)
        // The device has offered it before, and may again.
        return device.missing.contains(property.name) ? component.unavailable(placeholder) : component
      }
    }
    return properties + [
      // Not the availability of the device, which is its value.
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
      // Needed most while the device is offline.
      .button(
        "reconnect", name: "Reconnect", command: self.topics.bridgeRequest("device/reconnect"),
        request: ["id": .string(device.id.description)], category: "diagnostic", deviceClass: "restart",
        availability: [self.topics.bridgeState]),
    ]
  }

  private func component(
    for property: Property, _ part: HomeAssistantEntity.Part, topics: DeviceTopics.Topics
  ) -> DiscoveryComponent {
    let entity = property.homeAssistant!
    let unit = entity.unit ?? property.unit
    let category = entity.category?.rawValue
    switch entity.kind {
    case .sensor(let stateClass):
      return .sensor(
        part.key, name: part.name, topic: topics.value, template: part.field.map(InfoTemplate.init(field:)),
        deviceClass: entity.deviceClass, stateClass: stateClass?.rawValue, unit: unit, category: category)
    case .number(let mode):
      return .number(
        part.key, name: part.name, topic: topics.value, command: topics.set,
        range: property.range ?? property.codec.range ?? 0...0,
        mode: mode.rawValue, deviceClass: entity.deviceClass, unit: unit, category: category)
    case .event:
      return .event(
        part.key, name: part.name, topic: topics.value,
        types: property.codec.words.sorted { $0.key < $1.key }.map(\.value), deviceClass: entity.deviceClass,
        category: category)
    case .text:
      return .text(
        part.key, name: part.name, command: topics.set, longest: property.maxLength ?? 255, category: category
      )
    }
  }
}
