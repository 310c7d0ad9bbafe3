import Configuration
import GATT
import MQTT

/// Every topic of the gateway, and what an arriving one means.
package struct TopicMap: Sendable {
  package let base: String
  package let gateway: GatewayID
  let bridge: String
  /// What every topic begins with, and those of this gateway.
  let basePrefix: String
  let bridgePrefix: String

  /// - Parameter base: `mqtt.base_topic`, validated.
  package init(base: String, gateway: GatewayID) {
    self.base = base
    self.gateway = gateway
    bridge = "\(base)/bridge/\(gateway)"
    basePrefix = "\(base)/"
    bridgePrefix = "\(bridge)/"
  }

  // MARK: Outbound

  package var bridgeState: TopicName { topicName("\(bridge)/state") }
  package var bridgeInfo: TopicName { topicName("\(bridge)/info") }
  var bridgeDevices: TopicName { topicName("\(bridge)/devices") }

  /// Where this gateway is asked for `verb`.
  package func bridgeRequest(_ verb: String) -> TopicName { topicName("\(bridge)/request/\(verb)") }

  /// Where a request is answered when it names no response topic of its own.
  func bridgeResponse(to verb: String) -> TopicName { topicName("\(bridge)/response/\(verb)") }

  /// The topics of a device. Built once, when the device is first known.
  package func topics(of device: DeviceID, _ profile: Profile) -> DeviceTopics {
    DeviceTopics(prefix: "\(base)/\(device)", profile: profile)
  }
}

/// The topics of one device.
package struct DeviceTopics: Sendable, Equatable {
  /// The topics of one property.
  package struct Topics: Sendable, Equatable {
    package let value: TopicName
    package let set: TopicName
    package let result: TopicName
  }

  /// The commands for the device, and none for those of other gateways.
  let commands: [TopicFilter]
  /// Which gateway owns it.
  var ownership: [TopicFilter] { [TopicFilter(info), TopicFilter(availability)] }
  package let availability: TopicName
  package let readings: TopicName
  package let info: TopicName
  /// In the order of the profile's properties.
  package let properties: [Topics]
  private let prefix: String

  init(prefix: String, profile: Profile) {
    self.prefix = prefix
    commands = [topicFilter("\(prefix)/+/set"), topicFilter("\(prefix)/+/get")]
    availability = topicName("\(prefix)/availability")
    readings = topicName("\(prefix)/readings")
    info = topicName("\(prefix)/info")
    properties = profile.properties.map { property in
      let value = "\(prefix)/\(property.name)"
      return Topics(
        value: topicName(value), set: topicName("\(value)/set"), result: topicName("\(value)/result"))
    }
  }

  /// All that the broker may retain of the device.
  var states: [TopicName] { [availability, info] + properties.map(\.value) }

  /// Where a command for a property is answered, even one that the profile does not have.
  func result(ofProperty property: String) -> TopicName { topicName("\(prefix)/\(property)/result") }
}

/// A topic made of parts that were each validated when they came in.
package func topicName(_ text: String) -> TopicName {
  guard let name = TopicName(text) else { preconditionFailure("not a topic: \(text)") }
  return name
}

package func topicFilter(_ text: String) -> TopicFilter {
  guard let filter = TopicFilter(text) else { preconditionFailure("not a topic filter: \(text)") }
  return filter
}
