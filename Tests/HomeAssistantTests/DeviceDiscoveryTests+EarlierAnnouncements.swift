import Configuration
import JSON
import MQTT
import Testing

@testable import Bridge
@testable import Devices
@testable import HomeAssistant

/// What was announced before, by this gateway or another.
extension DeviceDiscoveryTests {
  @Test func everyComponentIsAnnounced() {
    let components: [(String, Platform)] = [
      ("temperature", .sensor), ("offset-temperature", .number), ("period", .number),
      ("connectivity", .binarySensor), ("rssi", .sensor),
      ("firmware", .sensor), ("model", .sensor), ("enabled", .switch), ("reconnect", .button),
    ]
    let expected = Announced(
      prefix: "homeassistant",
      components: components.map { Announced.Component(key: $0.0, platform: $0.1) })
    #expect(document(device).announced == expected)
  }

  /// Again and again: the announcement before this one may have been lost.
  @Test func removedComponentIsNamedWithItsPlatformAlone() throws {
    let earlier = Announced(
      prefix: "homeassistant",
      components: [
        Announced.Component(key: "humidity", platform: .sensor),
        Announced.Component(key: "model", platform: .sensor),
      ])
    var announced = earlier
    for _ in 0..<2 {
      let document = document(device, before: announced)
      let components = try object(document, "cmps")
      try expect(components["humidity"], #"{ "p": "sensor" }"#)
      #expect(components.names.count == 10)
      #expect(document.announced.components.map(\.key).contains("humidity"))
      announced = document.announced
    }
    #expect(announced.components.count == 10)
  }

  /// A document has one platform for each key: the entity of the earlier one is removed first, then the other announced.
  @Test func entityOfAnotherPlatformIsAnnouncedAfterTheEarlierOneIsRemoved() throws {
    let present = document(device)
    let period = { (platform: Platform) in Announced.Component(key: "period", platform: platform) }
    let earlier = Announced(
      prefix: "homeassistant",
      components: present.announced.components.filter { $0.key != "period" } + [
        period(.select), period(.switch),
      ])
    var before = earlier
    var published = PublishedDocument()
    func next(isReannouncement: Bool = false) -> DiscoveryDocument {
      let document = discovery.document(
        of: device, topics: topics(device), before: before, isReannouncement: isReannouncement,
        removed: published.removed)
      before = document.announced
      published.replace(by: document)
      return document
    }
    // Again on each connection, as Home Assistant may have missed it.
    for _ in 0..<2 {
      for platform in [Platform.select, .switch] {
        let removal = next()
        try expect(object(removal, "cmps")["period"], #"{ "p": "\#(platform.rawValue)" }"#)
        #expect(removal.replaced == [period(platform)])
        #expect(try object(removal, "cmps").names.count == present.completed.components.count)
      }
      for _ in 0..<2 {
        let last = next()
        #expect(try object(last, "cmps") == object(present, "cmps"))
        #expect(last.replaced == [])
        #expect(Set(last.announced.components) == Set(present.announced.components + earlier.components))
        #expect(last.completed == present.completed)
      }
      published.expire()
    }
  }

  /// As often as it changes, with no new connection between.
  @Test func entityThatChangesItsPlatformThereAndBackIsRemovedEachTime() throws {
    let platforms: [Platform] = [.number, .select, .number, .select]
    var before: Announced?
    var published = PublishedDocument()
    for (index, platform) in platforms.enumerated() {
      for isSecond in index == 0 ? [true] : [false, true] {
        let document = DiscoveryDocument(
          object: "ble_a", prefix: "ha", device: [:], availability: [], qos: .atLeastOnce,
          components: [DiscoveryComponent(key: "period", platform: platform, members: [:])], before: before,
          removed: published.removed)
        before = document.announced
        published.replace(by: document)
        let found = try object(document, "cmps")["period"]?["p"]?.text
        #expect(found == (isSecond ? platform : platforms[index - 1]).rawValue, "\(index) \(isSecond)")
      }
    }
  }

  /// At Home Assistant's start, the earlier one is announced once more, in place of the one that exists, and removed.
  @Test func entityOfAnEarlierPlatformIsReannouncedAndThenRemoved() throws {
    let present = self.document(device)
    let earlier = Announced(
      prefix: "homeassistant",
      components: present.announced.components + [Announced.Component(key: "period", platform: .select)])
    func document(isReannouncement: Bool, removed: Set<Announced.Component>) -> DiscoveryDocument {
      discovery.document(
        of: device, topics: topics(device), before: earlier, isReannouncement: isReannouncement,
        removed: removed)
    }
    let select = Announced.Component(key: "period", platform: .select)
    let reannouncement = document(isReannouncement: true, removed: [select])
    let entity = try object(reannouncement, "cmps")["period"]
    #expect(entity?["p"] == "select")
    #expect(entity?["uniq_id"] == "ble_c5a1b2c3d4e5_period")
    #expect(entity?["avty"] == [["t": "homeassistant/device/ble_c5a1b2c3d4e5/removed"]])
    #expect(reannouncement.announced == earlier)
    #expect(reannouncement.completed == present.completed)
    var published = PublishedDocument()
    published.reannounce()
    let removal = document(isReannouncement: false, removed: published.removed)
    try expect(object(removal, "cmps")["period"], #"{ "p": "select" }"#)
    published.replace(by: removal)
    let last = document(isReannouncement: false, removed: published.removed)
    #expect(last.payload == present.payload)
    #expect(last.completed == present.completed)
  }

  /// Home Assistant removes only what it knows: after its start both are announced once more, then one is removed.
  @Test func removedComponentIsReannouncedAndThenRemoved() throws {
    let before = document(device)
    let earlier = Announced(
      prefix: before.announced.prefix,
      components: before.announced.components + [Announced.Component(key: "valve", platform: .number)])
    let topics = topics(device)
    let reannouncement = discovery.document(
      of: device, topics: topics, before: earlier, isReannouncement: true)
    try expect(
      try object(reannouncement, "cmps")["valve"],
      """
      { "p": "number", "uniq_id": "ble_c5a1b2c3d4e5_valve", "qos": 1,
        "cmd_t": "homeassistant/device/ble_c5a1b2c3d4e5/removed",
        "stat_t": "homeassistant/device/ble_c5a1b2c3d4e5/removed",
        "min": -2147483648, "max": 2147483647,
        "avty": [{ "t": "homeassistant/device/ble_c5a1b2c3d4e5/removed" }] }
      """)
    #expect(reannouncement.announced == earlier)
    #expect(reannouncement.completed == before.announced)
    #expect(document(device, before: earlier).completed == before.announced)
    // Without removed components, a reannouncement is the same as any announcement.
    let same = discovery.document(
      of: device, topics: topics, before: before.announced, isReannouncement: true)
    #expect(same == document(device, before: before.announced))
    #expect(same.announced == same.completed)
  }

  /// Home Assistant creates a gateway that it does not know yet without an area: the retained document does not refer to it.
  @Test func linkConnectsTheDeviceWithTheGateway() throws {
    let link = discovery.link(of: device, topics: topics(device))
    let document = document(device)
    #expect(link.topic == document.topic)
    let (whole, dev, cmps) = try (object(document), object(document, "dev"), object(document, "cmps"))
    let json: JSONValue = [
      "dev": JSONValue.object(dev).setting("via_device", to: "ble_gateway_attic"),
      "o": whole["o"], "avty_mode": "all",
      "cmps": ["connectivity": cmps["connectivity"]],
    ]
    #expect(try JSONValue.object(object(link)) == json)
    #expect(dev["via_device"] == nil)
    // Not another gateway's announcement.
    #expect(discovery.origin(of: link.payload).gateways == [])
  }

  @Test func documentOfAnotherGatewayIsRecognised() throws {
    func document(by gateway: String, base: String = "microbit") -> [UInt8] {
      let map = TopicMap(base: base, gateway: GatewayID(hostName: gateway))
      return Discovery(prefix: "homeassistant", qos: .atLeastOnce, topics: map)
        .document(of: device, topics: map.topics(of: device.id, device.profile)).payload
    }
    #expect(discovery.origin(of: document(by: "cellar")).gateways == [GatewayID("cellar")!])
    #expect(discovery.origin(of: document(by: "attic")).gateways == [GatewayID("attic")!])
    #expect(discovery.origin(of: document(by: "cellar", base: "elsewhere")).gateways == [])
    #expect(discovery.origin(of: document(by: "attic", base: "else/where")).otherBase == "else/where")
    #expect(discovery.origin(of: document(by: "cellar")).otherBase == nil)
    let removal = Removal(object: "ble_c5a1b2c3d4e5", announced: self.document(device).announced)
    #expect(discovery.origin(of: removal.reannouncement(qos: .atLeastOnce).payload).gateways == [])
    for text in ["", "{", "[]", "{}", #"{"avty":1}"#, #"{"avty":[1,{},{"t":1},{"t":""}]}"#] {
      #expect(discovery.origin(of: Array(text.utf8)).gateways == [], "\(text)")
      #expect(discovery.origin(of: Array(text.utf8)).otherBase == nil, "\(text)")
    }
  }

  /// There the whole topic is cleared.
  @Test func componentsUnderAnotherPrefixAreNotRemovedHere() {
    let earlier = Announced(
      prefix: "other", components: [Announced.Component(key: "humidity", platform: .sensor)])
    #expect(document(device, before: earlier) == document(device))
  }
}
