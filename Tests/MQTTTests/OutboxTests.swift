import Testing

@testable import MQTT

@Suite struct OutboxTests {
  func topic(_ text: String) -> TopicName { TopicName(text)! }

  func message(
    _ text: String, qos: QoS = .atLeastOnce, undelivered: MQTTMessage.Undelivered = .kept,
    number: Int64? = nil
  ) -> MQTTMessage {
    MQTTMessage(
      topic: topic("e"), payload: Array(text.utf8), qos: qos, undelivered: undelivered, number: number)
  }

  func outbox(messages: Int = 10_000, bytes: Int = 1 << 20) -> Outbox {
    Outbox(limits: OutboxLimits(messages: messages, bytes: bytes, inFlight: 1000))
  }

  func peer(window: UInt16 = 100, maximumPacket: UInt32? = nil) -> MQTTConnection {
    MQTTConnection(receiveMaximum: window, maximumPacketSize: maximumPacket)
  }

  /// The next packet to send.
  func next(_ outbox: inout Outbox) throws -> Outbox.Packet {
    let packet = outbox.next()
    return try #require(packet)
  }

  /// Sends everything that may be sent, and returns it; packet identifiers count from `first`.
  func sendAll(_ outbox: inout Outbox, first: Int32 = 1) -> [String] {
    var sent: [String] = []
    var identifier = first
    while let packet = outbox.next() {
      sent.append("\(packet.message.topic)=\(String(decoding: packet.message.payload, as: UTF8.self))")
      outbox.sent(packet, as: identifier)
      identifier += 1
    }
    return sent
  }

  // MARK: Order

  @Test func nothingIsSentWithoutAConnection() {
    var outbox = outbox()
    outbox.append(message("1"))
    outbox.setState(topic("s"), [1], qos: .atMostOnce)
    #expect(outbox.next() == nil)
    #expect(!outbox.isEmpty)
  }

  @Test func messagesAndStateAreSentInOrder() {
    var outbox = outbox()
    outbox.connected(peer())
    outbox.append(message("1"))
    outbox.setState(topic("a"), Array("x".utf8), qos: .atLeastOnce)
    outbox.append(message("2"))
    outbox.setState(topic("b"), Array("y".utf8), qos: .atLeastOnce)
    #expect(sendAll(&outbox) == ["e=1", "a=x", "e=2", "b=y"])
    for identifier in 1...4 {
      #expect(!outbox.isEmpty)
      outbox.acknowledged(Int32(identifier))
    }
    #expect(outbox.isEmpty)
  }

  @Test func waitingStateIsSentOnceWithTheNewestValue() {
    var outbox = outbox()
    outbox.connected(peer())
    outbox.setState(topic("a"), Array("1".utf8), qos: .atLeastOnce)
    outbox.append(message("1"))
    outbox.setState(topic("a"), Array("2".utf8), qos: .atLeastOnce)
    #expect(sendAll(&outbox) == ["a=2", "e=1"])
  }

  @Test func liveValuesOvertakeABacklogOfOtherState() {
    var outbox = outbox()
    outbox.connected(peer(window: 1000))
    for number in 0..<100 {
      outbox.setState(topic("info/\(number)"), Array("x".utf8), qos: .atLeastOnce)
    }
    for number in 0..<10 {
      outbox.setState(topic("value/\(number)"), Array("1".utf8), qos: .atLeastOnce, isUrgent: true)
      outbox.append(message("\(number)"), isUrgent: true)
    }
    let sent = sendAll(&outbox)
    let live = (0..<10).flatMap { ["value/\($0)=1", "e=\($0)"] }
    #expect(sent.prefix(16) == live[..<15] + ["info/0=x"])
    #expect(sent[16..<21] == live[15...])
    #expect(sent[21..<23] == ["info/1=x", "info/2=x"])
    #expect(sent.count == 120)
  }

  @Test func readingsOvertakeABacklogOfAnswers() {
    var outbox = outbox()
    outbox.connected(peer(window: 1000))
    for number in 0..<100 {
      var answer = message("\(number)")
      answer.topic = topic("answer")
      outbox.append(answer)
    }
    outbox.append(message("reading"), isUrgent: true)
    let answers = (0..<100).map { "answer=\($0)" }
    #expect(sendAll(&outbox) == ["e=reading"] + answers)
  }

  @Test func ofBothLanesTheOldestMessageIsDropped() {
    var outbox = outbox(messages: 3)
    outbox.append(message("1"), isUrgent: true)
    outbox.append(message("2"))
    outbox.append(message("3"), isUrgent: true)
    outbox.append(message("4"))
    #expect(outbox.lost == 1)
    outbox.append(message("5"), isUrgent: true)
    #expect(outbox.lost == 2)
    outbox.connected(peer())
    #expect(sendAll(&outbox) == ["e=3", "e=4", "e=5"])
  }

  @Test func unacknowledgedMessagesOfBothLanesComeFirstOnTheNextConnection() {
    var outbox = outbox()
    outbox.connected(peer())
    outbox.append(message("1"), isUrgent: true)
    outbox.append(message("2"))
    #expect(sendAll(&outbox) == ["e=1", "e=2"])
    outbox.append(message("3"))
    outbox.append(message("4"), isUrgent: true)
    outbox.disconnected()
    outbox.connected(peer())
    #expect(sendAll(&outbox) == ["e=1", "e=2", "e=3", "e=4"])
  }

  @Test func withoutABacklogTheOrderIsKept() {
    var outbox = outbox()
    outbox.connected(peer())
    for number in 0..<Outbox.backlog {
      outbox.setState(topic("info/\(number)"), Array("x".utf8), qos: .atLeastOnce)
    }
    outbox.setState(topic("value"), Array("1".utf8), qos: .atLeastOnce, isUrgent: true)
    outbox.append(message("1"), isUrgent: true)
    let sent = sendAll(&outbox)
    #expect(sent.suffix(3) == ["info/63=x", "value=1", "e=1"])
  }

  @Test func whatIsNotUrgentIsSentAsAllowed() {
    var outbox = outbox()
    for number in 1...4 { outbox.setState(topic("info"), Array("\(number)".utf8), qos: .atLeastOnce) }
    outbox.setState(topic("more"), Array("x".utf8), qos: .atLeastOnce)
    outbox.allowBulk(1)
    outbox.connected(peer())
    outbox.append(message("1"), isUrgent: true)
    #expect(sendAll(&outbox) == ["info=4", "e=1"])
    outbox.setState(topic("more"), Array("y".utf8), qos: .atLeastOnce, isUrgent: true)
    #expect(sendAll(&outbox) == ["more=y"])
    outbox.append(message("2"))
    #expect(sendAll(&outbox) == [])
    outbox.allowBulk(nil)
    #expect(sendAll(&outbox) == ["e=2"])
  }

  @Test func aTopicThatWaitsInBothWaysIsSentOnceWithTheNewestPayload() {
    var outbox = outbox()
    outbox.connected(peer(window: 1000))
    for number in 0..<100 { outbox.clearState(topic("t/\(number)")) }
    outbox.setState(topic("t/99"), Array("1".utf8), qos: .atLeastOnce, isUrgent: true)
    outbox.setState(topic("live"), Array("2".utf8), qos: .atLeastOnce, isUrgent: true)
    outbox.clearState(topic("live"))
    let sent = sendAll(&outbox)
    #expect(sent.prefix(2) == ["t/99=1", "live="])
    #expect(sent.filter { $0.hasPrefix("t/99=") }.count == 1 && sent.count == 101)
    #expect(outbox.queuedCount == 0)
  }

  @Test func messagesOfAnEarlierConnectionDoNotOvertakeState() {
    var outbox = outbox()
    for number in 0..<100 {
      outbox.setState(topic("info/\(number)"), Array("x".utf8), qos: .atLeastOnce)
    }
    outbox.append(message("old"), isUrgent: true)
    outbox.connected(peer(window: 1000))
    outbox.append(message("new"), isUrgent: true)
    #expect(sendAll(&outbox).suffix(2) == ["e=old", "e=new"])
  }

  @Test func messagesOfAnEarlierConnectionDoNotHoldUpNewOnes() {
    var outbox = outbox()
    for number in 0..<100 {
      outbox.setState(topic("info/\(number)"), Array("x".utf8), qos: .atLeastOnce)
    }
    outbox.append(message("old"), isUrgent: true)
    outbox.allowBulk(0)
    outbox.connected(peer(window: 1000))
    outbox.append(message("new"), isUrgent: true)
    #expect(sendAll(&outbox) == ["e=old", "e=new"])
  }

  @Test func packetSizeIncludesProperties() throws {
    var outbox = outbox()
    outbox.connected(peer())
    outbox.append(
      MQTTMessage(
        topic: topic("abc"), payload: [UInt8](repeating: 0, count: 200), qos: .atMostOnce,
        responseTopic: topic("re"), correlationData: [1, 2, 3]))
    let packet = try next(&outbox)
    // 1 + 2 header, 2 + 3 topic, 1 properties: 3 + 2, 3 + 3; payload.
    #expect(packet.size == 1 + 2 + 5 + 1 + 11 + 200)
  }

  @Test func unsentPacketIsReturnedNext() throws {
    var outbox = outbox()
    outbox.connected(peer())
    outbox.setState(topic("a"), Array("1".utf8), qos: .atLeastOnce)
    outbox.append(message("1"))
    outbox.append(message("2"))
    outbox.unsent(try next(&outbox))
    #expect(sendAll(&outbox) == ["a=1", "e=1", "e=2"])
    outbox.append(message("3"))
    outbox.append(message("4"))
    outbox.unsent(try next(&outbox))
    #expect(sendAll(&outbox, first: 4) == ["e=3", "e=4"])
  }
}
