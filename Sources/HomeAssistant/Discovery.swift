import Bridge
import Configuration
import EventLoop
import GATT
import JSON
import MQTT

/// The discovery topics and documents of devices and of the gateway.
///
/// A device is identified by its address, so that it keeps its entities and their history under another id, and at
/// another gateway.
package struct Discovery: Sendable {
  /// `home_assistant.prefix`, validated.
  let prefix: String
  /// The QoS of Home Assistant's commands and subscriptions.
  let qos: QoS
  let topics: TopicMap
  /// The gateway's page, if it can be opened from elsewhere.
  var page: String?

  /// What a discovery topic is about.
  enum Subject: Sendable, Hashable {
    case device(BluetoothAddress)
    /// The gateway itself.
    case gateway
  }

  var status: TopicName { Self.status(prefix: prefix) }

  /// Where `subject` is announced. Home Assistant empties the topic itself when a user deletes the device.
  func topic(of subject: Subject) -> TopicName { Self.config(prefix: prefix, object: object(of: subject)) }

  /// Where a device is announced.
  ///
  /// - Parameters:
  ///   - prefix: `home_assistant.prefix`, validated.
  ///   - object: `[A-Za-z0-9_-]+`.
  static func config(prefix: String, object: String) -> TopicName {
    topicName("\(prefix)/device/\(object)/config")
  }

  /// Where Home Assistant publishes `online` some seconds after its start, and `offline` at its end; not retained.
  static func status(prefix: String) -> TopicName { topicName("\(prefix)/status") }

  /// The subject of a discovery topic; nil for other topics, and for those of other gateways.
  func subject(of topic: String) -> Subject? {
    let levels = topic.split(separator: "/", omittingEmptySubsequences: false)
    guard levels.count > 2 else { return nil }
    let object = levels[levels.count - 2]
    var subject = Subject.gateway
    if object.hasPrefix(Self.deviceObject),
      let address = BluetoothAddress(compact: object.dropFirst(Self.deviceObject.count))
    {
      subject = .device(address)
    }
    // Byte by byte, as the broker compares.
    return topic.utf8.elementsEqual(self.topic(of: subject).string.utf8) ? subject : nil
  }

  /// The gateways on which a document depends, as the one that has published it: those at the same base topic, and the base topic
  /// of one at another.
  func origin(of payload: [UInt8]) -> (gateways: [GatewayID], otherBase: String?) {
    let states = Self.availability(in: payload)
    let gateways = states.compactMap(topics.gateway(ofState:))
    for state in states where topics.gateway(ofState: state) == nil {
      let levels = state.split(separator: "/", omittingEmptySubsequences: false)
      if levels.count > 3, levels[levels.count - 3] == "bridge", levels.last == "state" {
        return (gateways, levels.dropLast(3).joined(separator: "/"))
      }
    }
    return (gateways, nil)
  }

  /// The topics of availability in a document, without which its entities are unavailable.
  package static func availability(in payload: [UInt8]) -> [String] {
    let document = try? JSONParser.parse(payload)
    return (document?["avty"]?.elements ?? []).compactMap { $0["t"]?.text }
  }

  func object(of subject: Subject) -> String {
    switch subject {
    case .device(let address): Self.deviceObject + address.compact
    case .gateway: "ble_gateway_\(topics.gateway)"
    }
  }

  private static let deviceObject = "ble_"
}

extension Discovery {
  /// Nil: nothing is announced.
  @LoopActor init?(_ configuration: Configuration, _ context: BridgeContext) {
    guard configuration.homeAssistant.discovery else { return nil }
    self.init(
      prefix: configuration.homeAssistant.prefix, qos: context.qos, topics: context.topics,
      page: configuration.http.networkURL)
  }
}
