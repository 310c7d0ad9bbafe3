import Configuration
import MQTT

@testable import Gateway

/// What the gateway does with topics, for examples that name them.
struct TopicContract {
  let map = TopicMap(base: "microbit", gateway: GatewayID(hostName: "attic"), profile: .microbitDefault)
  let device: DeviceID

  init() throws {
    device = try DeviceID("kitchen")
  }

  /// Every topic that is published of one device and of the gateway.
  var published: [TopicName] {
    let topics = map.topics(of: device)
    let properties = zip(map.profile.properties, topics.properties).flatMap { property, topics in
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
