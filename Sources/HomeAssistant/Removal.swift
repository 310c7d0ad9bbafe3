import Configuration
import Bridge
import Configuration
import JSON
import MQTT

/// A device that was taken back from Home Assistant, until that is certain.
///
/// Home Assistant forgets a device when its discovery topic is emptied; but only one that it was told of in its
/// present run. One that was away at that time, or had not subscribed again after a restart of the broker, shows the
/// device as unavailable for good: what it reads from its registry it cannot be told to forget. So at its next birth
/// it is told of the device once more, and when it has taken that in, to forget it. Nothing tells whether it was
/// there the first time: it is done in any case, once.
struct Removal: Sendable, Equatable {
  /// What the device is called in discovery topics, and before the keys of its entities.
  let object: String
  /// What Home Assistant was told of it.
  let announced: Announced

  init(object: String, _ announced: Announced) {
    self.object = object
    self.announced = announced
  }

  /// Where Home Assistant was told of it: also the key of its record in the state database.
  var topic: TopicName { DiscoveryTopics.config(prefix: announced.prefix, object: object) }

  /// Where Home Assistant says that it is there.
  var status: TopicName { DiscoveryTopics.status(prefix: announced.prefix) }

  /// Reads a record of the state database; nil for one of anything else.
  init?(key: String, bytes: [UInt8]) {
    guard let json = try? JSONParser.parse(bytes), let announced = Announced(json) else { return nil }
    let object = key.utf8.dropFirst("\(announced.prefix)/device/".utf8.count).dropLast("/config".utf8.count)
    guard !object.isEmpty, object.allSatisfy({ TopicWord.isAllowed(Unicode.Scalar($0)) }) else { return nil }
    self.init(object: String(decoding: object, as: UTF8.self), announced)
    guard topic.string.utf8.elementsEqual(key.utf8) else { return nil }
  }

  /// Tells of the device again, so that it can be forgotten: entities that are the same, and show nothing.
  func reannouncement(qos: QoS) -> DiscoveryDocument {
    let placeholder = Self.placeholder(object, prefix: announced.prefix)
    return DiscoveryDocument(
      object: object, prefix: announced.prefix, device: [:], availability: [placeholder], qos: qos,
      components: announced.components.map { .reannounced($0, placeholder: placeholder) }, before: nil)
  }

  /// A topic on which nothing is ever said.
  static func placeholder(_ object: String, prefix: String) -> TopicName {
    topicName("\(prefix)/device/\(object)/removed")
  }
}

extension DiscoveryComponent {
  /// What an entity needs to be recognized, and no more; it is unavailable.
  static func reannounced(_ component: Announced.Component, placeholder: TopicName) -> DiscoveryComponent {
    let topic: JSONValue =
      switch component.platform {
      case .sensor, .binarySensor: ["stat_t": .string(placeholder.string)]
      case .event: ["stat_t": .string(placeholder.string), "evt_typ": []]
      case .button, .text: ["cmd_t": .string(placeholder.string)]
      // One that is known still holds its last value, which must stay one: the range would be from 0 to 100.
      case .number:
        [
          "cmd_t": .string(placeholder.string), "min": .integer(Int(Int32.min)),
          "max": .integer(Int(Int32.max)),
        ]
      }
    return DiscoveryComponent(
      key: component.key, platform: component.platform,
      members: topic
    ).unavailable(placeholder)
  }

  /// It, shown as unavailable: by a topic on which nothing is ever said.
  func unavailable(_ placeholder: TopicName) -> DiscoveryComponent {
    DiscoveryComponent(
      key: key, platform: platform, members: members.merging(["avty": .availability([placeholder])]))
  }
}
