import Bridge
import Configuration
import JSON
import MQTT

/// A device whose discovery topic was cleared, until Home Assistant has certainly removed it.
///
/// Home Assistant removes a device when its discovery topic is emptied, but only one that was announced in its present
/// run. Otherwise (it was not running, or not subscribed yet) the device stays in its registry, unavailable. So at its
/// next start the device is announced once more, unretained, and removed some seconds later. Whether Home Assistant has
/// received the first removal is not known: this is always done, once.
struct Removal: Sendable, Equatable {
  /// The object id.
  let object: String
  let announced: Announced

  /// The discovery topic, also the key of the record in the state database.
  var topic: TopicName { Discovery.config(prefix: announced.prefix, object: object) }

  /// Where Home Assistant publishes that it is running.
  var status: TopicName { Discovery.status(prefix: announced.prefix) }

  /// A document of the same entities without values.
  func reannouncement(qos: QoS) -> DiscoveryDocument {
    let placeholder = Self.placeholder(object, prefix: announced.prefix)
    return DiscoveryDocument(
      object: object, prefix: announced.prefix, device: [:], availability: [placeholder], qos: qos,
      components: announced.components.map { .reannounced($0, placeholder: placeholder) }, before: nil)
  }

  /// A topic on which nothing is ever published.
  static func placeholder(_ object: String, prefix: String) -> TopicName {
    topicName("\(prefix)/device/\(object)/removed")
  }
}

extension Removal {
  /// Reads a record of the state database; nil for one of anything else.
  init?(key: String, _ json: JSONValue) {
    guard let announced = Announced(json) else { return nil }
    let object = key.utf8.dropFirst("\(announced.prefix)/device/".utf8.count).dropLast("/config".utf8.count)
    guard !object.isEmpty, object.allSatisfy({ TopicWord.isPlain(Unicode.Scalar($0)) }) else { return nil }
    self.init(object: String(decoding: object, as: UTF8.self), announced: announced)
    guard topic.string.utf8.elementsEqual(key.utf8) else { return nil }
  }
}

extension DiscoveryComponent {
  /// The keys that Home Assistant demands; the entity is unavailable.
  static func reannounced(_ component: Announced.Component, placeholder: TopicName) -> DiscoveryComponent {
    let nowhere = JSONValue.string(placeholder.string)
    let members: JSONValue =
      switch component.platform {
      case .sensor, .binarySensor: ["stat_t": nowhere]
      case .event: ["stat_t": nowhere, "evt_typ": []]
      case .button, .notify: ["cmd_t": nowhere]
      // The state topic replaces the one to which Home Assistant would stay subscribed.
      case .switch, .text: ["cmd_t": nowhere, "stat_t": nowhere]
      case .select: ["cmd_t": nowhere, "stat_t": nowhere, "ops": []]
      case .image: ["img_t": nowhere]
      case .deviceTrigger:
        ["t": nowhere, "atype": "trigger", "type": .string(component.key), "stype": .string(component.key)]
      // The default range is 0 to 100, and the last value of an existing entity must be valid.
      case .number:
        [
          "cmd_t": nowhere, "stat_t": nowhere,
          "min": .integer(Int(Int32.min)), "max": .integer(Int(Int32.max)),
        ]
      }
    return DiscoveryComponent(key: component.key, platform: component.platform, members: members)
      .unavailable(placeholder)
  }

  /// The component, unavailable: by a topic on which nothing is ever published.
  func unavailable(_ placeholder: TopicName) -> DiscoveryComponent {
    DiscoveryComponent(
      key: key, platform: platform, members: members.setting("avty", to: .availability([placeholder])))
  }
}
