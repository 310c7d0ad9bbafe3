import Configuration
import GATT
import MQTT
import TestSupport

@testable import Bridge

/// The topics that the gateway publishes and accepts; the examples are checked against them.
struct TopicContract {
  let map = TopicMap(base: "microbit", gateway: GatewayID(hostName: "attic"))
  /// The profile of a device whose settings list no properties.
  let profile = Profile.microbit.limited(to: Set(Profile.microbit.automaticProperties), isAutomatic: true)
  let device: DeviceID

  init() throws {
    device = try DeviceID("kitchen")
  }

  var topics: DeviceTopics { map.topics(of: device, profile) }

  /// Every topic that is published for one device and for the gateway.
  var published: [TopicName] {
    let topics = topics
    let properties = zip(profile.properties, topics.properties).flatMap { property, topics in
      property.isWritable ? [topics.value, topics.result] : [topics.value]
    }
    return [
      topics.availability, topics.readings, topics.info, map.bridgeState, map.bridgeInfo, map.bridgeDevices,
    ] + properties
  }

  /// The published topics that a subscription to `filter` receives.
  func publishedTopics(matching filter: String) -> [TopicName] {
    guard let filter = TopicFilter(filter) else { return [] }
    return published.filter(filter.matches)
  }
}
