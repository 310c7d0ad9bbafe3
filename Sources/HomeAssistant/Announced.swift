import Configuration
import JSON
import MQTT

/// What was announced of a device, kept so that it can be removed.
struct Announced: Sendable, Equatable {
  /// `home_assistant.prefix` at that time.
  let prefix: String
  /// Every component that was ever announced there, in the order of their keys, those that no longer exist too: Home
  /// Assistant may have missed the document that removed them. A key whose platform has changed has several.
  let components: [Component]

  /// An entity of the device.
  struct Component: Sendable, Hashable {
    let key: String
    let platform: Platform
  }

  /// More than any device has; further ones in a state record are ignored.
  private static let mostComponents = 2048

  init(prefix: String, components: [Component]) {
    self.prefix = prefix
    self.components = components.sorted { ($0.key, $0.platform.rawValue) < ($1.key, $1.platform.rawValue) }
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
  /// The form in a state record:
  /// `{"prefix":"homeassistant","components":{"period":["number","select"],"temperature":"sensor"}}`.
  var json: JSONValue {
    let platforms = Dictionary(grouping: components, by: \.key)
      .mapValues { $0.map { JSONValue.string($0.platform.rawValue) } }
    return [
      "prefix": .string(prefix),
      "components": .object(platforms.mapValues { $0.count == 1 ? $0[0] : .array($0) }),
    ]
  }

  /// Reads a record; nil for what ``json`` never is; a component of an unknown platform is ignored.
  init?(_ json: JSONValue) {
    guard let prefix = json["prefix"]?.text, Self.isPrefix(prefix),
      case .object(let components) = json["components"]
    else { return nil }
    self.init(
      prefix: prefix,
      components: components.members.prefix(Self.mostComponents).flatMap { member in
        let platforms = member.value.elements.isEmpty ? [member.value] : member.value.elements
        return Set(platforms.compactMap { $0.text.flatMap(Platform.init) })
          .map { Component(key: member.name, platform: $0) }
          .filter { Self.isKey($0.key) }
      })
  }

  /// Whether the text can be in Home Assistant's ids.
  static func isKey(_ text: String) -> Bool {
    (1...512).contains(text.utf8.count)
      && text.unicodeScalars.allSatisfy { TopicWord.isPlain($0) || ("A"..."Z").contains($0) }
  }

  /// Whether topics can be made of the text.
  private static func isPrefix(_ text: String) -> Bool {
    (1...1024).contains(text.utf8.count) && TopicName(text) != nil
  }
}
