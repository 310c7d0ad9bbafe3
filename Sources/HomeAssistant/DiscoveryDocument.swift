import EventLoop
import JSON
import MQTT

/// Device-based discovery: one device with all its entities, as a retained message.
///
/// Home Assistant drops the whole device for an unknown key at the top or in `dev`. An entity that is left out stays;
/// one that is named with its platform alone is removed. A key has one platform in a document, so that one with another
/// platform than before takes two documents: the first removes the entity of the earlier platform.
struct DiscoveryDocument: Sendable, Equatable {
  let topic: TopicName
  let payload: [UInt8]
  /// What may exist in Home Assistant once this has been published.
  let announced: Announced
  /// What exists in Home Assistant when it has certainly received the document.
  let completed: Announced
  /// What the document removes before the next one can have the same keys for other platforms.
  let replaced: [Announced.Component]

  /// - Parameters:
  ///   - object: the object id, also the device's identifier and the first part of the entities' unique ids.
  ///   - device: the rest of `dev`.
  ///   - availability: topics that must all have `online` for the entities to be available.
  ///   - qos: of Home Assistant's subscriptions and commands.
  ///   - before: what was announced of the same object earlier.
  ///   - isReannouncement: whether to name the entities that no longer exist too, as Home Assistant removes only what it has
  ///     seen in its present run.
  ///   - removed: what earlier documents have removed so that others can have the keys.
  init(
    object: String, prefix: String, device: JSONValue, availability: [TopicName], qos: QoS,
    components: [DiscoveryComponent], before: Announced?, isReannouncement: Bool = false,
    removed: Set<Announced.Component> = []
  ) {
    let present = components.map { Announced.Component(key: $0.key, platform: $0.platform) }
    let earlier = before.map { $0.prefix == prefix ? $0.components : [] } ?? []
    let remaining = Set(present)
    let gone = earlier.filter { !remaining.contains($0) }
    topic = Discovery.config(prefix: prefix, object: object)
    completed = Announced(prefix: prefix, components: present)
    announced = Announced(prefix: prefix, components: present + gone)
    let (leaving, replaced) = Self.leaving(gone, beside: present, removed: isReannouncement ? [] : removed)
    self.replaced = replaced
    let taken = Set(leaving.map(\.key))
    let placeholder = Removal.placeholder(object, prefix: prefix)
    let reannounced =
      isReannouncement ? leaving.map { DiscoveryComponent.reannounced($0, placeholder: placeholder) } : []
    var names: Set<String> = []
    let entries = (components.filter { !taken.contains($0.key) } + reannounced).map { component in
      let own: JSONValue = [
        "p": .string(component.platform.rawValue), "uniq_id": .string("\(object)_\(component.key)"),
        // Home Assistant's default is 0, and entities do not inherit it.
        "qos": qos == .atMostOnce ? nil : .integer(Int(qos.rawValue)),
      ]
      // The removal of a device has every platform of a key; Home Assistant goes by the unique id.
      let isFirst = names.insert(component.key).inserted
      let name = isFirst ? component.key : "\(component.key)-\(component.platform.rawValue)"
      let members = component.named(beside: device["name"]?.text)
      return JSONObject.Member(name: name, value: own.merging(members))
    }
    let removals = (isReannouncement ? [] : leaving).map { component in
      JSONObject.Member(name: component.key, value: ["p": .string(component.platform.rawValue)])
    }
    let identity: JSONValue = ["ids": [.string(object)]]
    let json: JSONValue = [
      "dev": identity.merging(device),
      "o": ["name": "microbit-gateway", "sw": .string(Version.current)],
      "avty": availability.isEmpty ? nil : .availability(availability),
      "avty_mode": "all",
      "cmps": .object(JSONObject(entries + removals)),
    ]
    payload = json.bytes
  }

  /// The entities that a document removes, one for each key.
  ///
  /// - Parameters:
  ///   - gone: what no longer exists.
  ///   - present: what exists.
  ///   - removed: what earlier documents have removed so that others can have the keys.
  /// - Returns: in the order of the keys; and those whose keys are for others in the next document.
  private static func leaving(
    _ gone: [Announced.Component], beside present: [Announced.Component], removed: Set<Announced.Component>
  ) -> (all: [Announced.Component], replaced: [Announced.Component]) {
    let keys = Set(present.map(\.key))
    var leaving: [Announced.Component] = []
    var replaced: [Announced.Component] = []
    for (key, platforms) in Dictionary(grouping: gone, by: \.key).sorted(by: { $0.key < $1.key }) {
      if let next = platforms.first(where: { !removed.contains($0) }) {
        leaving.append(next)
        if keys.contains(key) || platforms.count > 1 { replaced.append(next) }
      } else if !keys.contains(key) {
        leaving.append(platforms[0])
      }
    }
    return (leaving, replaced)
  }
}
