import Configuration
import GATT
import JSON
import TestSupport
import Testing

@testable import Bridge
@testable import Devices

/// Topics that are cleared, of devices and properties that are gone.
extension BridgeAtBrokerTests {
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

  /// An outage comes before the broker has acknowledged a deletion, and another gateway takes the device meanwhile.
  @Test func whatTheNextOwnerPublishesIsNotDeleted() async throws {
    let broker = try await BridgeUnderTest.persistentBroker()
    let tested = try await BridgeUnderTest(broker)
    try await broker.stop()
    try await tested.admitted(false)
    let topic = "kitchen/values/soil"
    try await tested.device { $0.context.mqtt.clearState(topicName("microbit/" + topic)) }
    try await BridgeUnderTest.replaceRetained(
      of: broker,
      with: [("bridge/attic/state", "online"), ("kitchen/info", Self.info("attic")), (topic, "42")])
    try await broker.start()
    try await tested.admitted(true)
    _ = try await tested.payloads(topic)
    #expect(try await BridgeUnderTest.retained(by: broker).contains("microbit/" + topic))
  }

  @Test func namesInADamagedRecordAreNoTopics() async throws {
    let folder = try TemporaryFolder()
    var record = DeviceRecord(address: BridgeUnderTest.address)
    (record.id, record.offered) = (try DeviceID("pulse"), ["heart_rate", "+", "a/#", "a\0", ""])
    for name in ["+", "a/#", "a\0", ""] {
      record.requested.waiting[name] = DeviceRecord.Desired(value: .integer(1), sender: ["transaction": "t"])
    }
    let tested = try await BridgeUnderTest(
      broker, state: await Self.state(in: folder, record), retained: [("pulse/info", Self.info("here"))])
    try await tested.message("pulse/heart_rate/image", "")
    #expect(await tested.record()?.requested.waiting.isEmpty == true)
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
    #expect(left?.requested.isRemoved == true && left?.offered == nil)
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
        description.namedValues = zip(names, keys).map { name, key in
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
}
