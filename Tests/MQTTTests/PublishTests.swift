import TestSupport
import Testing

@testable import MQTT

/// Against a real mosquitto.
@Suite(.timeLimit(.minutes(5))) struct PublishTests {
  private func subscriber(_ port: UInt16, _ filters: String...) async throws -> TestClient {
    let client = await TestClient(.local(port)) { client in
      client.subscribe(filters.map(filter))
    }
    try await client.connected()
    // Once a message published after subscribing is delivered, the subscriptions are in force.
    let probe = topic(filters[0].replacing("#", with: "probe"))
    await client.publish(MQTTMessage(topic: probe, payload: []))
    _ = try await client.message()
    return client
  }

  @Test(arguments: [MQTTOptions.ProtocolVersion.v5, .v311], [QoS.atMostOnce, .atLeastOnce])
  func messagesArriveInOrder(_ version: MQTTOptions.ProtocolVersion, _ qos: QoS) async throws {
    let broker = try await MosquittoBroker()
    let subscriber = try await subscriber(broker.port, "t/#")
    let publisher = await TestClient(.local(broker.port, version))
    try await publisher.connected()
    for number in 0..<500 {
      await publisher.publish(
        MQTTMessage(topic: topic("t/x"), payload: Array("\(number)".utf8), qos: qos))
    }
    #expect(try await subscriber.texts(500) == (0..<500).map(String.init))
    await publisher.client.stop(deadline: patience)
    let statistics = await publisher.client.statistics
    #expect(statistics.sent == 500)
    #expect(statistics.queued == 0 && statistics.lost == 0)
  }

  /// With a third-party subscriber.
  /// More than mosquitto queues for a client with QoS 1.
  @Test(arguments: [MQTTOptions.ProtocolVersion.v5, .v311])
  func manyRetainedMessagesArriveWithQoS0(_ version: MQTTOptions.ProtocolVersion) async throws {
    let broker = try await MosquittoBroker()
    let count = 1500
    let payload = [UInt8](repeating: 0x78, count: 700)
    let publisher = await TestClient(.local(broker.port)) { client in
      for number in 0..<count { client.setState(topic("many/\(number)"), payload) }
      client.subscribe([filter("end")])
      client.publish(MQTTMessage(topic: topic("end"), payload: []))
    }
    #expect(try await publisher.message().topic == topic("end"))
    let client = await TestClient(.local(broker.port, version)) {
      $0.subscribe([filter("many/+")], options: .atMostOnce)
      $0.subscribe([filter("end")])
      $0.publish(MQTTMessage(topic: topic("end"), payload: []))
    }
    var topics: Set<TopicName> = []
    while true {
      let message = try await client.message()
      if message.topic == topic("end") { break }
      topics.insert(message.topic)
    }
    #expect(topics.count == count)
  }

  @Test func mosquittoSubReadsPublishedMessages() async throws {
    let broker = try await MosquittoBroker()
    let publisher = await TestClient(.local(broker.port)) {
      $0.setState(topic("t/state"), Array("21".utf8))
      $0.publish(
        MQTTMessage(
          topic: topic("t/result"), payload: Array("{}".utf8), retain: true,
          responseTopic: topic("answer/here"), correlationData: Array("abc".utf8)))
    }
    try await publisher.connected()
    await publisher.client.stop(deadline: patience)
    let reader = try ChildProcess(
      "/usr/bin/mosquitto_sub",
      [
        "-p", "\(broker.port)", "-V", "5", "-t", "t/#", "-C", "2", "-F",
        "%t %p retained %r qos %q R=%R D=%D",
      ])
    #expect(try await reader.exitStatus() == 0)
    let lines = reader.text.split(separator: "\n").sorted()
    #expect(lines.count == 2)
    #expect(lines.first?.hasPrefix("t/result {} retained 1 qos 0 R=answer/here D=abc") == true, "\(lines)")
    #expect(lines.last?.hasPrefix("t/state 21 retained 1") == true, "\(lines)")
  }

  @Test func responseTopicAndCorrelationDataAreDelivered() async throws {
    let broker = try await MosquittoBroker()
    let subscriber = try await subscriber(broker.port, "t/#")
    let data = (0...255).map { UInt8($0) }
    await subscriber.publish(
      MQTTMessage(
        topic: topic("t/ask"), payload: [1], responseTopic: topic("t/answer"), correlationData: data))
    let message = try await subscriber.message()
    #expect(message.responseTopic == topic("t/answer"))
    #expect(message.correlationData == data)
    #expect(message.qos == .atLeastOnce && !message.retain)
  }

  @Test func willIsPublishedOnConnectionLossButNotOnStop() async throws {
    let broker = try await MosquittoBroker()
    let subscriber = try await subscriber(broker.port, "t/#")
    for version in [MQTTOptions.ProtocolVersion.v5, .v311] {
      var options = MQTTOptions.local(broker.port, version)
      options.will = MQTTMessage(topic: topic("t/will"), payload: Array("offline".utf8), retain: true)
      let dying = await TestClient(options)
      try await dying.connected()
      await dying.die()
      let will = try await subscriber.message()
      #expect(will.text == "offline" && will.topic == topic("t/will"))
      #expect(try await dying.disconnected() == nil)

      let leaving = await TestClient(options)
      try await leaving.connected()
      await leaving.client.stop(deadline: patience)
      #expect(try await leaving.disconnected() == nil)
      await subscriber.publish(MQTTMessage(topic: topic("t/next"), payload: []))
      #expect(try await subscriber.message().topic == topic("t/next"))
    }
  }

  @Test func stopWaitsUntilQueuedMessagesAreSent() async throws {
    let broker = try await MosquittoBroker()
    let subscriber = try await subscriber(broker.port, "t/#")
    let publisher = await TestClient(.local(broker.port))
    try await publisher.connected()
    for number in 0..<1000 {
      await publisher.publish(MQTTMessage(topic: topic("t/x"), payload: Array("\(number)".utf8)))
    }
    await publisher.client.stop(deadline: patience)
    #expect(try await subscriber.texts(1000) == (0..<1000).map(String.init))
  }

  /// The messages that replace the will may not have been sent.
  @Test func stopBeyondItsDeadlineLetsTheBrokerPublishTheWill() async throws {
    let broker = try await MosquittoBroker()
    let subscriber = try await subscriber(broker.port, "t/will")
    var options = MQTTOptions.local(broker.port)
    options.will = MQTTMessage(topic: topic("t/will"), payload: Array("offline".utf8))
    let publisher = await TestClient(options)
    try await publisher.connected()
    broker.freeze(true)
    await publisher.publish(MQTTMessage(topic: topic("t/x"), payload: []))
    await publisher.client.stop(deadline: .milliseconds(200))
    broker.freeze(false)
    #expect(try await subscriber.message().text == "offline")
  }

  @Test(arguments: [MQTTOptions.ProtocolVersion.v5, .v311])
  func hugeMessagesAreNotDelivered(_ version: MQTTOptions.ProtocolVersion) async throws {
    let broker = try await MosquittoBroker()
    let receiver = await TestClient(.local(broker.port, version)) { $0.subscribe([filter("set")]) }
    try await receiver.connected()
    try await broker.logLine { $0.contains("SUBACK") }
    let sender = await TestClient(.local(broker.port))
    try await sender.connected()
    let huge = [UInt8](repeating: UInt8(ascii: "9"), count: 1_000_000)
    for payload in [huge, Array("2000".utf8)] {
      await sender.publish(MQTTMessage(topic: topic("set"), payload: payload))
    }
    #expect(try await receiver.message().text == "2000")
  }

  @Test func tooLargeMessageIsDroppedAndOthersAreSent() async throws {
    let broker = try await MosquittoBroker { _ in "allow_anonymous true\nmax_packet_size 1000" }
    let client = await TestClient(.local(broker.port)) { $0.subscribe([filter("t/#")]) }
    #expect(try await client.connected().maximumPacketSize == 1000)
    // 3 bytes of header, 5 topic, 2 identifier, 1 properties: 989 bytes fit, and 990 do not.
    for size in [2000, 990, 989] {
      await client.publish(
        MQTTMessage(topic: topic("t/x"), payload: [UInt8](repeating: 46, count: size)))
    }
    #expect(try await client.message().payload.count == 989)
    #expect(await client.client.statistics.rejected == 2)
    let warning = try await client.lines.next("a warning") { $0.line.contains("larger") ? $0 : nil }
    #expect(warning.level == .warning)
  }

  @Test func receiveMaximumOfTheBrokerIsRespected() async throws {
    let broker = try await MosquittoBroker { _ in "allow_anonymous true\nmax_inflight_messages 3" }
    let subscriber = try await subscriber(broker.port, "t/#")
    let client = await TestClient(.local(broker.port))
    #expect(try await client.connected().receiveMaximum == 3)
    broker.freeze(true)
    for number in 0..<100 {
      await client.publish(MQTTMessage(topic: topic("t/x"), payload: Array("\(number)".utf8)))
    }
    let statistics = await client.client.statistics
    #expect(statistics.sent == 3 && statistics.queued == 97)
    broker.freeze(false)
    #expect(try await subscriber.texts(100) == (0..<100).map(String.init))
  }

  @Test func messagesOfAnIterationAreSentAtItsEnd() async throws {
    let broker = try await MosquittoBroker()
    let subscriber = try await subscriber(broker.port, "t/#")
    let client = await TestClient(.local(broker.port))
    try await client.connected()
    let messages = (0..<8).map {
      MQTTMessage(topic: topic("t/x"), payload: Array("\($0)".utf8), qos: .atMostOnce)
    }
    // One job is one iteration of the loop.
    let sent = await client.client.isolated { client in
      for message in messages { client.publish(message, isUrgent: true) }
      return client.statistics.sent
    }
    #expect(sent == 0)
    #expect(try await subscriber.texts(8) == (0..<8).map(String.init))
  }

  /// mosquitto imposes no less than 10 s.
  @Test func brokersKeepAliveIsReported() async throws {
    let broker = try await MosquittoBroker { _ in "allow_anonymous true\nmax_keepalive 10" }
    #expect(try await TestClient(.local(broker.port)).connected().serverKeepAlive == .seconds(10))
    let free = try await MosquittoBroker()
    #expect(try await TestClient(.local(free.port)).connected().serverKeepAlive == nil)
  }

  @Test func unsubscribedTopicIsNotDelivered() async throws {
    let broker = try await MosquittoBroker()
    let client = try await subscriber(broker.port, "a/#", "b/#")
    await client.unsubscribe(filter("a/#"))
    await client.publish(MQTTMessage(topic: topic("a/x"), payload: []))
    await client.publish(MQTTMessage(topic: topic("b/x"), payload: []))
    #expect(try await client.message().topic == topic("b/x"))
  }
}
