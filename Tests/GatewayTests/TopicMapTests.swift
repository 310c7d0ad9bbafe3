import GATT
import Testing

@testable import Gateway

@Suite struct TopicMapTests {
  let map = TopicMap(base: "home/microbit", gateway: GatewayID(hostName: "attic"), profile: .microbit)
  let kitchen: DeviceID

  init() throws {
    kitchen = try DeviceID("kitchen")
  }

  @Test func namesEveryTopicOfTheBridge() {
    #expect(map.bridgeState.string == "home/microbit/bridge/attic/state")
    #expect(map.bridgeInfo.string == "home/microbit/bridge/attic/info")
    #expect(map.bridgeDevices.string == "home/microbit/bridge/attic/devices")
    #expect(map.bridgeResponse(to: "device/add").string == "home/microbit/bridge/attic/response/device/add")
    #expect(
      map.requests.string == "home/microbit/bridge/attic/request/#")
  }

  @Test func namesEveryTopicOfADevice() {
    let topics = map.topics(of: kitchen)
    #expect(topics.availability.string == "home/microbit/kitchen/availability")
    #expect(topics.readings.string == "home/microbit/kitchen/readings")
    #expect(topics.info.string == "home/microbit/kitchen/info")
    #expect(topics.properties.count == 2)
    #expect(topics.properties[0].value.string == "home/microbit/kitchen/temperature")
    #expect(topics.properties[1].value.string == "home/microbit/kitchen/period")
    #expect(topics.properties[1].set.string == "home/microbit/kitchen/period/set")
    #expect(topics.properties[1].result.string == "home/microbit/kitchen/period/result")
    #expect(topics.result(ofProperty: "humidity").string == "home/microbit/kitchen/humidity/result")
  }

  @Test func readsCommands() {
    let request = map.request(on: "home/microbit/kitchen/period/set")
    #expect(request == .set(kitchen, .microbitPeriod))
    let topic = map.topics(of: kitchen).properties[1].set
    #expect(map.request(on: topic.string) == .set(kitchen, .microbitPeriod))
  }

  @Test func refusesPropertiesThatCannotBeSetWithAReason() {
    #expect(
      map.request(on: "home/microbit/kitchen/temperature/set")
        == .refused(kitchen, property: "temperature", reason: "temperature can only be read"))
    #expect(
      map.request(on: "home/microbit/kitchen/humidity/set")
        == .refused(
          kitchen, property: "humidity",
          reason: "there is no property humidity; settable: period"))
  }

  @Test func readsRequestsToThisBridge() {
    #expect(map.request(on: "home/microbit/bridge/attic/request/devices") == .bridge(verb: "devices"))
    #expect(map.request(on: "home/microbit/bridge/attic/request/device/add") == .bridge(verb: "device/add"))
  }

  @Test(arguments: [
    "", "/", "home/microbit", "home/microbit/", "home/microbit/kitchen", "home/microbit/kitchen/period",
    "home/microbit/kitchen/period/get", "home/microbit/kitchen/period/set/",
    "home/microbit/kitchen/period/set/x",
    "home/microbit//period/set", "home/microbit/kitchen//set", "home/microbit/Kitchen/period/set",
    "home/microbit/bridge/period/set", "home/microbit/all/period/set", "home/microbit/area/period/set",
    "home/microbit/kitchen/per iod/set", "home/microbitx/kitchen/period/set",
    "/home/microbit/kitchen/period/set",
    "microbit/kitchen/period/set", "home/microbit/kitchen/period\u{301}/set",
    "home/microbit/kitchen/period/set\0",
    "home/microbit/bridge/attic/request", "home/microbit/bridge/attic/request/",
    "home/microbit/bridge/attic/request/device/", "home/microbit/bridge/attic/request/Devices",
    "home/microbit/bridge/other/request/devices", "home/microbit/bridge/attic/response/devices",
    "home/microbit/bridge/attic/state",
  ])
  func leavesAllElseAlone(topic: String) {
    #expect(map.request(on: topic) == nil)
  }

  /// Its answer's topic would be longer than a topic can be.
  @Test func leavesVerbsAloneThatAreNone() {
    let request = "home/microbit/bridge/attic/request/"
    let words = Array(repeating: "device", count: 10_000).joined(separator: "/")
    for length in [65, 1000, 65_535 - request.utf8.count] {
      #expect(map.request(on: request + words.prefix(length)) == nil)
    }
    let longest = String(words.prefix(64).dropLast()) + "x"
    #expect(map.request(on: request + longest) == .bridge(verb: longest))
    #expect(map.bridgeResponse(to: longest).string.hasSuffix(longest))
  }

  @Test func comparesByBytes() {
    // "é" in one and in two scalars: equal as strings, not as topics.
    let map = TopicMap(base: "caf\u{E9}", gateway: GatewayID(hostName: "g"), profile: .microbit)
    #expect(map.request(on: "caf\u{E9}/kitchen/period/set") != nil)
    #expect(map.request(on: "cafe\u{301}/kitchen/period/set") == nil)
  }
}
