import Configuration
import TestSupport
import Testing

@testable import Bridge
@testable import Devices

/// Which gateway carries out commands and requests.
extension BridgeAtBrokerTests {
  @Test func commandsAreLeftToAnOwnerThatIsOnline() async throws {
    let tested = try await BridgeUnderTest(
      broker, retained: [("bridge/attic/state", "online"), ("kitchen/info", Self.info("attic"))])
    try await tested.publish("kitchen/period/set", #"{"value":500,"transaction":"a1"}"#)
    #expect(try await tested.payloads("kitchen/period/result") == [])
    #expect(try await tested.payloads("kitchen/availability") == [])
    try await tested.publish("bridge/attic/state", "offline")
    try await tested.publish("kitchen/period/set", #"{"value":600,"transaction":"a2"}"#)
    let results = try await tested.payloads("kitchen/period/result")
    #expect(results.count == 1)
    #expect(results.first?.contains(#""status":"pending","requested":600,"transaction":"a2""#) == true)
  }

  private static func info(desired: String) -> String {
    #"{"owner":"attic","identifier":"C5:A1:B2:C3:D4:E5","properties":["temperature","period"],"#
      + #""last_connected":"2020-01-01T00:00:00.000Z"\#(desired)}"#
  }

  /// The link comes before the broker's connection: the retained `info` of the earlier owner arrives late.
  @Test func earlierOwnersValuesAreCopiedThoughTheLinkCameFirst() async throws {
    let tested = try await BridgeUnderTest(broker)
    let bridge = tested.bridge
    // Not only the first time.
    for period in [800, 900] {
      try await tested.comeOnline()
      try await tested.device { publisher in
        bridge.ownership.handle { $0.disconnected() }
        let desired = #","desired":{"period":\#(period)},"revision":\#(period)"#
        bridge.ownership.received(
          info: Array(Self.info(desired: desired).utf8), of: publisher.device.id, isRetained: true)
      }
      try await tested.message("kitchen/info", #""desired":{"period":\#(period)}"#)
    }
  }

  @Test func valueWithdrawnAtTheOwnerIsWithdrawnHere() async throws {
    let tested = try await BridgeUnderTest(broker, retained: [("bridge/attic/state", "online")])
    for (desired, isDesired) in [(#","desired":{"period":800}"#, true), ("", false)] {
      try await tested.publish("kitchen/info", Self.info(desired: desired), retain: true)
      let start = tested.messages.count
      try await tested.publish("bridge/here/request/devices", "")
      let response = try await tested.message("bridge/here/response/devices", "kitchen", from: start)
      let text = String(decoding: response.payload, as: UTF8.self)
      #expect(text.contains(#""desired":{"period":800}"#) == isDesired, "\(text)")
    }
  }

  private static func commandWaitsOverAReconnect(_ tested: BridgeUnderTest) async throws {
    try await tested.publish("kitchen/period/set", "500")
    try await tested.message("kitchen/period/result", #""status":"pending""#)
    try await tested.message("bridge/here/info", #""connects":1"#)
    let start = tested.messages.count
    await tested.bridge.context.mqtt.reconnect(after: .zero)
    try await tested.message("bridge/here/info", #""connects":2"#, from: start)
    #expect(try await tested.payloads("kitchen/period/result").count == 1)
  }

  /// As after a restart of the broker.
  @Test func waitingCommandSurvivesAReconnectWhileOwnerIsOffline() async throws {
    let tested = try await BridgeUnderTest(broker, retained: [("kitchen/info", Self.info("attic"))])
    try await Self.commandWaitsOverAReconnect(tested)
    // The owner has the device again.
    try await tested.publish("bridge/attic/state", "online", retain: true)
    try await tested.publish("kitchen/info", Self.info("attic"), retain: true)
    try await tested.message("kitchen/period/result", "another gateway has taken the device over")
  }

  /// The gateway answers commands before it has found the device.
  private func pinnedHere() async throws -> BridgeUnderTest {
    let info = Self.info("attic").dropLast() + #","pinned_to":"here"}"#
    let retained = [("bridge/attic/state", "online"), ("kitchen/info", String(info))]
    let pinned = BridgeUnderTest.kitchen.replacing(
      #""id":"kitchen""#, with: #""id":"kitchen","gateway":"here""#)
    return try await BridgeUnderTest(broker, pinned, retained: retained)
  }

  @Test func requestsForAPinnedDeviceAreCarriedOutHere() async throws {
    let tested = try await pinnedHere()
    for (verb, keys) in [
      ("property/set", #""property":"period","value":600"#),
      ("device/options", Self.desired),
    ] {
      try await tested.publish("bridge/here/request/\(verb)", #"{"id":"kitchen",\#(keys)}"#)
      try await tested.message("bridge/here/response/\(verb)", #""status":"ok""#)
    }
    // Its topics have its id until then.
    try await tested.publish("bridge/here/request/device/rename", #"{"id":"kitchen","to":"hall"}"#)
    try await tested.message("bridge/here/response/device/rename", "has found it: rename it then")
  }

  @Test func waitingCommandOfAPinnedDeviceSurvivesAReconnect() async throws {
    let tested = try await pinnedHere()
    try await Self.commandWaitsOverAReconnect(tested)
    try await tested.publish("kitchen/info", Self.info("attic"), retain: true)
    try await tested.message("kitchen/period/result", "another gateway has taken the device over")
  }

  private static let desired = #""options":{"desired":{"period":700}}"#
  private static let requests: [(verb: String, keys: String, whileItsOwnerIsOffline: String)] = [
    ("property/get", #""property":"period""#, "the device is offline"),
    ("property/set", #""property":"period","value":500"#, #""status":"pending""#),
    ("device/sequence", #""steps":[{"read":"period"}]"#, "kitchen: the device is offline"),
  ]

  @Test func requestsForADeviceAreRefusedWhileItsOwnerIsOnline() async throws {
    let tested = try await BridgeUnderTest(
      broker, retained: [("bridge/attic/state", "online"), ("kitchen/info", Self.info("attic"))])
    func expectResponse(_ verb: String, _ keys: String, _ expected: String) async throws {
      let start = tested.messages.count
      try await tested.publish("bridge/here/request/\(verb)", #"{"id":"kitchen",\#(keys)}"#)
      let response = try await tested.message("bridge/here/response/\(verb)", "", from: start)
      let text = String(decoding: response.payload, as: UTF8.self)
      #expect(text.contains(expected), "\(verb): \(text)")
    }
    for (verb, keys, _) in Self.requests {
      try await expectResponse(verb, keys, "kitchen is owned by the gateway attic: send the request there")
    }
    try await tested.publish("bridge/attic/state", "offline")
    for (verb, keys, expected) in Self.requests { try await expectResponse(verb, keys, expected) }
    // The owner would replace what was set here when it is back.
    let refusal = "kitchen is owned by the gateway attic: its desired values are set there"
    try await expectResponse("device/options", Self.desired, refusal)
  }

  @Test func requestsForADisabledDeviceAreUnavailable() async throws {
    let disabled = BridgeUnderTest.kitchen.replacing(
      #""id":"kitchen""#, with: #""id":"kitchen","enabled":false"#)
    let tested = try await BridgeUnderTest(broker, disabled)
    for (verb, keys, _) in Self.requests {
      try await tested.publish("bridge/here/request/\(verb)", #"{"id":"kitchen",\#(keys)}"#)
      try await tested.message(
        "bridge/here/response/\(verb)",
        #""code":"unavailable","error":"kitchen is disabled: enable it with device/options""#)
    }
  }

  @Test func deviceHasNoOwnerAfterItsInfoIsCleared() async throws {
    let tested = try await BridgeUnderTest(broker, retained: [("kitchen/info", Self.info("attic"))])
    let rename = #"{"id":"kitchen","to":"hall","transaction":""#
    try await tested.publish("bridge/here/request/device/rename", rename + #"1"}"#)
    try await tested.message("bridge/here/response/device/rename", "is owned by the gateway attic")
    try await tested.publish("kitchen/info", "", retain: true)
    try await tested.publish("bridge/here/request/device/rename", rename + #"2"}"#)
    try await tested.message("bridge/here/response/device/rename", #""status":"ok""#)
  }

  @Test func messagesThatArriveTwiceChangeNothing() async throws {
    var published: [[String]] = []
    for doubled in [[], ["+/info", "bridge/+/state", "bridge/+/info", "bridge/+/response/#"]] {
      let folder = try TemporaryFolder()
      var record = DeviceRecord(address: Self.hall)
      record.id = try DeviceID("cellar")
      let hall = Self.info("here").replacing("C5:A1:B2:C3:D4:E5", with: Self.hall.description)
      let broker = try await MosquittoBroker()
      let tested = try await BridgeUnderTest(
        broker, state: await Self.state(in: folder, record),
        retained: [
          ("bridge/attic/state", "online"), ("kitchen/info", Self.info("attic")), ("cellar/info", hall),
          ("cellar/temperature", "21"),
        ], doubled: doubled.map { "microbit/" + $0 })
      _ = try await tested.messages.first(within: patience, "the orphan is cleared") {
        $0.topic.string == "microbit/cellar/temperature" && $0.payload.isEmpty
      }
      // The owner hands the kitchen over, and takes it back. Each step is complete before the next.
      try await tested.publish("kitchen/info", "", retain: true)
      _ = try await tested.payloads("kitchen/info")
      try await tested.comeOnline()
      try await tested.message("kitchen/availability", "online")
      _ = try await tested.payloads("kitchen/info")
      try await tested.publish("kitchen/info", Self.info("attic"), retain: true)
      _ = try await tested.payloads("kitchen/info")
      published.append(
        tested.messages.elements.filter { !$0.topic.string.hasPrefix("microbit/bridge/") }
          .map { "\($0.topic.string) \($0.payload.isEmpty ? "cleared" : "")" }.sorted())
      await tested.end()
    }
    #expect(published[0].count > 6)
    #expect(published[0] == published[1])
  }
}
