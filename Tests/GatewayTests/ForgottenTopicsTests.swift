import Bridge
import Configuration
import Testing

@testable import Gateway

@Suite struct ForgottenTopicsTests {
  private func topics(_ retained: [String: String]) throws -> ForgottenTopics {
    let attic = try #require(GatewayID("attic"))
    var topics = ForgottenTopics(TopicMap(base: "microbit", gateway: attic), discoveryPrefix: "homeassistant")
    for (topic, payload) in retained { topics.add(topic, Array(payload.utf8)) }
    return topics
  }

  private static let retained = [
    "microbit/bridge/attic/state": "offline", "microbit/bridge/attic/devices": "[]",
    "microbit/bridge/cellar/state": "online",
    "microbit/kitchen/info": #"{"owner":"attic"}"#, "microbit/kitchen/led/image": "<svg/>",
    "microbit/hall/info": #"{"owner":"cellar"}"#, "microbit/hall/temperature": "21",
    "microbit/lost/temperature": "21", "microbit/kitchen2/temperature": "21",
    "homeassistant/device/ble_1/config": #"{"avty":[{"t":"x"},{"t":"microbit/bridge/attic/state"}]}"#,
    "homeassistant/device/ble_2/config": #"{"avty":[{"t":"microbit/bridge/cellar/state"}]}"#,
    "homeassistant/device/ble_3/config": "not JSON", "homeassistant/device/ble_4/config": "{}",
  ]

  @Test func whatTheGatewayAndItsDevicesHavePublishedIsCleared() throws {
    let topics = try topics(Self.retained)
    #expect(!topics.isOnline)
    #expect(topics.devices == ["kitchen"])
    #expect(
      topics.topicsToClear == [
        "homeassistant/device/ble_1/config", "microbit/bridge/attic/devices", "microbit/bridge/attic/state",
        "microbit/kitchen/info", "microbit/kitchen/led/image",
      ])
  }

  @Test func aGatewayWithTheIDMayBeOnline() throws {
    #expect(try topics(["microbit/bridge/attic/state": "online"]).isOnline)
    #expect(try topics([:]).topicsToClear == [])
  }
}
