import Configuration
import EventLoop
import GATT
import JSON
import Store
import TestSupport
import Testing

@testable import Bridge
@testable import Devices

/// Commands, ownership and publishing, with a real broker and without Bluetooth.
@Suite struct BridgeAtBrokerTests {
  private static let hall = BluetoothAddress(truncating: 2)
  private let broker: MosquittoBroker

  init() async throws { broker = try await MosquittoBroker() }

  // MARK: CommandHandler

  /// Commands, and what their results contain.
  private static let refusals: [(topic: String, payload: String, reason: String)] = [
    (
      "kitchen/x/set", #"{"value":1,"transaction":"t"}"#,
      #""reason":"kitchen has no property x; in use: temperature, period, button_a, accelerometer","transaction":"t""#
    ),
    ("kitchen/temperature/set", "1", #""reason":"temperature cannot be set""#),
    ("kitchen/period/set", "10", #""reason":"10 is below the smallest period, 20 ms""#),
    ("kitchen/period/set", "", #""reason":"the payload is empty""#),
    (
      "kitchen/perod/get", #"{"transaction":"t"}"#,
      #""reason":"kitchen has no property perod: did you mean period?","transaction":"t""#
    ),
    (
      "kitchen/led_text/get", "",
      #""reason":"kitchen does not use led_text: add it to its properties, in config.json or by device/options; in use: "#
    ),
    (
      "kitchen/button_a/get", "",
      #""reason":"button_a cannot be read, as it is an event: watch shows it when it happens""#
    ),
    (
      "kitchen/period/get", "5",
      #""reason":"\"5\": to read a property, send nothing, or {\"transaction\":\"…\"}""#
    ),
    ("kitchen/period/get", #"{"transaction":5}"#, #""reason":"the transaction is a number, not a string""#),
    (
      "kitchen/period/get", #"{"ttl":5,"transaction":"t"}"#,
      #""reason":"unknown key \"ttl\"; allowed: transaction","transaction":"t""#
    ),
    (
      "kitchen/period/get", String(repeating: " ", count: 4096) + "5",
      #""reason":"the payload has more than 4096 bytes""#
    ),
  ]

  @Test func commandsThatCannotBeCarriedOutAreRejected() async throws {
    let tested = try await BridgeUnderTest(broker)
    for (topic, payload, reason) in Self.refusals {
      let start = tested.messages.count
      try await tested.publish(topic, payload)
      let result = topic.split(separator: "/").dropLast().joined(separator: "/") + "/result"
      let text = try await tested.payloads(result, from: start)
      #expect(text.count == 1 && text[0].hasPrefix(#"{"status":"rejected","#), "\(text)")
      #expect(text.first?.contains(reason) == true, "\(text)")
    }
  }

  /// A bridge between brokers may bring one of an earlier run.
  @Test func anOldInfoOfTheGatewayIsAConflictOnlyIfItsRunAnswers() async throws {
    try await cause(conflictAt: try await BridgeUnderTest(broker))
  }

  private func cause(conflictAt tested: BridgeUnderTest) async throws {
    try await tested.admitted(true)
    await tested.awaitBarriers(patience)
    let start = tested.messages.count
    try await tested.publish(
      "bridge/here/info", #"{"run":"gone","started":"2020-01-01T00:00:00.000Z"}"#, retain: true)
    try await tested.message("bridge/here/info", #""connects":1"#, from: start)
    let question = try await tested.message("bridge/here/request/health", "", from: start)
    try await tested.admitted(true)
    let json = try JSONParser.parse(question.payload)
    let transaction = try #require(json["transaction"]?.text)
    try await tested.publish(
      "bridge/here/response/health", #"{"transaction":"\#(transaction)","data":{"run":"gone"}}"#)
    try await tested.admitted(false)
  }

  /// Whether the other gateway still has the id is not known.
  @Test func aBrokerThatCannotBeReachedIsReportedInsteadOfAConflict() async throws {
    let tested = try await BridgeUnderTest(broker)
    try await cause(conflictAt: tested)
    #expect(await tested.bridge.health.problems.contains { $0.hasPrefix("another gateway at this broker") })
    try await broker.kill()
    try await eventually("the next attempt to connect fails") {
      await tested.bridge.health.problems.contains { $0.hasPrefix("the running gateway is not connected") }
    }
    #expect(await !tested.bridge.health.problems.contains { $0.hasPrefix("another gateway at this broker") })
  }

  @Test func reservedAndLongResponseTopicsAreIgnored() async throws {
    let tested = try await BridgeUnderTest(broker)
    let topics = [
      "microbit/hall/info", "homeassistant/device/x/config", "replies", "microbits/replies",
      String(repeating: "r", count: 1025), String(repeating: "r/", count: 99) + "/",
    ]
    for topic in topics {
      try await tested.publish("kitchen/period/set", "10", responseTopic: topic)
    }
    #expect(try await tested.payloads("kitchen/period/result").count == topics.count)
    let answered = tested.messages.elements.map(\.topic.string).filter(topics.contains)
    #expect(answered == ["replies", "microbits/replies"])
  }

  @Test func theResponseTopicOfARetainedCommandIsIgnored() async throws {
    let before = try await BridgeUnderTest(broker)
    try await before.publish("kitchen/period/set", "10", retain: true, responseTopic: "replies")
    try await before.message("kitchen/period/result", "10")
    await before.end()
    let tested = try await BridgeUnderTest(broker)
    try await tested.message("kitchen/period/result", "10")
    #expect(try await tested.payloads("kitchen/period/result").count == 1)
    #expect(!tested.messages.elements.contains { $0.topic.string == "replies" })
  }

  @Test func aRequestIsAnsweredOnItsResponseTopicToo() async throws {
    let tested = try await BridgeUnderTest(broker)
    for (verb, keys) in [("devices", ""), ("device/remove", #""id":"nobody","#)] {
      let payload = "{\(keys)\"transaction\":\"ü/+#\\n\"}"
      try await tested.publish("bridge/here/request/\(verb)", payload, responseTopic: "replies")
      let response = try await tested.message("bridge/here/response/\(verb)", #""transaction":"ü/+#\n""#)
      #expect(!response.retain)
      _ = try await tested.messages.first(within: patience, "a reply") {
        $0.topic.string == "replies" && $0.payload == response.payload
      }
    }
  }

  /// Requests for devices and adapters that do not exist, for ids that are in use, and for devices of others.
  private static let impossible: [(verb: String, payload: String, reason: String)] = [
    ("device/rename", #"{"id":"kitchn","to":"x"}"#, "no device is called kitchn: did you mean kitchen?"),
    ("device/rename", #"{"id":"kitchen","to":"cellar"}"#, "the id cellar is in use by C5:A1:B2:C3:D4:E6"),
    (
      "device/add", #"{"identifier":"C5:A1:B2:C3:D4:E7","id":"kitchen"}"#,
      "kitchen is in use by C5:A1:B2:C3:D4:E5"
    ),
    ("device/add", #"{"identifier":"C5:A1:B2:C3:D4:E8","name":"Mine"}"#, "is pinned to another gateway"),
    ("device/remove", #"{"id":"celar"}"#, "did you mean cellar?"),
    ("device/options", #"{"id":"nobody","options":{}}"#, "no device is called nobody"),
    ("device/pair", #"{"id":"nobody"}"#, "no device is called nobody"),
    ("device/pair", #"{"identifier":"C5:A1:B2:C3:D4:FF"}"#, "no device has the address"),
    ("device/pair", #"{"id":"kitchen","identifier":"C5:A1:B2:C3:D4:FF"}"#, "named twice"),
    ("device/pair", #"{"id":"kitchen","passkey":1000000}"#, "passkey"),
    ("device/pair", "{}", "this is missing"),
    ("adapter/reset", #"{"adapter":"hci9"}"#, "hci0"),
  ]

  @Test func impossibleRequestsAreRefusedAndStoreNothing() async throws {
    let configuration = BridgeUnderTest.kitchen.replacing(
      #"{"devices":["#,
      with: #"{"devices":[{"match":{"identifier":"C5:A1:B2:C3:D4:E6"},"id":"cellar"},"#
        + #"{"match":{"identifier":"C5:A1:B2:C3:D4:E8"},"gateway":"attic"},"#)
    let tested = try await BridgeUnderTest(broker, configuration)
    for (verb, payload, reason) in Self.impossible {
      let start = tested.messages.count
      try await tested.publish("bridge/here/request/\(verb)", payload)
      let response = try await tested.message("bridge/here/response/\(verb)", "", from: start)
      let text = String(decoding: response.payload, as: UTF8.self)
      #expect(text.contains(#""status":"error""#) && text.contains(reason), "\(verb) \(payload): \(text)")
    }
    for last: UInt64 in 0xE5...0xE8 {
      let record = await tested.record(of: BluetoothAddress(truncating: 0xC5A1_B2C3_D400 + last))
      #expect(record?.changes.id == nil && record?.changes.name == nil, "\(String(describing: record))")
      #expect(record?.isAdded != true && record?.isRemoved != true, "\(String(describing: record))")
    }
  }

  @Test func requestRejectsTheLongFormOfAValue() async throws {
    let tested = try await BridgeUnderTest(broker)
    try await tested.publish(
      "bridge/here/request/property/set",
      #"{"id":"kitchen","property":"period","value":{"value":500,"ttl":1},"transaction":"t"}"#)
    let response = try await tested.message("bridge/here/response/property/set", #""code":"invalid""#)
    #expect(String(decoding: response.payload, as: UTF8.self).contains("is not a whole number"))
  }

  @Test func aRetainedRequestIsCarriedOutOnceAtMost() async throws {
    let request = "bridge/here/request/device/remove"
    let tested = try await BridgeUnderTest(
      broker, retained: [(request, #"{"id":"kitchen","transaction":"old"}"#)])
    #expect(try await tested.payloads("bridge/here/response/device/remove") == [])
    try await tested.publish(request, #"{"id":"kitchen","transaction":"new"}"#, retain: true)
    try await tested.message("bridge/here/response/device/remove", "new")
    // Once this is answered, the response is acknowledged, and not sent again.
    _ = try await tested.payloads("bridge/here/response/health")
    let start = tested.messages.count
    await tested.bridge.context.mqtt.reconnect(after: .zero)
    try await tested.message("bridge/here/info", #""connects":2"#, from: start)
    #expect(try await tested.payloads("bridge/here/response/device/remove", from: start) == [])
  }

  @Test func commandWaitsForItsDeviceUntilItsTimeToLiveEnds() async throws {
    let tested = try await BridgeUnderTest(broker)
    try await tested.publish("kitchen/period/set", #"{"value":2000,"ttl":1,"transaction":"a1"}"#)
    try await tested.message("kitchen/period/result", #""status":"timeout""#)
    let results = try await tested.payloads("kitchen/period/result")
    #expect(results.count == 2)
    #expect(results.first?.hasPrefix(#"{"status":"pending","requested":2000,"transaction":"a1""#) == true)
  }

  /// Other gateways do not know who has sent it.
  @Test func aCommandOfAnEarlierRunIsAnsweredWhenAnotherGatewayHasTheDevice() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/state.db"
    let tested = try await BridgeUnderTest(broker, state: path)
    try await tested.publish(
      "kitchen/period/set", #"{"value":2000,"transaction":"a1"}"#, responseTopic: "replies")
    try await tested.message("kitchen/period/result", "pending")
    await tested.end()
    let next = try await BridgeUnderTest(
      broker, state: path, retained: [("bridge/attic/state", "online"), ("kitchen/info", Self.info("attic"))])
    let result = try await next.message("kitchen/period/result", #""status":"failed","requested":2000"#)
    #expect(String(decoding: result.payload, as: UTF8.self).contains(#""transaction":"a1""#))
    _ = try await next.messages.first(within: patience, "the reply") {
      $0.topic.string == "replies" && $0.payload == result.payload
    }
  }

  @Test func aGroupCommandReachesDevicesThatCanCarryItOut() async throws {
    let tested = try await BridgeUnderTest(broker)
    for property in ["temperature", "x", "PERIOD", "period"] {
      try await tested.publish("all/\(property)/set", "500")
    }
    #expect(try await tested.payloads("kitchen/period/result").count == 1)
    try await tested.publish("all/period/set", "0")
    #expect(try await tested.payloads("kitchen/period/result").last?.contains("0 is below") == true)
    #expect(try await tested.payloads("kitchen/temperature/result") == [])
    #expect(try await tested.payloads("kitchen/x/result") == [])
  }

  @Test func aRetainedCommandOfMQTT3IsRejectedOnce() async throws {
    let old = BridgeUnderTest.kitchen.replacing(
      "{\"devices\"", with: #"{"mqtt":{"protocol":"3.1.1"},"devices""#)
    let tested = try await BridgeUnderTest(broker, old, retained: [("kitchen/period/set", "500")])
    try await tested.message(
      "kitchen/period/result", "retained commands require MQTT 5: publish it without the retain flag")
    // The broker sends it again on a new connection.
    try await tested.message("bridge/here/info", #""connects":1"#)
    let start = tested.messages.count
    await tested.bridge.context.mqtt.reconnect(after: .zero)
    try await tested.message("bridge/here/info", #""connects":2"#, from: start)
    #expect(try await tested.payloads("kitchen/period/result").count == 1)
    // Deleting it is no command.
    try await tested.publish("kitchen/period/set", "", retain: true)
    #expect(try await tested.payloads("kitchen/period/result").count == 1)
  }

  /// A deletion is a retained message without a payload.
  @Test func deletionOfARetainedCommandIsNotACommand() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/state.db"
    let tested = try await BridgeUnderTest(broker, state: path, retained: [("kitchen/period/set", "500")])
    try await tested.message("kitchen/period/result", "pending")
    let start = tested.messages.count
    try await tested.publish("kitchen/period/set", "", retain: true)
    #expect(try await tested.payloads("kitchen/period/result", from: start) == [])
    await tested.end()
    #expect(try StateDatabase.sections(path: path)["commands"] == nil, "a deleted command is not stored")
  }

  @Test func retainedCommandDuringShutdownIsLeftToTheNextStart() async throws {
    let tested = try await BridgeUnderTest(broker)
    let bridge = tested.bridge
    try await tested.device { _ in bridge.goOffline() }
    try await tested.publish("kitchen/period/set", "500", retain: true)
    #expect(try await tested.payloads("kitchen/period/result") == [])
  }

  // MARK: Ownership

  private static func info(_ gateway: String, since: String = "2999-01-01T00:00:00.000Z") -> String {
    #"{"owner":"\#(gateway)","identifier":"C5:A1:B2:C3:D4:E5","last_connected":"\#(since)","connected_since":"\#(since)"}"#
  }

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

  @Test func idOfADeviceRemovedInAnOutageIsClearedOnReconnect() async throws {
    let folder = try TemporaryFolder()
    var record = DeviceRecord(address: BridgeUnderTest.address)
    record.id = try DeviceID("kitchen")
    let path = await Self.state(in: folder, record)
    let tested = try await BridgeUnderTest(broker, state: path)
    try await broker.stop()
    try await tested.admitted(false)
    await tested.configure(Configuration())
    #expect(await tested.record()?.id == record.id)
    try await broker.start()
    try await tested.admitted(true)
    try await tested.idIsCleared()
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

  @Test func orphanedTopicsAreClearedUnlessAnotherGatewayOwnsThem() async throws {
    for owner in ["here", "attic"] {
      let folder = try TemporaryFolder()
      var record = DeviceRecord(address: BridgeUnderTest.address)
      record.id = try DeviceID("cellar")
      let path = await Self.state(in: folder, record)
      let broker = try await MosquittoBroker()
      let tested = try await BridgeUnderTest(
        broker, state: path,
        retained: [("cellar/info", Self.info(owner)), ("cellar/temperature", "21")])
      let start = tested.messages.count
      let isCleared = owner == "here"
      if isCleared { try await tested.message("cellar/temperature", "", from: 2) }
      _ = try await tested.payloads("cellar/info", from: start)
      let cleared = tested.messages.elements.filter { $0.payload.isEmpty }.map(\.topic.string)
      #expect(cleared.contains("microbit/cellar/temperature") == isCleared)
      #expect(cleared.contains("microbit/cellar/info") == isCleared)
    }
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

  /// A state database in `folder` with one record.
  @LoopActor private static func state(in folder: TemporaryFolder, _ record: DeviceRecord) async -> String {
    let path = folder.path + "/state.db"
    let state = StateDatabase(path: path)
    state.section("devices").put(record.address.description, record.bytes)
    await state.close(within: patience)
    return path
  }

  @Test func namesInADamagedRecordAreNoTopics() async throws {
    let folder = try TemporaryFolder()
    var record = DeviceRecord(address: BridgeUnderTest.address)
    (record.id, record.offered) = (try DeviceID("pulse"), ["heart_rate", "+", "a/#", "a\0", ""])
    for name in ["+", "a/#", "a\0", ""] {
      record.waiting[name] = DeviceRecord.Desired(value: .integer(1), sender: ["transaction": "t"])
    }
    let tested = try await BridgeUnderTest(
      broker, state: await Self.state(in: folder, record), retained: [("pulse/info", Self.info("here"))])
    try await tested.message("pulse/heart_rate/image", "")
    #expect(await tested.record()?.waiting.isEmpty == true)
  }

  @Test func valuesOfOtherProfilesAreClearedWithTheOrphan() async throws {
    let folder = try TemporaryFolder()
    var record = DeviceRecord(address: BridgeUnderTest.address)
    (record.id, record.offered) = (try DeviceID("pulse"), ["heart_rate"])
    let tested = try await BridgeUnderTest(
      broker, state: await Self.state(in: folder, record),
      retained: [("pulse/info", Self.info("here")), ("pulse/heart_rate", "61")])
    try await tested.message("pulse/heart_rate/image", "")
    #expect(try await tested.payloads("pulse/heart_rate") == ["61", ""])
  }

  /// The gateway is stopped before the outage of the broker ends.
  @Test func valuesOfARemovedDeviceAreClearedByTheNextRun() async throws {
    let folder = try TemporaryFolder()
    var record = DeviceRecord(address: BridgeUnderTest.address)
    (record.id, record.offered) = (try DeviceID("kitchen"), ["heart_rate"])
    let path = await Self.state(in: folder, record)
    do {
      let tested = try await BridgeUnderTest(broker, state: path)
      try await broker.stop()
      try await tested.admitted(false)
      try await tested.remove(DeviceID("kitchen"))
      await tested.end()
    }
    try await broker.start()
    let tested = try await BridgeUnderTest(
      broker, "{}", state: path,
      retained: [("kitchen/info", Self.info("here")), ("kitchen/heart_rate", "61")])
    try await tested.message("kitchen/info", "", from: 3)
    #expect(try await tested.payloads("kitchen/heart_rate") == ["61", ""])
    try await tested.idIsCleared()
    let left = await tested.record()
    #expect(left?.isRemoved == true && left?.offered == nil)
  }

  /// A new micro:bit under the same id, while the gateway was stopped.
  @Test func topicsOfAReplacedDeviceAreCleared() async throws {
    let folder = try TemporaryFolder()
    let address = BluetoothAddress(truncating: 0xC5A1_B2C3_D4E6)
    var record = DeviceRecord(address: address)
    (record.id, record.offered) = (try DeviceID("kitchen"), ["temperature", "heart_rate"])
    let tested = try await BridgeUnderTest(
      broker, state: await Self.state(in: folder, record),
      retained: [
        ("kitchen/info", Self.info("here").replacing("D4:E5", with: "D4:E6")), ("kitchen/heart_rate", "61"),
      ])
    try await tested.message("kitchen/info", #""properties""#)
    #expect(try await tested.payloads("kitchen/heart_rate") == ["61", ""])
    try await tested.idIsCleared(of: address)
    #expect(await tested.record()?.id == record.id)
  }

  @Test(arguments: ["removed", "renamed", "replaced"], [false, true])
  func changeDuringAnOutageClearsTopicsUnlessTheDeviceMoved(change: String, isMoved: Bool)
    async throws
  {
    let folder = try TemporaryFolder()
    var record = DeviceRecord(address: BridgeUnderTest.address)
    (record.id, record.offered) = (try DeviceID("kitchen"), ["temperature", "period", "heart_rate"])
    let broker = try await BridgeUnderTest.persistentBroker()
    let tested = try await BridgeUnderTest(broker, state: await Self.state(in: folder, record))
    try await tested.publishReading()
    try await broker.stop()
    try await tested.admitted(false)
    switch change {
    case "removed": await tested.configure(Configuration())
    case "renamed": try await tested.configure(BridgeUnderTest.kitchen.replacing("kitchen", with: "hall"))
    default:
      try await tested.configure(BridgeUnderTest.kitchen.replacing(#""temperature","#, with: ""))
      try await tested.comeOnline()
    }
    if isMoved {
      let values = [("kitchen/temperature", "21"), ("kitchen/heart_rate", "61"), ("kitchen/period", "500")]
      let owner = [
        ("kitchen/info", Self.info("attic")), ("kitchen/availability", "online"),
        ("bridge/attic/state", "online"),
      ]
      try await BridgeUnderTest.replaceRetained(of: broker, with: values + owner)
    }
    try await broker.start()
    try await tested.admitted(true)
    _ = try await tested.payloads("kitchen/info")
    let retained = try await BridgeUnderTest.retained(by: broker)
    let kept = retained.filter { $0.hasPrefix("microbit/kitchen/") }.sorted()
    if isMoved {
      let all = ["availability", "heart_rate", "info", "period", "temperature"]
      #expect(kept == all.map { "microbit/kitchen/" + $0 })
    } else {
      #expect(
        kept == (change == "replaced" ? ["microbit/kitchen/availability", "microbit/kitchen/info"] : []))
      #expect(retained.contains("microbit/hall/info") == (change == "renamed"))
    }
  }

  /// That gateway has never found it, or has it.
  @Test(arguments: [false, true])
  func topicsOfADeviceThatIsPinnedElsewhereAndThenRemovedAreCleared(isMoved: Bool) async throws {
    let broker = try await MosquittoBroker()
    let tested = try await BridgeUnderTest(broker)
    try await tested.publishReading()
    let start = tested.messages.count
    try await tested.configure(
      BridgeUnderTest.kitchen.replacing(#""id":"#, with: #""gateway":"attic","id":"#))
    try await tested.message("kitchen/availability", "offline", from: start)
    if isMoved { try await tested.publish("kitchen/info", Self.info("attic"), retain: true) }
    try await tested.configure(#"{"devices":[]}"#)
    try await tested.idIsCleared()
    let kept = try await BridgeUnderTest.retained(by: broker).filter { $0.hasPrefix("microbit/kitchen/") }
    let all = ["availability", "info", "temperature"].map { "microbit/kitchen/" + $0 }
    #expect(kept.sorted() == (isMoved ? all : []))
  }

  @Test func devicesThatSwapIDsInAnOutageShareNoValues() async throws {
    let folder = try TemporaryFolder()
    var record = DeviceRecord(address: BridgeUnderTest.address)
    (record.id, record.offered) = (try DeviceID("kitchen"), ["temperature", "period", "accelerometer"])
    func configuration(_ first: String, _ second: String) -> String {
      #"{"devices":[{"match":{"identifier":"C5:A1:B2:C3:D4:E5"},"id":"\#(first)","#
        + #""properties":["temperature","accelerometer"]},"#
        + #"{"match":{"identifier":"C5:A1:B2:C3:D4:E6"},"id":"\#(second)","properties":["temperature"]}]}"#
    }
    let broker = try await BridgeUnderTest.persistentBroker()
    let tested = try await BridgeUnderTest(
      broker, configuration("kitchen", "hall"), state: await Self.state(in: folder, record))
    try await tested.comeOnline()
    try await tested.receive(1, .record([0, 0, 0]))
    try await tested.message("kitchen/accelerometer", "")
    try await tested.message("hall/availability", "offline")
    try await broker.stop()
    try await tested.admitted(false)
    try await tested.configure(configuration("hall", "kitchen"))
    try await broker.start()
    try await tested.admitted(true)
    _ = try await tested.payloads("kitchen/info")
    let retained = try await BridgeUnderTest.retained(by: broker)
    #expect(!retained.contains("microbit/kitchen/accelerometer"))
    #expect(retained.contains("microbit/hall/accelerometer"))
    #expect(retained.contains("microbit/kitchen/info") && retained.contains("microbit/hall/info"))
  }

  @Test func ownerClearsValuesOfUnusedProperties() async throws {
    for owner in ["here", "attic"] {
      let folder = try TemporaryFolder()
      var record = DeviceRecord(address: BridgeUnderTest.address)
      (record.id, record.offered) = (try DeviceID("kitchen"), ["temperature", "led"])
      let broker = try await MosquittoBroker()
      let tested = try await BridgeUnderTest(
        broker, state: await Self.state(in: folder, record),
        retained: [
          ("kitchen/info", Self.info(owner)), ("kitchen/temperature", "21"), ("kitchen/led/image", "<svg/>"),
        ])
      let isCleared = owner == "here"
      if isCleared { try await tested.message("kitchen/info", #""properties""#) }
      #expect(try await tested.payloads("kitchen/led/image") == (isCleared ? ["<svg/>", ""] : ["<svg/>"]))
      #expect(try await tested.payloads("kitchen/temperature") == ["21"])
    }
  }

  /// Of this run, and of the gateway that had the device before, with another program.
  @Test func valuesOfAnEarlierProgramAreCleared() async throws {
    let broker = try await MosquittoBroker()
    let info = #"{"owner":"attic","identifier":"C5:A1:B2:C3:D4:E5","properties":["bearing","temperature"]}"#
    let tested = try await BridgeUnderTest(
      broker, #"{"devices":[{"match":{"identifier":"C5:A1:B2:C3:D4:E5"},"id":"kitchen"}]}"#,
      retained: [("kitchen/info", info), ("kitchen/bearing", "90"), ("kitchen/temperature", "20")])
    try await tested.offer(["temperature", "period", "accelerometer"])
    try await tested.receive("accelerometer", .record([1, 2, 3]))
    // Waits for the end of the interval.
    try await tested.receive("accelerometer", .record([100, 200, 300]))
    try await tested.receive("temperature", 21)
    try await tested.message("kitchen/bearing", "")
    try await tested.offer(["temperature"])
    try await tested.message("kitchen/info", #""properties":["temperature"]"#)
    #expect(try await tested.payloads("kitchen/accelerometer").last == "")
    #expect(try await tested.payloads("kitchen/bearing") == ["90", ""])
    let retained = try await BridgeUnderTest.retained(by: broker).filter { $0.hasPrefix("microbit/kitchen") }
    #expect(retained.sorted() == ["availability", "info", "temperature"].map { "microbit/kitchen/\($0)" })
  }

  @Test func valuesOfTheProgramHaveTopicsAndAreCleared() async throws {
    let broker = try await MosquittoBroker()
    let tested = try await BridgeUnderTest(
      broker, #"{"devices":[{"match":{"identifier":"C5:A1:B2:C3:D4:E5"},"id":"kitchen"}]}"#)
    try await tested.offer(["uart_rx", "uart_tx"])
    func describe(_ names: [String]) async throws {
      let keys = try names.map { try #require(ValueKey($0)) }
      try await tested.device { publisher in
        var description = publisher.device
        description.values = zip(names, keys).map { name, key in
          let entry = ValueTable.Entry(written: name, isNumber: true, isConfirmed: true, lastSeen: 1)
          return NamedValue(key, entry, nil, of: .microbitUARTReceived)
        }
        publisher.changed(.description, description)
      }
    }
    func receive(_ key: String, _ value: Value, _ sequence: UInt64) async throws {
      let key = try #require(ValueKey(key))
      try await tested.device {
        $0.reported(Reading(property: 0, key: key, value: value, time: .now, sequence: sequence))
      }
    }
    try await describe(["a", "b"])
    try await receive("a", 1, 1)
    try await receive("b", .number(.nan), 2)
    try await receive("b", .text("x\n\"y"), 3)
    try await receive("unknown", 1, 4)
    // Within a second.
    try await receive("a", 2, 5)
    try await tested.message("kitchen/info", #""properties":["uart_rx","uart_tx","values/a","values/b"]"#)
    try await tested.message("kitchen/info", #""values":{"a":{"name":"a","type":"number"}"#)
    try await tested.message("kitchen/readings", #"{"property":"values/a","value":2,"#)
    try await tested.message("kitchen/readings", #"{"property":"values/b","value":null,"#)
    #expect(try await tested.payloads("kitchen/values/a").first == "1")
    #expect(try await tested.payloads("kitchen/values/b") == ["x\n\"y"])
    try await describe(["b"])
    #expect(try await tested.payloads("kitchen/values/a").last == "")
    // The gateway would carry it out, but has no link.
    try await tested.publish("kitchen/values/servo/set", "90", retain: false)
    try await tested.message("kitchen/values/servo/result", #"{"status":"failed","requested":90"#)
    try await tested.publish("kitchen/values/servo/set", "90", retain: true)
    try await tested.message("kitchen/values/servo/result", #""rejected","reason":"a retained command"#)
    let retained = try await BridgeUnderTest.retained(by: broker)
    #expect(
      retained.filter { $0.contains("/values/") }.sorted()
        == ["microbit/kitchen/values/b", "microbit/kitchen/values/servo/set"])
  }

  @Test func topicsOfANeverConnectedDeviceAreClearedToo() async throws {
    let folder = try TemporaryFolder()
    let path = await Self.state(in: folder, DeviceRecord(address: BridgeUnderTest.address))
    let broker = try await MosquittoBroker()
    do {
      let tested = try await BridgeUnderTest(broker, state: path)
      try await tested.message("kitchen/availability", "offline")
      await tested.end()
    }
    let tested = try await BridgeUnderTest(broker, "{}", state: path)
    try await tested.message("kitchen/info", "")
    #expect(try await BridgeUnderTest.retained(by: broker).contains("microbit/kitchen/availability") == false)
  }

  // MARK: DevicePublisher

  @Test func aDeviceIsPublishedWhileThisGatewayOwnsIt() async throws {
    let tested = try await BridgeUnderTest(broker)
    try await tested.comeOnline()
    try await tested.message("kitchen/availability", "online")
    let order = tested.messages.elements.map(\.topic.string)
    let info = try #require(order.firstIndex(of: "microbit/kitchen/info"))
    #expect(info < order.lastIndex(of: "microbit/kitchen/availability") ?? 0)
    // A late will of an earlier owner.
    var start = tested.messages.count
    try await tested.publish("kitchen/availability", "offline", retain: true)
    try await tested.message("kitchen/availability", "online", from: start)
    try await tested.receive(0, 21)
    try await tested.message("kitchen/temperature", "21")
    // Another gateway takes it over: values that still arrive here are not published.
    try await tested.publish("kitchen/info", Self.info("attic"), retain: true)
    _ = try await tested.payloads("kitchen/info")
    start = tested.messages.count
    try await tested.receive(0, 22)
    #expect(try await tested.payloads("kitchen/temperature", from: start) == [])
    #expect(try await tested.payloads("kitchen/readings").count == 1)
  }

  /// Both gateways have an entry with the id: they would correct each other without end.
  @Test func theAvailabilityOfAnotherDeviceOfTheSameIDIsLeftAsItIs() async throws {
    let tested = try await BridgeUnderTest(broker)
    try await tested.comeOnline()
    try await tested.message("kitchen/availability", "online")
    var start = tested.messages.count
    try await tested.device { publisher in
      var description = publisher.device
      (description.session, description.isOnline, description.offlineSince) = (.waiting, false, .now)
      publisher.changed(.availability, description)
    }
    try await tested.message("kitchen/availability", "offline", from: start)
    let other = Self.info("attic").replacing("C3:D4:E5", with: "C3:D4:E6")
    try await tested.publish("kitchen/info", other, retain: true)
    start = tested.messages.count
    try await tested.publish("kitchen/availability", "online", retain: true)
    let availability = try await tested.payloads("kitchen/availability", from: start)
    #expect(availability == ["online"])
    // It is another device, which may have another name.
    try await tested.device { #expect($0.owner == .this && $0.disagreement == nil) }
  }

  /// What is read on the new link before the device is online here is not lost.
  @Test func firstReadingsAfterATakeoverFollowTheInfo() async throws {
    let tested = try await BridgeUnderTest(broker, retained: [("kitchen/info", Self.info("attic"))])
    // A link that ends before the device is online: what it read is not published later.
    for (value, next) in [(20, SessionState.waiting), (21, .live)] {
      try await tested.session(.subscribing)
      try await tested.receive(0, .integer(value))
      try await tested.receive(1, 500, isReading: false)
      #expect(try await tested.payloads("kitchen/temperature") == [])
      if next == .live { try await tested.comeOnline() } else { try await tested.session(next) }
    }
    try await tested.message("kitchen/readings", #""value":21"#)
    #expect(try await tested.payloads("kitchen/readings").count == 1)
    #expect(try await tested.payloads("kitchen/temperature") == ["21"])
    #expect(try await tested.payloads("kitchen/period") == ["500"])
    let topics = tested.messages.elements.map(\.topic.string)
    let online = try #require(topics.firstIndex(of: "microbit/kitchen/availability"))
    let value = try #require(topics.firstIndex(of: "microbit/kitchen/temperature"))
    #expect(online < value)
  }

  @Test func topicsAreClearedWhenADeviceIsRemovedAndKeptWhenItMoves() async throws {
    for reason in [DetachReason.removed, .pinnedElsewhere] {
      let broker = try await MosquittoBroker()
      let tested = try await BridgeUnderTest(broker)
      try await tested.publishReading()
      let start = tested.messages.count
      try await tested.device { $0.detach(reason) }
      #expect(
        try await tested.payloads("kitchen/temperature", from: start) == (reason == .removed ? [""] : []))
      #expect(try await tested.payloads("kitchen/info", from: start) == (reason == .removed ? [""] : []))
    }
  }

  // MARK: PropertyPublisher

  @Test func aStateIsRetainedAndAnEventIsNot() async throws {
    let tested = try await BridgeUnderTest(broker)
    try await tested.comeOnline()
    try await tested.receive(0, 21)
    try await tested.receive(2, .text("press_start"))
    // Read by the engine itself: not a reading.
    try await tested.receive(1, 500, isReading: false)
    let event = try await tested.message("kitchen/button_a", #"{"event_type":"press_start","time":""#)
    #expect(String(decoding: event.payload, as: UTF8.self).contains(#""sequence":2,"#))
    try await tested.message("kitchen/period", "500")
    let readings = try await tested.payloads("kitchen/readings")
    #expect(readings.count == 2)
    #expect(readings.first?.hasPrefix(#"{"property":"temperature","value":21,"unit":"°C""#) == true)
    let retained = try await BridgeUnderTest.retained(by: broker)
    #expect(retained.contains("microbit/kitchen/temperature") && retained.contains("microbit/kitchen/period"))
    #expect(
      !retained.contains("microbit/kitchen/button_a") && !retained.contains("microbit/kitchen/readings"))
  }

  /// The accelerometer is published at most every 200 ms, and only after a change of at least 20 mg.
  @Test func reportLimitsTheRetainedValueButNotTheReadings() async throws {
    let tested = try await BridgeUnderTest(broker)
    try await tested.comeOnline()
    // Within the interval, however busy the machine is.
    try await tested.device { publisher in
      for x in [0, 100, 105, 300] {
        let value = Value.record([.integer(x), 0, 0])
        publisher.reported(Reading(property: 3, value: value, time: .now, sequence: 1))
      }
    }
    try await tested.message("kitchen/accelerometer", #"{"x":300,"#)
    let values = try await tested.payloads("kitchen/accelerometer")
    #expect(values == [#"{"x":0,"y":0,"z":0}"#, #"{"x":300,"y":0,"z":0}"#])
    #expect(try await tested.payloads("kitchen/readings").count == 4)
  }

  @Test func delayedValueIsNotPublishedAfterAHandover() async throws {
    let tested = try await BridgeUnderTest(broker)
    let still = Value.record([0, 0, 0])
    try await tested.comeOnline()
    let bridge = tested.bridge
    try await tested.device { publisher in
      let hall = DeviceDescription(DeviceID(Self.hall), Self.hall, publisher.device.profile)
      for observer in [publisher, bridge.attach(hall)].compactMap({ $0 }) {
        for value in [still, .record([100, 0, 0])] {
          observer.reported(Reading(property: 3, value: value, time: .now, sequence: 1))
        }
      }
      bridge.ownership.received(
        info: Array(Self.info("attic").utf8), of: publisher.device.id, isRetained: true)
    }
    // The interval of the other device's value began later.
    try await tested.message("\(DeviceID(Self.hall))/accelerometer", #"{"x":100,"#)
    #expect(try await !tested.payloads("kitchen/accelerometer").contains { $0.contains("100") })
    // The device is here again: the retained value is unknown, so the same value is published.
    let start = tested.messages.count
    try await tested.comeOnline()
    try await tested.receive(3, still)
    try await tested.message("kitchen/accelerometer", #"{"x":0,"#, from: start)
  }
}
