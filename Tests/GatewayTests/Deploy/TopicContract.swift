import Configuration
import GATT
import MQTT

@testable import Bridge

/// What the gateway does with topics, for examples that name them.
struct TopicContract {
  let map = TopicMap(base: "microbit", gateway: GatewayID(hostName: "attic"))
  /// Of a device whose settings name no properties.
  let profile = Profile.microbit.limited(to: Set(Profile.microbit.defaultProperties))
  let device: DeviceID

  init() throws {
    device = try DeviceID("kitchen")
  }

  var topics: DeviceTopics { map.topics(of: device, profile) }

  /// Every topic that is published of one device and of the gateway.
  var published: [TopicName] {
    let topics = topics
    let properties = zip(profile.properties, topics.properties).flatMap { property, topics in
      property.isWritable ? [topics.value, topics.result] : [topics.value]
    }
    return [
      topics.availability, topics.readings, topics.info, map.bridgeState, map.bridgeInfo, map.bridgeDevices,
    ] + properties
  }

  /// Whether a subscription brings anything, and nothing but what its last level says.
  func brings(_ filter: String) -> [TopicName] {
    guard let filter = TopicFilter(filter) else { return [] }
    return published.filter(filter.matches)
  }
}
