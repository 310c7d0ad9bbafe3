import Configuration
import GATT
import TestSupport
import Testing

@testable import Bridge
@testable import Devices

extension BridgeAtBrokerTests {
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
