import Configuration
import EventLoop
import GATT
import Glibc
import Store
import TestSupport

@testable import Bridge
@testable import Devices
@testable import MQTT

/// The MQTT front end with a real broker, and an engine that has no Bluetooth: devices are those of the configuration,
/// and tests call their observers as the engine would.
final class BridgeUnderTest: Sendable {
  static let address = BluetoothAddress(truncating: 0xC5A1_B2C3_D4E5)

  let bridge: Bridge
  let messages = Record<MQTTReceived>()
  private let engine: DeviceManager
  private let observer: MQTTClient
  private let state: StateDatabase
  private let tasks: [Task<Void, any Error>]

  /// - Parameters:
  ///   - port: where the gateway reaches the broker; nil: directly.
  ///   - configuration: the text of config.json, without the broker's address.
  ///   - state: the path of the state database.
  ///   - retained: what the broker retains before the gateway connects.
  ///   - doubled: what the gateway gets twice: mosquitto sends a message once for each subscription that matches.
  init(
    _ broker: MosquittoBroker, through port: UInt16? = nil,
    _ configuration: String = BridgeUnderTest.kitchen, state path: String? = nil,
    retained: [(topic: String, payload: String)] = [], doubled: [String] = []
  ) async throws {
    var parsed = try Configuration.parse(Array(configuration.utf8)).get()
    (parsed.mqtt.host, parsed.mqtt.port) = ("127.0.0.1", Int(port ?? broker.port))
    observer = await MQTTClient(
      options: MQTTOptions([MQTTBroker(host: "127.0.0.1", port: broker.port)], clientID: "observer"),
      log: { _, _ in })
    await observer.setHandler { [messages] event in
      if case .message(let message) = event { messages.append(message) }
    }
    loop.onLoop { [observer] in observer.subscribe([topicFilter("#")]) }
    let gateway = GatewayID(hostName: "here")
    state = await StateDatabase(path: path)
    let engine = await DeviceManager(parsed, gateway: gateway, state: state.section("devices"))
    let bridge = await Bridge(
      parsed, gateway: gateway, engine: engine, state: state, spool: path.map { $0 + ".spool" })
    (self.engine, self.bridge) = (engine, bridge)
    let start = Waiter<Void>()
    tasks = [
      Task { [observer] in await observer.run() },
      Task { @LoopActor in
        try await start.value()
        engine.add(bridge)
        engine.start()
        bridge.start()
        bridge.context.mqtt.subscribe(doubled.map(topicFilter))
        await bridge.run()
      },
    ]
    for (topic, payload) in retained { try await publish(topic, payload, retain: true) }
    // The observer is subscribed before the gateway publishes.
    try await publish("observed", "")
    start.resume(.success(()))
    try await message("bridge/here/state", "online")
  }

  deinit {
    for task in tasks { task.cancel() }
  }

  /// Stops the gateway, and closes the state database when everything is stored.
  func end() async {
    await engine.endSessions()
    for task in tasks {
      task.cancel()
      _ = await task.result
    }
    await state.close(within: patience)
  }

  static let kitchen =
    #"{"devices":[{"match":{"identifier":"C5:A1:B2:C3:D4:E5"},"id":"kitchen","properties":["#
    + #""temperature","period","button_a","accelerometer"]}]}"#

  /// Publishes below the base topic, and waits until the observer has the message.
  func publish(
    _ topic: String, _ payload: String, retain: Bool = false, responseTopic: String? = nil
  ) async throws {
    let start = messages.count
    let message = MQTTMessage(
      topic: topicName("microbit/" + topic), payload: Array(payload.utf8), retain: retain,
      responseTopic: responseTopic.map(topicName))
    loop.onLoop { [observer] in observer.publish(message) }
    _ = try await messages.first(from: start, within: patience, topic) {
      $0.topic.string == "microbit/" + topic
    }
  }

  /// Waits for a message below the base topic.
  @discardableResult
  func message(_ topic: String, _ text: String, from start: Int = 0) async throws -> MQTTReceived {
    try await messages.first(from: start, within: patience, "\(topic) \(text)") {
      $0.topic.string == "microbit/" + topic && String(decoding: $0.payload, as: UTF8.self).contains(text)
    }
  }

  /// The payloads of a topic below the base topic since `start`, once the gateway has answered everything that it
  /// received so far.
  func payloads(_ topic: String, from start: Int = 0) async throws -> [String] {
    let transaction = "after \(messages.count)"
    try await publish("bridge/here/request/health", #"{"transaction":"\#(transaction)"}"#)
    try await message("bridge/here/response/health", transaction)
    return messages.elements.dropFirst(start).filter { $0.topic.string == "microbit/" + topic }
      .map { String(decoding: $0.payload, as: UTF8.self) }
  }

  /// The topics that the broker retains.
  static func retained(by broker: MosquittoBroker) async throws -> [String] {
    let late = await MQTTClient(
      options: MQTTOptions([MQTTBroker(host: "127.0.0.1", port: broker.port)], clientID: "late"),
      log: { _, _ in })
    let messages = Record<MQTTReceived>()
    await late.setHandler { if case .message(let message) = $0 { messages.append(message) } }
    let task = Task { await late.run() }
    defer { task.cancel() }
    loop.onLoop {
      late.subscribe([topicFilter("microbit/#"), topicFilter("end")])
      // Arrives after all retained messages.
      late.publish(MQTTMessage(topic: topicName("end"), payload: []))
    }
    _ = try await messages.first(within: patience, "end") { $0.topic.string == "end" }
    return messages.elements.filter(\.retain).map(\.topic.string)
  }

  /// A broker whose retained messages survive a restart.
  static func persistentBroker() async throws -> MosquittoBroker {
    try await MosquittoBroker {
      "allow_anonymous true\npersistence true\npersistence_location \($0)/"
    }
  }

  /// Replaces the retained messages of a stopped ``persistentBroker()``; the topics are below the base topic.
  static func replaceRetained(of broker: MosquittoBroker, with messages: [(topic: String, payload: String)])
    async throws
  {
    let other = try await persistentBroker()
    let client = await MQTTClient(
      options: MQTTOptions([MQTTBroker(host: "127.0.0.1", port: other.port)], clientID: "earlier"),
      log: { _, _ in })
    loop.onLoop {
      for (topic, payload) in messages {
        client.setState(topicName("microbit/" + topic), Array(payload.utf8))
      }
    }
    let connected = Record<Void>()
    await client.setHandler { if case .connected = $0 { connected.append(()) } }
    let task = Task { await client.run() }
    _ = try await connected.first(within: patience, "connected") { true }
    await client.stop(deadline: patience)
    await task.value
    try await other.stop()
    guard rename(other.folder.path + "/mosquitto.db", broker.folder.path + "/mosquitto.db") == 0 else {
      throw Failure("mosquitto.db: errno \(errno)")
    }
  }

  /// Calls a device's observer as the engine does.
  func device(_ body: @escaping @LoopActor (DevicePublisher) -> Void) async throws {
    let bridge = bridge
    try await engine.perform {
      guard let publisher = bridge.publishers[Self.address] else { throw Failure("no such device") }
      body(publisher)
    }
  }

  /// Waits until the session is admitted, or no longer admitted.
  func admitted(_ isAdmitted: Bool) async throws {
    let bridge = bridge
    try await eventually("isAdmitted to be \(isAdmitted)") {
      await self.engine.perform { bridge.ownership.isAdmitted } == isAdmitted
    }
  }

  /// Waits until the topics of the device's id are known to be cleared.
  func idIsCleared(of address: BluetoothAddress = BridgeUnderTest.address) async throws {
    try await eventually("a record without an id") { await self.record(of: address)?.id == nil }
  }

  @LoopActor func sayDisagreementsAtOnce() { bridge.context.patienceWithOthers = .zero }
  @LoopActor func sayNoDisagreements() { bridge.context.patienceWithOthers = .seconds(3600) }
  @LoopActor func awaitBarriers(_ limit: Duration) { bridge.ownership.barrierTimeout = limit }

  func configure(_ configuration: Configuration) async { await engine.configure(configuration) }

  func configure(_ text: String) async throws {
    await engine.configure(try Configuration.parse(Array(text.utf8)).get())
  }

  func remove(_ id: DeviceID) async throws { _ = try await engine.remove(id) }

  func record(of address: BluetoothAddress = BridgeUnderTest.address) async -> DeviceRecord? {
    await engine.store.records[address]
  }

  /// The state of the device's session changes.
  func session(_ state: SessionState) async throws {
    try await device { publisher in
      var description = publisher.device
      description.session = state
      publisher.changed(.session, description)
    }
  }

  func comeOnline() async throws {
    try await device { publisher in
      var description = publisher.device
      (description.session, description.isOnline) = (.live, true)
      description.lastConnected = .now
      publisher.changed(.availability, description)
    }
  }

  /// The device comes online, and its temperature of 21 °C is published.
  func publishReading() async throws {
    try await comeOnline()
    try await receive(0, 21)
    try await message("kitchen/temperature", "21")
  }

  /// A new link offers these properties, and no others.
  func offer(_ properties: Set<String>) async throws {
    try await device { publisher in
      var description = publisher.device
      (description.session, description.isOnline, description.lastConnected) = (.live, true, .now)
      description.learn(offered: properties, usable: properties, isNewLink: true)
      publisher.changed(.availability, description)
    }
  }

  /// A value of a property.
  func receive(_ name: String, _ value: Value) async throws {
    try await device { publisher in
      guard let index = publisher.device.profile.index(ofPropertyNamed: name) else { return }
      publisher.context.engine.deliver(value, of: index, to: publisher.device.address)
    }
  }

  /// A value of a property, by its place in ``kitchen``.
  /// - Parameter isReading: otherwise it is read back.
  func receive(_ property: Int, _ value: Value, isReading: Bool = true) async throws {
    try await device {
      $0.context.engine.deliver(value, of: property, to: $0.device.address, isReading: isReading)
    }
  }
}

extension DeviceManager {
  fileprivate func deliver(
    _ value: Value, of property: Int, to address: BluetoothAddress, isReading: Bool = true
  ) {
    guard let channel = registry.byAddress[address]?.channels[property] else { return }
    if isReading { channel.reportReading(of: value) } else { channel.readBack(value) }
  }

  fileprivate func perform<Result: Sendable>(_ body: @LoopActor () throws -> Result) rethrows -> Result {
    try body()
  }
}
