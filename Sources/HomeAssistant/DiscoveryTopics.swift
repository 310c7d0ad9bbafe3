import Bridge
import MQTT

/// The topics of Home Assistant's MQTT integration.
enum DiscoveryTopics {
  /// Where a device is announced.
  ///
  /// - Parameters:
  ///   - prefix: `home_assistant.prefix`, validated.
  ///   - object: `[A-Za-z0-9_-]+`.
  static func config(prefix: String, object: String) -> TopicName {
    topicName("\(prefix)/device/\(object)/config")
  }

  /// Where Home Assistant publishes `online` a few seconds after its start, and `offline` at its end; not retained.
  static func status(prefix: String) -> TopicName { topicName("\(prefix)/status") }
}
