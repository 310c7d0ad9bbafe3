import Configuration
import MQTT
import TestSupport
import Testing

@testable import Bridge

@Suite struct TopicMapTests {
  let map = TopicMap(base: "home/microbit", gateway: GatewayID(hostName: "attic"))
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
    let topics = map.topics(of: kitchen, .microbitDefault)
    #expect(topics.availability.string == "home/microbit/kitchen/availability")
    #expect(topics.readings.string == "home/microbit/kitchen/readings")
    #expect(topics.info.string == "home/microbit/kitchen/info")
    #expect(topics.properties.count == 2)
    #expect(topics.properties[0].value.string == "home/microbit/kitchen/temperature")
    #expect(topics.properties[1].value.string == "home/microbit/kitchen/period")
    #expect(topics.properties[1].set.string == "home/microbit/kitchen/period/set")
    #expect(topics.properties[1].result.string == "home/microbit/kitchen/period/result")
    #expect(topics.result(ofProperty: "humidity")?.string == "home/microbit/kitchen/humidity/result")
  }

  @Test func parsesCommands() {
    let request = map.inbound("home/microbit/kitchen/period/set")
    #expect(request == .set(.device(kitchen), property: "period"))
    let topic = map.topics(of: kitchen, .microbitDefault).properties[1].set
    #expect(map.inbound(topic.string) == .set(.device(kitchen), property: "period"))
  }

  /// Whether a property can be set is checked later, with the device's profile.
  @Test func parsesCommandsForEveryProperty() {
    #expect(
      map.inbound("home/microbit/kitchen/temperature/set") == .set(.device(kitchen), property: "temperature"))
    #expect(map.inbound("home/microbit/kitchen/humidity/set") == .set(.device(kitchen), property: "humidity"))
  }

  @Test func parsesGetCommands() {
    #expect(map.inbound("home/microbit/kitchen/period/get") == .get(kitchen, property: "period"))
    #expect(map.inbound("home/microbit/kitchen/humidity/get") == .get(kitchen, property: "humidity"))
    let topics = map.topics(of: kitchen, .microbitDefault)
    for topic in ["home/microbit/kitchen/period/set", "home/microbit/kitchen/period/get"] {
      #expect(topics.commands.contains { $0.matches(TopicName(topic)!) })
    }
  }

  @Test func valuesOfAProgramCanBeSet() throws {
    #expect(
      map.inbound("home/microbit/kitchen/values/servo/set")
        == .set(.device(kitchen), property: "values/servo"))
    let area = try #require(AreaName("Values"))
    #expect(map.inbound("home/microbit/area/values/period/set") == .set(.area(area), property: "period"))
    // It is answered that it cannot be read.
    #expect(map.inbound("home/microbit/kitchen/values/servo/get") == .get(kitchen, property: "values/servo"))
    for topic in ["kitchen/values/servo", "all/values/servo/set", "kitchen/x/y/set"] {
      #expect(map.inbound("home/microbit/\(topic)") == nil)
    }
  }

  /// There is no `get` for a group.
  @Test(arguments: ["all/period", "area/hall/period", "bridge/period", "area/period", "kitchen/period/get"])
  func ignoresOtherGetCommands(topic: String) {
    #expect(map.inbound("home/microbit/\(topic)/get") == nil)
  }

  /// Any level of a topic is taken for a name, as the sender waits for an answer.
  @Test(arguments: [
    "", " ", "PERIOD", "Period", "\u{FC}", "per iod", "period\u{301}", "period.1", "$SYS", "\u{202E}doirep",
    String(repeating: "p", count: 65), String(repeating: "p", count: 256),
  ])
  func parsesInvalidPropertyNames(name: String) throws {
    let hall = try #require(AreaName("Hall"))
    for (topic, target) in [
      ("kitchen", Target.device(kitchen)), ("all", .all), ("area/hall", .area(hall)),
    ] {
      #expect(map.inbound("home/microbit/\(topic)/\(name)/set") == .set(target, property: name))
    }
    #expect(map.inbound("home/microbit/kitchen/\(name)/get") == .get(kitchen, property: name))
    #expect(
      map.topics(of: kitchen, .microbitDefault).result(ofProperty: name)?.string
        == "home/microbit/kitchen/\(name)/result")
  }

  /// Each of a thousand devices would answer on a topic of that length.
  @Test func ignoresTooLongPropertyNames() {
    #expect(map.inbound("home/microbit/all/\(String(repeating: "p", count: 257))/set") == nil)
    #expect(map.inbound("home/microbit/kitchen/\(String(repeating: "p", count: 257))/get") == nil)
    #expect(map.inbound("home/microbit/kitchen/\(String(repeating: "p", count: 65_000))/set") == nil)
  }

  @Test func parsesRequestsToThisGateway() {
    #expect(map.inbound("home/microbit/bridge/attic/request/devices") == .request(verb: "devices"))
    #expect(map.inbound("home/microbit/bridge/attic/request/device/add") == .request(verb: "device/add"))
  }

  @Test func parsesGroupCommands() throws {
    let hall = try #require(AreaName("Hall"))
    #expect(map.inbound("home/microbit/all/period/set") == .set(.all, property: "period"))
    #expect(map.inbound("home/microbit/area/hall/period/set") == .set(.area(hall), property: "period"))
    #expect(map.inbound("home/microbit/all/temperature/set") == .set(.all, property: "temperature"))
    #expect(Target.all.isGroup && Target.area(hall).isGroup && !Target.device(kitchen).isGroup)
    for filter in map.groupCommands {
      #expect(
        ["home/microbit/all/period/set", "home/microbit/area/hall/period/set"].contains {
          filter.matches(TopicName($0)!)
        })
    }
  }

  @Test func parsesTopicsOfOtherGateways() throws {
    let attic = try #require(GatewayID("attic"))
    let cellar = try #require(GatewayID("cellar"))
    #expect(map.inbound("home/microbit/bridge/cellar/state") == .bridgeState(cellar))
    #expect(map.inbound("home/microbit/bridge/attic/state") == .bridgeState(attic))
    #expect(map.inbound("home/microbit/bridge/attic/info") == .bridgeInfo)
    #expect(map.inbound(map.claims.string) == .claim)
    #expect(map.inbound("home/microbit/bridge/attic/response/health") == .response)
    #expect(map.inbound("home/microbit/kitchen/info") == .deviceInfo(kitchen))
    #expect(map.inbound("home/microbit/kitchen/availability") == .deviceAvailability(kitchen))
  }

  @Test(arguments: [
    "", "/", "home/microbit", "home/microbit/", "home/microbit/kitchen", "home/microbit/kitchen/period",
    "home/microbit/kitchen/period/set/",
    "home/microbit/kitchen/period/set/x",
    "home/microbit//period/set", "home/microbit/Kitchen/period/set",
    "home/microbit/bridge/period/set", "home/microbit/area/period/set", "home/microbit/area/-/period/set",
    "home/microbit/bridge/info", "home/microbit/bridge/state", "home/microbit/all/info",
    "home/microbitx/kitchen/period/set", "/home/microbit/kitchen/period/set",
    "microbit/kitchen/period/set", "home/microbit/kitchen/period/set\0",
    "home/microbit/bridge/attic/request", "home/microbit/bridge/attic/request/",
    "home/microbit/bridge/attic/request/device/", "home/microbit/bridge/attic/request/Devices",
    "home/microbit/bridge/other/request/devices", "home/microbit/bridge/attic/response/devices",
    "home/microbit/bridge/other/info", "home/microbit/bridge/Attic/state",
  ])
  func ignoresOtherTopics(topic: String) {
    #expect(map.inbound(topic) == nil)
  }

  /// The topic of the answer would be longer than a topic can be.
  @Test func ignoresInvalidVerbs() {
    let request = "home/microbit/bridge/attic/request/"
    let words = Array(repeating: "device", count: 10_000).joined(separator: "/")
    for length in [65, 1000, 65_535 - request.utf8.count] {
      #expect(map.inbound(request + words.prefix(length)) == nil)
    }
    let longest = String(words.prefix(64).dropLast()) + "x"
    #expect(map.inbound(request + longest) == .request(verb: longest))
    #expect(map.bridgeResponse(to: longest).string.hasSuffix(longest))
  }

  @Test func comparesByBytes() {
    // "é" in one and in two scalars: equal as strings, not as topics.
    let map = TopicMap(base: "caf\u{E9}", gateway: GatewayID(hostName: "g"))
    #expect(map.inbound("caf\u{E9}/kitchen/period/set") != nil)
    #expect(map.inbound("cafe\u{301}/kitchen/period/set") == nil)
  }
}
