import Configuration
import JSON
import MQTT

/// What was announced of a device, kept so that it can be removed.
struct Announced: Sendable, Equatable {
  /// `home_assistant.prefix` at that time.
  let prefix: String
  /// Every component that was ever announced there, in the order of their keys, those that no longer exist too: Home
  /// Assistant may have missed the document that removed them.
  let components: [Component]

  /// One entity of the device.
  struct Component: Sendable, Equatable {
    let key: String
    let platform: Platform
  }

  /// More than any device has; further ones in a state record are ignored.
  private static let mostComponents = 2048

  init(prefix: String, components: [Component]) {
    self.prefix = prefix
    self.components = components.sorted { $0.key < $1.key }
  }
}

/// A platform of Home Assistant.
enum Platform: String, Sendable, Equatable, CaseIterable {
  case sensor
  case binarySensor = "binary_sensor"
  case number
  case select
  case `switch`
  case button
  case event
  case deviceTrigger = "device_automation"
  case text
  case notify
  case image
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

  /// Nil for what ``json`` never is; a component of an unknown platform is ignored.
  init?(_ json: JSONValue) {
    guard let prefix = json["prefix"]?.text, Self.isPrefix(prefix),
      case .object(let components) = json["components"]
    else { return nil }
    self.init(
      prefix: prefix,
      components: components.members.prefix(Self.mostComponents).compactMap { member in
        guard Self.isKey(member.name), let platform = member.value.text.flatMap(Platform.init) else {
          return nil
        }
        return Component(key: member.name, platform: platform)
      })
  }

  /// Whether it can be in Home Assistant's ids.
  static func isKey(_ text: String) -> Bool {
    (1...512).contains(text.utf8.count)
      && text.unicodeScalars.allSatisfy { TopicWord.isPlain($0) || ("A"..."Z").contains($0) }
  }

  /// Whether topics can be made of it.
  private static func isPrefix(_ text: String) -> Bool {
    (1...1024).contains(text.utf8.count) && TopicName(text) != nil
  }
}
