import Configuration
import Devices
import EventLoop
import Findings
import MQTT
import Store
import TestSupport
import Testing

@testable import Bridge
@testable import HomeAssistant

@Suite struct RefusalsTests {
  private static let topic = topicName("microbit/kitchen/temperature")

  private static func codes(_ refusals: Refusals, isDeaf: Bool = false, at now: Moment) -> [String?] {
    refusals.findings(isDeaf: isDeaf, remedy: "allow it", at: now).map(\.code)
  }

  @Test func rejectedMessageIsAFaultForFiveMinutesOrUntilTheNextConnection() {
    let start = Moment.now
    var refusals = Refusals()
    func refuse(_ reason: MQTTRefusal, after seconds: Int) -> Bool {
      refusals.publicationRefused(Self.topic, reason, at: start + .seconds(seconds))
    }
    #expect(refuse(.notAuthorized, after: 0) && !refuse(.notAuthorized, after: 100))
    let finding = refusals.findings(isDeaf: false, remedy: "allow it", at: start).first
    #expect(finding?.level == .fault)
    #expect(finding?.text.hasSuffix("such as microbit/kitchen/temperature: Not authorized") == true)
    #expect(finding?.remedy == "allow it; what else is refused: sudo microbit-gateway doctor")
    #expect(Self.codes(refusals, at: start + .seconds(399)) == ["messages_rejected"])
    #expect(Self.codes(refusals, at: start + .seconds(400)) == [])
    #expect(refuse(.other("Quota exceeded"), after: 400))
    refusals.connected()
    #expect(Self.codes(refusals, at: start + .seconds(400)) == [])
  }

  @Test func theDelaysBeginAnewWhenNothingWasRefusedForFiveMinutes() {
    let start = Moment.now
    var refusals = Refusals()
    let delays = [0, 40, 400, 710, 1251, 1300].map { refusals.delay(at: start + .seconds($0)) }
    // The third one ends at 520, the fourth at 950.
    let expected: [Duration] = [
      .seconds(30), .seconds(60), .seconds(120), .seconds(240), .seconds(30), .seconds(60),
    ]
    #expect(delays == expected)
    refusals.connected()
    let next = refusals.delay(at: start + .seconds(1301))
    #expect(next == .seconds(30))
  }

  @Test(
    arguments: [
      (.notAuthorized, true, "allow it;"), (.quotaExceeded, true, "see the broker's log;"),
      (.other("Unspecified error"), false, "allow it;"),
    ] as [(MQTTRefusal, Bool, String)])
  func theReasonOfARefusedSubscriptionTellsTheRemedy(
    _ reason: MQTTRefusal, _ isMQTT5: Bool, _ remedy: String
  ) {
    let found = Refusals().findings(
      isDeaf: false, subscription: (TopicFilter(Self.topic), reason), isMQTT5: isMQTT5, remedy: "allow it",
      at: .now)
    #expect(found.count == 1 && found[0].remedy?.hasPrefix(remedy) == true)
    #expect(found.first?.text.hasSuffix("microbit/kitchen/temperature: \(reason)") == true)
  }

  /// A restart would not help.
  @Test func aBrokerThatEndsTheConnectionIsAMatterOfItsLog() async throws {
    let broker = try await MosquittoBroker()
    let tested = try await BridgeUnderTest(broker)
    await tested.bridge.report.disconnected(.closedByBroker(reasonCode: 0x97, reason: "Quota exceeded"))
    let remedy = await tested.bridge.health.findings.first { $0.check == .broker }?.remedy
    #expect(remedy == "see the broker's log")
    await tested.bridge.report.failed(.lookUpFailed(host: "nowhere", reason: "not known"))
    let hint = await tested.bridge.health.findings.first { $0.check == .broker }?.remedy
    #expect(
      hint?.hasSuffix("if mqtt in config.json was changed: sudo systemctl restart microbit-gateway") == true)
  }

  @Test func aSizeIsAnotherFault() {
    let now = Moment.now
    var refusals = Refusals()
    for reason in [MQTTRefusal.notAuthorized, .endsConnection(bytes: 400)] {
      _ = refusals.publicationRefused(Self.topic, reason, at: now)
    }
    let findings = refusals.findings(isDeaf: true, remedy: "", at: now)
    #expect(findings.map(\.code) == ["messages_rejected", "messages_too_large", "nothing_received"])
    #expect(findings[1].text.contains("(400 bytes)"))
  }

  @Test func lateBarrierIsRepeatedUntilOneArrives() {
    var barriers = Barriers()
    func send() -> UInt64 {
      defer { barriers.sent() }
      return barriers.await()
    }
    func isLate(_ number: UInt64) -> Bool { barriers.late(number) }
    barriers.connected()
    let first = send()
    #expect(isLate(first))
    #expect(!barriers.isLate)
    let second = send()
    #expect(!isLate(first), "a later one is on its way")
    #expect(isLate(second))
    #expect(barriers.isLate)
    barriers.arrived(send())
    #expect(!isLate(second))
    #expect(!barriers.isLate)
    let third = send()
    barriers.disconnected()
    #expect(!isLate(third))
    barriers.connected()
    #expect(!isLate(third), "it was sent on another connection")
    #expect(!barriers.isLate)
    barriers.arrived(.max)
    let next = send()
    #expect(!barriers.hasArrived(next), "others can send any number")
  }

  /// What a bridge says of its broker.
  private static func found(_ tested: BridgeUnderTest) async -> [Finding] {
    await tested.bridge.health.findings.filter { $0.check == .topics }
  }

  /// The gateway's own messages do not come back, and nobody may set anything.
  @Test func brokerThatRefusesToWriteOrToReadIsAFaultUntilItAllowsThat() async throws {
    let folder = try TemporaryFolder()
    let requests = "topic deny microbit/bridge/here/request/#\n"
    try folder.write("topic readwrite #\n\(requests)topic deny microbit/kitchen/availability\n", to: "acl")
    let broker = try await MosquittoBroker(folder: folder) { "allow_anonymous true\nacl_file \($0)/acl" }
    let tested = try await BridgeUnderTest(broker)
    try await tested.comeOnline()
    func codes(_ codes: [String]) async throws {
      try await eventually("\(codes)") { await Self.found(tested).map(\.code) == codes }
    }
    try await codes(["messages_rejected", "nothing_received"])
    try folder.write("topic readwrite #\n", to: "acl")
    broker.reload()
    try await codes(["messages_rejected"])
    await tested.bridge.context.mqtt.reconnect(after: .zero)
    try await codes([])
  }

  private static let shortDelays = BackOff(first: .milliseconds(50), longest: .milliseconds(50))

  /// Its topic is of an earlier `home_assistant.prefix`.
  @LoopActor @Test func aRefusedDeletionOnATopicThatIsNotUsedAnyMoreIsSentAgain() async throws {
    let folder = try TemporaryFolder()
    try folder.write("topic readwrite #\ntopic deny earlier/#\n", to: "acl")
    let broker = try await MosquittoBroker(folder: folder) { "allow_anonymous true\nacl_file \($0)/acl" }
    let tested = try await BridgeUnderTest(broker)
    let mqtt = tested.bridge.context.mqtt
    tested.bridge.refusals.delays = Self.shortDelays
    mqtt.clearState(topicName("earlier/device/x/config"))
    try await eventually("a refusal") { await mqtt.statistics.rejected >= 1 }
    try folder.write("topic readwrite #\n", to: "acl")
    broker.reload()
    _ = try await tested.messages.first(within: patience, "the deletion") {
      $0.topic.string == "earlier/device/x/config"
    }
  }

  @LoopActor @Test func whatAnotherGatewayPublishesByNowIsNotDeleted() async throws {
    let folder = try TemporaryFolder()
    let denied = ["microbit/old/temperature", "microbit/other/temperature"]
    try folder.write("topic readwrite #\n\(denied.map { "topic deny \($0)\n" }.joined())", to: "acl")
    let broker = try await MosquittoBroker(folder: folder) { "allow_anonymous true\nacl_file \($0)/acl" }
    let tested = try await BridgeUnderTest(broker)
    let mqtt = tested.bridge.context.mqtt
    for topic in denied { mqtt.clearState(topicName(topic)) }
    try await eventually("two refusals") { await mqtt.statistics.rejected >= 2 }
    try await tested.publish("old/info", #"{"owner":"attic"}"#, retain: true)
    // The gateway has received it.
    _ = try await tested.payloads("old/info")
    try folder.write("topic readwrite #\n", to: "acl")
    broker.reload()
    try await eventually("the deletion under the other id") {
      await mqtt.publishRefusedStateAgain()
      return tested.messages.elements.contains { $0.topic.string == denied[1] }
    }
    #expect(!tested.messages.elements.contains { $0.topic.string == denied[0] })
  }

  /// Home Assistant has the entity until the broker takes the document that removes it.
  @LoopActor @Test func aRefusedDocumentIsRepeatedWithWhatItRemoves() async throws {
    let broker = try await MosquittoBroker()
    let tested = try await BridgeUnderTest(broker)
    let discovery = HomeAssistantDiscovery(
      Configuration(), tested.bridge, StateDatabase(path: nil).section("home_assistant"))
    let gone = Announced.Component(key: "gone", platform: .sensor)
    discovery.store[.gateway] = Announced(prefix: "homeassistant", components: [gone])
    tested.bridge.add(discovery)
    discovery.admitted()
    let topic = topicName("homeassistant/device/ble_gateway_here/config")
    func document(from start: Int) async throws {
      _ = try await tested.messages.first(from: start, within: patience, "a document that removes it") {
        $0.topic == topic && String(decoding: $0.payload, as: UTF8.self).contains(#""gone":{"p":"sensor"}"#)
      }
    }
    try await document(from: 0)
    discovery.schedule.append(.document(.gateway, .remove))
    try await eventually("its removal is recorded") {
      await discovery.store[.gateway]?.components.contains(gone) == false
    }
    let start = tested.messages.count
    let isRepeated = discovery.refused(topic, .quotaExceeded)
    let recorded = discovery.store[.gateway]
    #expect(isRepeated && recorded?.components.contains(gone) == true)
    discovery.publishRefusedAgain()
    try await document(from: start)
  }

  /// The broker refuses the first filter.
  @LoopActor @Test func aRefusedSubscriptionIsAFaultAndSentAgain() async throws {
    let server = try StubServer(sending: [0x20, 3, 0, 0, 0, 0x90, 4, 0, 1, 0, 0x87])
    var configuration = Configuration()
    (configuration.mqtt.host, configuration.mqtt.port) = ("127.0.0.1", Int(server.port))
    let (gateway, state) = (GatewayID(hostName: "here"), StateDatabase(path: nil))
    let engine = DeviceManager(configuration, gateway: gateway, state: state.section("devices"))
    let bridge = Bridge(configuration, gateway: gateway, engine: engine, state: state, spool: nil)
    bridge.refusals.delays = Self.shortDelays
    bridge.start()
    let running = Task { await bridge.run() }
    defer { running.cancel() }
    let filter = bridge.context.topics.gateways[0].string
    try await eventually("a fault") {
      await bridge.health.findings.contains { $0.text.contains("it refuses the subscription to \(filter): ") }
    }
    try await eventually("a second SUBSCRIBE") {
      let bytes = String(decoding: server.received.elements.joined(), as: UTF8.self)
      return bytes.ranges(of: filter).count > 1
    }
  }

  /// A device of an earlier run, which this one does not know.
  @LoopActor @Test func aLostDeviceIsOfflineOnceTheBrokerTakesIt() async throws {
    let folder = try TemporaryFolder()
    try folder.write("topic readwrite #\ntopic deny microbit/old/availability\n", to: "acl")
    let broker = try await MosquittoBroker(folder: folder) { "allow_anonymous true\nacl_file \($0)/acl" }
    let tested = try await BridgeUnderTest(broker, retained: [("old/info", #"{"owner":"here"}"#)])
    let mqtt = tested.bridge.context.mqtt
    try await eventually("a refusal") { await mqtt.statistics.rejected >= 1 }
    try folder.write("topic readwrite #\n", to: "acl")
    broker.reload()
    try await eventually("offline") {
      await mqtt.publishRefusedStateAgain()
      return tested.messages.elements.contains {
        $0.topic.string == "microbit/old/availability"
          && String(decoding: $0.payload, as: UTF8.self) == "offline"
      }
    }
  }

  /// A state, a deletion and a document that were refused.
  @LoopActor @Test func whatTheBrokerHasRefusedIsPublishedAgainOnTheSameConnection() async throws {
    let folder = try TemporaryFolder()
    let denied = ["microbit/kitchen/availability", "microbit/old", "homeassistant/#"]
    try folder.write("topic readwrite #\n\(denied.map { "topic deny \($0)\n" }.joined())", to: "acl")
    let broker = try await MosquittoBroker(folder: folder) { "allow_anonymous true\nacl_file \($0)/acl" }
    let tested = try await BridgeUnderTest(broker)
    let (bridge, mqtt) = (tested.bridge, tested.bridge.context.mqtt)
    bridge.refusals.delays = Self.shortDelays
    let discovery = HomeAssistantDiscovery(
      Configuration(), bridge, StateDatabase(path: nil).section("home_assistant"))
    bridge.add(discovery)
    discovery.admitted()
    try await tested.comeOnline()
    mqtt.clearState(topicName("microbit/old"))
    try await eventually("three refusals") { await mqtt.statistics.rejected >= 3 }
    try folder.write("topic readwrite #\n", to: "acl")
    broker.reload()
    try await tested.message("kitchen/availability", "online")
    try await tested.message("old", "")
    _ = try await tested.messages.first(within: patience, "a document") {
      $0.topic.string == "homeassistant/device/ble_gateway_here/config" && !$0.payload.isEmpty
    }
  }

  /// The broker answers pings, and delivers messages.
  @Test func brokerThatDoesNotAcknowledgeIsAFault() async throws {
    let broker = try await MosquittoBroker()
    let proxy = try BrokerProxy(to: broker.port, dropsAcknowledgements: true)
    let tested = try await BridgeUnderTest(broker, through: proxy.port)
    try await eventually("a fault") {
      let found = await tested.bridge.health.findings.filter { $0.check == .broker }
      return found.first?.text.hasPrefix("the broker has not acknowledged messages, such as one to microbit/")
        == true
    }
  }

  @Test(arguments: ["max_packet_size 400", "message_size_limit 300"])
  func brokerThatTakesNoLargeMessageIsAFault(limit: String) async throws {
    let broker = try await MosquittoBroker { _ in "allow_anonymous true\n\(limit)" }
    let tested = try await BridgeUnderTest(broker)
    try await eventually("a finding") { await !Self.found(tested).isEmpty }
    let finding = try #require(await Self.found(tested).first)
    if limit.hasPrefix("max") {
      #expect(finding.code == "messages_too_large" && finding.text.hasSuffix("(400 bytes)"))
    } else {
      #expect(finding.code?.hasPrefix("messages_") == true)
    }
  }
}
