import Configuration
import Bridge
import Configuration
import JSON
import MQTT

/// What Home Assistant has been told of a device: remembered, so that what is no longer so can be taken back.
struct Announced: Sendable, Equatable {
  /// Where it was told: `home_assistant.prefix` of then.
  let prefix: String
  /// Every component that was ever announced there, in the order of their keys; those that no longer exist too.
  /// They stay, since an announcement takes the place of the one before it: that one may never have been heard.
  let components: [Component]

  /// One entity of the device.
  struct Component: Sendable, Equatable {
    let key: String
    let platform: Platform
  }

  /// More than any device has: what is beyond it in a state record is damage.
  private static let mostComponents = 256

  init(prefix: String, components: [Component]) {
    self.prefix = prefix
    self.components = components.sorted { $0.key < $1.key }
  }
}

/// A kind of entity, as Home Assistant names it.
enum Platform: String, Sendable, Equatable, CaseIterable {
  case sensor
  case binarySensor = "binary_sensor"
  case number
  case button
  case event
  case text
}

extension Announced {
  /// As a state record holds it: `{"prefix":"homeassistant","components":{"temperature":"sensor"}}`.
  var json: JSONValue {
    [
      "prefix": .string(prefix),
      "components": .object(
        JSONObject(
          components.map { JSONObject.Member(name: $0.key, value: .string($0.platform.rawValue)) })),
    ]
  }

  /// Nil for what ``json`` never is; a component of a kind that this version does not know is passed over.
  init?(_ json: JSONValue) {
    guard case .object(let record) = json, case .string(let prefix) = record["prefix"],
      Self.isPrefix(prefix), case .object(let components) = record["components"]
    else { return nil }
    self.init(
      prefix: prefix,
      components: components.members.prefix(Self.mostComponents).compactMap { member in
        guard TopicWord.isValid(member.name), case .string(let name) = member.value,
          let platform = Platform(rawValue: name)
        else { return nil }
        return Component(key: member.name, platform: platform)
      })
  }

  /// Whether topics can be made of it.
  private static func isPrefix(_ text: String) -> Bool {
    (1...1024).contains(text.utf8.count) && TopicName(text) != nil
  }
}
