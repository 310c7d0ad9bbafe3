import EventLoop
import JSON
import MQTT

/// Device-based discovery: one device with all its entities, as a retained message.
///
/// Home Assistant drops the whole device for an unknown key at the top or in `dev`. An entity that is left out stays;
/// one that is named with its platform alone is removed.
struct DiscoveryDocument: Sendable, Equatable {
  let topic: TopicName
  let payload: [UInt8]
  /// What may exist in Home Assistant once this has been published.
  let announced: Announced
  /// What exists there when it has certainly received this.
  let completed: Announced

  /// - Parameters:
  ///   - object: the object id, also the device's identifier and the first part of the entities' unique ids.
  ///   - device: the rest of `dev`.
  ///   - availability: topics that must all have `online` for the entities to be available.
  ///   - qos: of Home Assistant's subscriptions and commands.
  ///   - before: what was announced of the same object earlier.
  ///   - isReannouncement: name the entities that no longer exist too: Home Assistant removes only what it has seen in
  ///     its
  ///     present run.
  init(
    object: String, prefix: String, device: JSONValue, availability: [TopicName], qos: QoS,
    components: [DiscoveryComponent], before: Announced?, isReannouncement: Bool = false
  ) {
    let keys = Set(components.map(\.key))
    let earlier = before.map { $0.prefix == prefix ? $0.components : [] } ?? []
    let gone = earlier.filter { !keys.contains($0.key) }
    topic = Discovery.config(prefix: prefix, object: object)
    let present = components.map { Announced.Component(key: $0.key, platform: $0.platform) }
    completed = Announced(prefix: prefix, components: present)
    announced = Announced(prefix: prefix, components: present + gone)
    let placeholder = Removal.placeholder(object, prefix: prefix)
    let reannounced =
      isReannouncement ? gone.map { DiscoveryComponent.reannounced($0, placeholder: placeholder) } : []
    let entries = (components + reannounced).map { component in
      let own: JSONValue = [
        "p": .string(component.platform.rawValue), "uniq_id": .string("\(object)_\(component.key)"),
        // Home Assistant's default is 0, and entities do not inherit it.
        "qos": qos == .atMostOnce ? nil : .integer(Int(qos.rawValue)),
      ]
      return JSONObject.Member(name: component.key, value: own.merging(component.members))
    }
    let removed = (isReannouncement ? [] : gone).map { component in
      JSONObject.Member(name: component.key, value: ["p": .string(component.platform.rawValue)])
    }
    let identity: JSONValue = ["ids": [.string(object)]]
    let json: JSONValue = [
      "dev": identity.merging(device),
      "o": ["name": "microbit-gateway", "sw": .string(Version.current)],
      "avty": .availability(availability),
      "avty_mode": "all",
      "cmps": .object(JSONObject(entries + removed)),
    ]
    payload = json.bytes
  }
}
