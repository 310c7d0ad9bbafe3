import Configuration
import EventLoop
import Findings
import GATT
import TestSupport
import Testing

@testable import Bridge

/// What other gateways have in another way is said as long as it is so.
@Suite struct OtherGatewaysTests {
  private let broker: MosquittoBroker

  init() async throws { broker = try await MosquittoBroker() }

  private static let state = "bridge/attic/state"

  private static func info(_ more: String, of identifier: String = "C5:A1:B2:C3:D4:E5") -> String {
    #"{"owner":"attic","identifier":"\#(identifier)","properties":["temperature"],\#(more)}"#
  }

  /// The findings, once the gateway has received everything that was published.
  private func findings(_ tested: BridgeUnderTest) async throws -> [String] {
    _ = try await tested.payloads("x")
    return await tested.bridge.health.findings.filter { $0.check == .device }.map(\.text)
  }

  /// A message for all gateways is applied by one after the other.
  @Test func aDisagreementIsNotSaidAtOnce() async throws {
    let tested = try await BridgeUnderTest(broker)
    await tested.sayNoDisagreements()
    try await tested.publish("kitchen/info", Self.info(#""name":"Other","profile":"microbit""#))
    try await tested.publish(Self.state, "online")
    #expect(try await findings(tested) == [])
  }

  /// What ends the disagreement: messages one after the other.
  @Test(
    arguments: [
      [(Self.state, "offline")], [(Self.state, "")], [("kitchen/info", "")],
      [("kitchen/info", Self.info(#""profile":"microbit""#))],
      // It is back with another configuration.
      [(Self.state, "offline"), (Self.state, "online")],
    ] as [[(topic: String, payload: String)]])
  func anotherNameIsAFindingWhileItIsSo(ends: [(topic: String, payload: String)]) async throws {
    let tested = try await BridgeUnderTest(broker)
    await tested.sayDisagreementsAtOnce()
    // The `info` comes first.
    try await tested.publish("kitchen/info", Self.info(#""name":"Other","profile":"microbit""#))
    #expect(try await findings(tested) == [])
    try await tested.publish(Self.state, "online")
    #expect(try await findings(tested) == ["kitchen: the gateway attic has another name for it"])
    for (topic, payload) in ends { try await tested.publish(topic, payload) }
    #expect(try await findings(tested) == [])
  }

  @Test func anotherNameIsNoFindingAtTheOwner() async throws {
    let tested = try await BridgeUnderTest(broker)
    await tested.sayDisagreementsAtOnce()
    try await tested.publish("kitchen/info", Self.info(#""name":"Other","profile":"microbit""#))
    try await tested.publish(Self.state, "online")
    #expect(try await findings(tested) != [])
    try await tested.comeOnline()
    #expect(try await findings(tested) == [])
  }

  @Test func anotherAnnouncerIsAFindingOnOneConnection() async throws {
    let tested = try await BridgeUnderTest(broker)
    await tested.sayDisagreementsAtOnce()
    try await tested.device { $0.announcedToo(by: GatewayID("attic")!) }
    #expect(try await findings(tested).first?.contains("attic announces it to Home Assistant too") == true)
    let start = tested.messages.count
    await tested.bridge.context.mqtt.reconnect(after: .zero)
    try await tested.message("bridge/here/info", #""connects":2"#, from: start)
    #expect(try await findings(tested) == [])
  }

  /// Otherwise nothing but `check` would tell of a gateway whose id is misspelt, or that is off.
  @Test func pinToAGatewayThatIsNotOnlineIsAFinding() async throws {
    let pinned = #""gateway":"attic"}"#
    let tested = try await BridgeUnderTest(
      broker,
      #"{"devices":[{"match":{"identifier":"C5:A1:B2:C3:D4:E5"},"id":"kitchen",\#(pinned),"#
        + #"{"match":{"identifier":"C5:A1:B2:C3:D4:E6"},"enabled":false,\#(pinned),"#
        + #"{"match":{"name_prefix":"a"},\#(pinned),{"match":{"name_prefix":"b"},"gateway":"here"}]}"#)
    func found() async throws -> [String] {
      _ = try await tested.payloads("x")
      return await tested.bridge.health.findings.filter { $0.check == .gateway }.map(\.text)
    }
    let text =
      "devices are pinned to the gateway attic, which is not online at this broker: devices[2], kitchen"
    #expect(try await found() == [text])
    try await tested.publish(Self.state, "online")
    #expect(try await found() == [])
    try await tested.publish(Self.state, "offline")
    #expect(try await found() == [text])
    await tested.bridge.context.mqtt.reconnect(after: .seconds(60))
    try await eventually("it is not connected") { await !tested.bridge.report.isConnected }
    #expect(await tested.bridge.health.findings.allSatisfy { $0.check != .gateway }, "it is not known")
  }

  /// Neither can be renamed: their availabilities would be corrected without end.
  @Test func availabilityIsCorrectedAgainWhenTheIDIsFree() async throws {
    let tested = try await BridgeUnderTest(broker)
    try await tested.publish(Self.state, "online")
    try await tested.comeOnline()
    try await tested.message("kitchen/availability", "online")
    let since = #""last_connected":"2020-01-01T00:00:00.000Z""#
    try await tested.publish("kitchen/info", Self.info(since, of: "C5:A1:B2:C3:D4:E6"))
    var start = tested.messages.count
    try await tested.publish("kitchen/availability", "offline")
    let kept = try await tested.payloads("kitchen/availability", from: start)
    #expect(kept == ["offline"])
    try await tested.publish(Self.state, "offline")
    start = tested.messages.count
    try await tested.publish("kitchen/availability", "offline")
    try await tested.message("kitchen/availability", "online", from: start)
  }
}
