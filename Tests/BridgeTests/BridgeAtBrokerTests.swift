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
  static let hall = BluetoothAddress(truncating: 2)
  let broker: MosquittoBroker

  init() async throws { broker = try await MosquittoBroker() }

  static func info(_ gateway: String, since: String = "2999-01-01T00:00:00.000Z") -> String {
    #"{"owner":"\#(gateway)","identifier":"C5:A1:B2:C3:D4:E5","last_connected":"\#(since)","connected_since":"\#(since)"}"#
  }

  /// A state database in `folder` with one record.
  @LoopActor static func state(in folder: TemporaryFolder, _ record: DeviceRecord) async -> String {
    let path = folder.path + "/state.db"
    let state = StateDatabase(path: path)
    state.section("devices").put(record.address.description, record.bytes)
    await state.close(within: patience)
    return path
  }

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
    (
      "kitchen/period/get", #"{"transaction":[5]}"#,
      #""reason":"the transaction is not a text, a number or a boolean""#
    ),
    ("kitchen/button_a/get", #"{"transaction":5}"#, #"when it happens","transaction":5,"#),
    ("kitchen/period/set", #"{"value":10,"transaction":23}"#, #"period, 20 ms","transaction":23,"#),
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
    ("device/rename", #"{"id":"kitchn","to":"kitchn"}"#, "no device is called kitchn: did you mean kitchen?"),
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
      let requested = record?.requested
      #expect(requested?.changes.id == nil && requested?.changes.name == nil, "\(String(describing: record))")
      #expect(requested?.isAdded != true && requested?.isRemoved != true, "\(String(describing: record))")
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
}
