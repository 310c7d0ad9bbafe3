import Bridge
import Configuration
import Devices
import GATT
import JSON
import MQTT

/// Tells Home Assistant of the micro:bits and of the gateway.
///
/// A device is known there by its address, so that it keeps its entities and their history under another id, and by
/// another gateway.
struct Discovery: Sendable {
  /// `home_assistant.prefix`, validated.
  let prefix: String
  /// `mqtt.qos`: of commands from Home Assistant, and of its subscriptions.
  let qos: QoS
  let topics: TopicMap

  /// Whom a discovery topic is about.
  enum Subject: Sendable, Equatable {
    case device(BluetoothAddress)
    /// This gateway.
    case gateway
  }

  init(prefix: String, qos: QoS, topics: TopicMap) {
    self.prefix = prefix
    self.qos = qos
    self.topics = topics
  }

  /// Where Home Assistant says that it is there again: what it has not kept is to be told once more.
  var status: TopicName { DiscoveryTopics.status(prefix: prefix) }

  /// Where it is told of `subject`. Home Assistant empties the topic itself when a user deletes the device.
  func topic(of subject: Subject) -> TopicName {
    DiscoveryTopics.config(prefix: prefix, object: object(of: subject))
  }

  /// Whom a topic is about; nil for what is no discovery topic of a micro:bit or of this gateway.
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

  /// Whether another gateway at the same base topic has published the document.
  func isOfAnotherGateway(_ payload: [UInt8]) -> Bool {
    guard case .object(let document) = try? JSONParser.parse(payload),
      case .array(let availability) = document["avty"]
    else { return false }
    return availability.contains { element in
      guard case .object(let object) = element, case .string(let topic) = object["t"] else { return false }
      return topic.hasPrefix("\(topics.base)/bridge/") && topic != topics.bridgeState.string
    }
  }

  func object(of subject: Subject) -> String {
    switch subject {
    case .device(let address): Self.deviceObject + address.compact
    case .gateway: "ble_gateway_\(topics.gateway)"
    }
  }

  private static let deviceObject = "ble_"
}
