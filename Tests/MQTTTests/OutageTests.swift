import TestSupport
import Testing

@testable import MQTT

/// What a client keeps during an outage of its broker. Against a real mosquitto without persistence.
@Suite(.timeLimit(.minutes(5))) struct OutageTests {
  @Test(arguments: [MQTTOptions.ProtocolVersion.v5, .v311])
  func brokerRestartRestoresStateAndSubscriptions(_ version: MQTTOptions.ProtocolVersion) async throws {
    let broker = try await MosquittoBroker()
    let client = await TestClient(.local(broker.port, version)) {
      $0.subscribe([filter("cmd/#")])
      $0.setState(topic("state/a"), Array("1".utf8))
      $0.setState(topic("state/b"), Array("2".utf8))
    }
    try await client.connected()
    await client.setState(topic("state/a"), Array("3".utf8))
    try await broker.stop()
    #expect(try await client.disconnected()?.needsChange == false)
    await client.setState(topic("state/b"), Array("4".utf8))
    await client.clearState(topic("state/a"))
    await client.setState(topic("state/c"), Array("5".utf8))
    try await broker.start()
    try await client.connected()

    let other = await TestClient(.local(broker.port)) { $0.subscribe([filter("state/#")]) }
    var seen: Set<String> = []
    for _ in 0..<2 {
      let message = try await other.message()
      seen.insert("\(message.topic)=\(message.text)")
    }
    #expect(seen == ["state/b=4", "state/c=5"])

    await other.publish(MQTTMessage(topic: topic("cmd/x"), payload: Array("go".utf8)))
    #expect(try await client.message().text == "go")
    #expect(client.connections == 2)
  }

  @Test func amongManyClientsTheStateIsSentInPortions() async throws {
    let broker = try await MosquittoBroker()
    let client = await TestClient(.local(broker.port)) {
      $0.subscribe([filter("#")])
      for number in 0..<100 { $0.setState(topic("state/\(number)"), Array("x".utf8)) }
      $0.reconnectingClients = 40
    }
    try await client.connected()
    await client.client.isolated { $0.publish(MQTTMessage(topic: topic("e"), payload: []), isUrgent: true) }
    var states = 0
    while try await client.message().topic != topic("e") { states += 1 }
    #expect(states < 100)
    // It waits for nothing when it stops.
    await client.client.stop(deadline: patience)
    let other = await TestClient(.local(broker.port)) { $0.subscribe([filter("state/#")]) }
    _ = try await other.texts(100)
  }

  @Test func requestedReconnectIsReported() async throws {
    let broker = try await MosquittoBroker()
    let client = await TestClient(.local(broker.port))
    try await client.connected()
    await client.client.reconnect(after: .zero)
    #expect(try await client.disconnected() == nil)
    try await client.connected()
  }

  /// A broker that cannot send an acknowledgement to a closed socket publishes the will.
  @Test func requestedReconnectPublishesNoWillAndRepeatsNothing() async throws {
    let broker = try await MosquittoBroker()
    let observer = await TestClient(.local(broker.port)) { $0.subscribe([filter("#")]) }
    try await observer.connected()
    var options = MQTTOptions.local(broker.port)
    options.will = MQTTMessage(topic: topic("state"), payload: Array("offline".utf8))
    let client = await TestClient(options)
    try await client.connected()
    await client.client.isolated { client in
      for number in 0..<4 {
        client.publish(MQTTMessage(topic: topic("e"), payload: Array("\(number)".utf8)), isUrgent: true)
      }
      client.reconnect(after: .zero)
    }
    #expect(try await client.disconnected() == nil)
    try await client.connected()
    await client.publish(MQTTMessage(topic: topic("e"), payload: Array("end".utf8)))
    var texts: [String] = []
    while texts.last != "end" { texts.append(try await observer.message().text) }
    #expect(texts == ["0", "1", "2", "3", "end"])
  }

  @Test func messagesAreKeptInOrder() async throws {
    let broker = try await MosquittoBroker()
    let client = await TestClient(.local(broker.port)) { $0.subscribe([filter("e")]) }
    try await client.connected()
    func publish(_ numbers: Range<Int>) async {
      for number in numbers {
        await client.publish(
          MQTTMessage(topic: topic("e"), payload: Array("\(number)".utf8)))
      }
    }
    await publish(0..<10)
    #expect(try await client.texts(10) == (0..<10).map { "\($0)" })
    try await broker.kill()
    _ = try await client.disconnected()
    await publish(10..<500)
    try await broker.start()
    try await client.connected()
    await publish(500..<510)
    #expect(try await client.texts(500) == (10..<510).map { "\($0)" })
    #expect(await client.client.statistics.lost == 0)
  }

  /// The broker is killed before it has acknowledged the messages, so they are sent again.
  @Test func unacknowledgedMessagesAreSentAgain() async throws {
    let broker = try await MosquittoBroker()
    let client = await TestClient(.local(broker.port)) { $0.subscribe([filter("e")]) }
    try await client.connected()
    broker.freeze(true)
    for number in 0..<200 {
      await client.publish(
        MQTTMessage(topic: topic("e"), payload: Array("\(number)".utf8)))
    }
    let statistics = await client.client.statistics
    #expect(statistics.sent == 20 && statistics.queued == 180, "mosquitto allows 20 in flight")
    try await broker.kill()
    _ = try await client.disconnected()
    try await broker.start()
    try await client.connected()
    #expect(try await client.texts(200) == (0..<200).map(String.init))
  }

  /// With the broker frozen, without a connection, and again with one.
  @Test func undeliveredMessagesAreGivenBackInOrder() async throws {
    let broker = try await MosquittoBroker()
    let client = await TestClient(.local(broker.port)) { $0.subscribe([filter("e")]) }
    try await client.connected()
    func publish(_ numbers: Range<Int>) async {
      for number in numbers {
        await client.publish(
          MQTTMessage(
            topic: topic("e"), payload: Array("\(number)".utf8), undelivered: .returned, number: Int64(number)
          ))
      }
    }
    await publish(0..<10)
    #expect(try await client.texts(10) == (0..<10).map(String.init))
    @Sendable func completed() -> [Int64] {
      client.events.elements.flatMap { event -> [Int64] in
        if case .completed(let numbers, _) = event { numbers } else { [] }
      }
    }
    // The broker acknowledges a message after it has passed it on.
    try await eventually("all are acknowledged") { completed().count == 10 }
    broker.freeze(true)
    await publish(10..<200)
    try await broker.kill()
    var returned: [MQTTMessage] = []
    func takeReturned(upTo count: Int) async throws {
      while returned.count < count {
        returned += try await client.events.next("messages given back") { event in
          if case .undelivered(let messages) = event { messages } else { nil }
        }
      }
    }
    try await takeReturned(upTo: 190)
    _ = try await client.disconnected()
    await publish(200..<203)
    try await takeReturned(upTo: 193)
    #expect(completed() == (0..<10).map(Int64.init))
    #expect(returned.map(\.number) == (10..<203).map(Int64.init))
    #expect(returned.allSatisfy { String(decoding: $0.payload, as: UTF8.self) == "\($0.number ?? 0)" })
    try await broker.start()
    try await client.connected()
    await publish(203..<204)
    #expect(try await client.texts(1) == ["203"])
    #expect(await client.client.statistics.lost == 0)
  }

  @Test func oldestMessagesAreDroppedBeyondTheLimit() async throws {
    let broker = try await MosquittoBroker()
    var options = MQTTOptions.local(broker.port)
    options.outbox.messages = 100
    let client = await TestClient(options) { $0.subscribe([filter("e")]) }
    try await client.connected()
    try await broker.kill()
    _ = try await client.disconnected()
    for number in 0..<250 {
      await client.publish(MQTTMessage(topic: topic("e"), payload: Array("\(number)".utf8)))
    }
    #expect(await client.client.statistics.lost == 150)
    try await broker.start()
    try await client.connected()
    #expect(try await client.texts(100) == (150..<250).map(String.init))
    #expect(
      client.lines.elements.count { $0.line.contains("the oldest are dropped") && $0.level == .warning } == 1)
  }

  @Test func silentBrokerIsNoticed() async throws {
    let broker = try await MosquittoBroker()
    var options = MQTTOptions.local(broker.port)
    options.keepAlive = .seconds(5)
    let client = await TestClient(options)
    try await client.connected()
    broker.freeze(true)
    let error = try await client.events.next("the loss") {
      if case .disconnected(let error) = $0 { error } else { nil }
    }
    #expect(error == .keepAliveTimedOut)
    broker.freeze(false)
    try await client.connected()
  }

  /// The broker answers pings, and delivers messages.
  @Test func brokerThatDoesNotAcknowledgeIsLeft() async throws {
    let broker = try await MosquittoBroker()
    let proxy = try BrokerProxy(to: broker.port, dropsAcknowledgements: true)
    var options = MQTTOptions.local(proxy.port)
    options.keepAlive = .seconds(2)
    let client = await TestClient(options) { $0.subscribe([filter("e")]) }
    try await client.connected()
    await client.publish(
      MQTTMessage(topic: topic("e"), payload: Array("1".utf8), undelivered: .returned, number: 1))
    #expect(try await client.texts(1) == ["1"])
    let returned = try await client.events.next("messages given back") { event in
      if case .undelivered(let messages) = event { messages } else { nil }
    }
    #expect(returned.map(\.number) == [1])
    #expect(try await client.disconnected() == .unacknowledged(topic("e")))
    #expect(
      client.lines.elements.contains { $0.line.contains("has not acknowledged messages, such as one to e") })
    try await client.connected()
  }

  /// The broker asks for no keep-alive, or for one of 18 hours.
  @Test(arguments: [0, 0xFF] as [UInt8])
  func silentBrokerThatAsksForNoPingsIsNoticed(_ byte: UInt8) async throws {
    let server = try StubServer(sending: [0x20, 6, 0, 0, 3, 0x13, byte, byte])
    var options = MQTTOptions.local(server.port)
    options.keepAlive = .seconds(1)
    let client = await TestClient(options)
    try await client.connected()
    #expect(try await client.disconnected() == .keepAliveTimedOut)
    _ = try await server.received.next("an UNSUBSCRIBE") { $0.first == 0xA2 ? true : nil }
  }

  @Test(arguments: [[0xE0, 0x01, 0x8E], [0xE0, 0x02, 0x8E, 0x00]] as [[UInt8]])
  func disconnectByTheBrokerIsReported(_ disconnect: [UInt8]) async throws {
    let server = try StubServer(sending: [0x20, 0x03, 0x00, 0x00, 0x00] + disconnect)
    let client = await TestClient(.local(server.port))
    try await client.connected()
    let error = try await client.disconnected()
    #expect(error == .closedByBroker(reasonCode: 142, reason: "Session taken over"))
  }

  /// With MQTT 3.1.1 mosquitto ends the connection; with MQTT 5 newer releases of libmosquitto do, at its PUBACK.
  @Test(
    arguments: [
      (MQTTOptions.ProtocolVersion.v311, "max_packet_size 1000", QoS.atLeastOnce),
      (.v311, "max_packet_size 1000", .atMostOnce), (.v5, "message_size_limit 900", .atLeastOnce),
    ])
  func messageThatEndsTheConnectionIsDroppedAndOthersAreSent(
    _ version: MQTTOptions.ProtocolVersion, _ limit: String, _ qos: QoS
  ) async throws {
    let broker = try await MosquittoBroker { _ in "allow_anonymous true\n\(limit)" }
    let client = await TestClient(.local(broker.port, version)) { client in
      client.subscribe([filter("t/#")])
      for (name, count) in [("a", 10), ("b", 1200), ("c", 10), ("d", 1300), ("e", 1100)] {
        client.setState(topic("t/\(name)"), [UInt8](repeating: 46, count: count), qos: qos)
      }
    }
    let large = Set(["b", "d", "e"].map { topic("t/\($0)") })
    var refused: Set<TopicName> = []
    while refused != large {
      let name = try await client.events.next("a refusal") { event in
        if case .publicationRefused(let topic, _, _) = event { topic } else { nil }
      }
      refused.insert(name)
    }
    // Two or three ends at t/b, and two at t/e; an end while something is being sent may say nothing.
    #expect(client.connections <= 8)
    let connections = client.connections
    // A new value of the same length.
    await client.client.isolated {
      $0.setState(topic("t/b"), [UInt8](repeating: 47, count: 1200), qos: qos)
      $0.publish(MQTTMessage(topic: topic("t/x"), payload: []))
    }
    while try await client.message().topic != topic("t/x") {}
    #expect(client.connections == connections)
    let lines = client.lines.elements.map(\.line)
    #expect(lines.contains { $0.hasPrefix("a message to t/b was dropped: ") }, "\(lines)")
    if version == .v311 {
      #expect(lines.contains { $0.hasSuffix("the broker ends the connection when it is sent (1210 bytes)") })
    }
  }

  @Test func outageAndItsEndAreLoggedOnce() async throws {
    let broker = try await MosquittoBroker()
    let client = await TestClient(.local(broker.port))
    try await client.connected()
    try await broker.kill()
    _ = try await client.disconnected()
    for _ in 0..<4 { _ = try await client.connectFailed() }
    try await broker.start()
    try await client.connected()
    let logged = client.lines.elements.filter { $0.level > .debug }.map { $0.line }
    #expect(logged.count == 4, "\(logged)")
    #expect(logged.first == "connected to 127.0.0.1:\(broker.port)")
    #expect(logged.dropFirst().first?.contains("was lost") == true)
    #expect(logged.dropFirst(2).first?.contains("Connection refused") == true)
    #expect(logged.last == "connected again to 127.0.0.1:\(broker.port)")
  }
}
