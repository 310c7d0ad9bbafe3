import Bridge
import Configuration
import JSON
import MQTT

/// What Home Assistant is told of one device and all its entities: a retained message (device-based discovery).
///
/// Its keys at the top and in `dev` are all checked by Home Assistant: with one that it does not know, it drops the
/// whole device. An entity that is left out stays as it was; it goes when it is named with its platform alone.
struct DiscoveryDocument: Sendable, Equatable {
  let topic: TopicName
  let payload: [UInt8]
  /// What is to be remembered once this has been published.
  let announced: Announced
  /// What is to be remembered when it is certain that Home Assistant has heard this.
  let settled: Announced

  /// - Parameters:
  ///   - object: what the device is called in discovery topics, as its identifier, and before the keys of its
  ///     entities in their unique ids.
  ///   - device: the rest of `dev`.
  ///   - availability: what has to be online for the entities to be available.
  ///   - qos: with which Home Assistant subscribes, and sends commands.
  ///   - before: what was announced of the same object earlier; of use under the same prefix only.
  ///   - isReannouncement: tell also of the entities that no longer exist, so that Home Assistant knows them when it is told
  ///     to forget them.
  init(
    object: String, prefix: String, device: JSONValue, availability: [TopicName], qos: QoS,
    components: [DiscoveryComponent], before: Announced?, isReannouncement: Bool = false
  ) {
    let keys = Set(components.map(\.key))
    let earlier = before.map { $0.prefix == prefix ? $0.components : [] } ?? []
    let gone = earlier.filter { !keys.contains($0.key) }
    topic = DiscoveryTopics.config(prefix: prefix, object: object)
    let present = components.map { Announced.Component(key: $0.key, platform: $0.platform) }
    settled = Announced(prefix: prefix, components: present)
    announced = Announced(prefix: prefix, components: present + gone)
    let placeholder = Removal.placeholder(object, prefix: prefix)
    let reannounced =
      isReannouncement ? gone.map { DiscoveryComponent.reannounced($0, placeholder: placeholder) } : []
    let told = (components + reannounced).map { component in
      let own: JSONValue = [
        "p": .string(component.platform.rawValue), "uniq_id": .string("\(object)_\(component.key)"),
        // Its default is 0. Not one of the keys that entities take over from the top.
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
      "cmps": .object(JSONObject(told + removed)),
    ]
    payload = json.bytes
  }
}
