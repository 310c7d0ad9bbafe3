import Testing

@testable import MQTT

@Suite struct SizeLimitTests {
  private func ended(_ limit: inout SizeLimit, _ inFlight: [(String, Int)]) {
    limit.ended(inFlight.map { (topic($0.0), $0.1) })
  }

  /// A broker that acknowledges messages of 100 bytes.
  private func limit() -> SizeLimit {
    var limit = SizeLimit()
    limit.acknowledged(topic("a"), 100)
    return limit
  }

  @Test func theMessageWithWhichTheConnectionEndsAgainIsTheCause() {
    var limit = limit()
    #expect(!limit.isSought)
    ended(&limit, [("b", 100), ("c", 500), ("d", 600)])
    #expect(limit.isSought && !limit.forbids(1000))
    ended(&limit, [("c", 501)])
    #expect(limit.isSought && !limit.forbids(1000), "a broker that is restarted twice")
    ended(&limit, [("c", 501)])
    #expect(!limit.isSought)
    #expect(limit.forbids(501) && limit.forbids(1000) && !limit.forbids(500))
    // Another one is smaller.
    for _ in 1...2 { ended(&limit, [("e", 300)]) }
    #expect(limit.forbids(300) && !limit.forbids(299))
  }

  @Test func anOrdinaryLossIsNotTaken() {
    func isFound(_ ends: [[(String, Int)]], in limit: SizeLimit) -> Bool {
      var limit = limit
      for end in ends { ended(&limit, end) }
      return limit.forbids(.max)
    }
    #expect(isFound([[("c", 500)], [("c", 500)]], in: limit()))
    #expect(!isFound([[("c", 500)], [("c", 500)]], in: SizeLimit()), "the broker acknowledges nothing")
    #expect(!isFound([[("c", 500)], [], [("c", 500)]], in: limit()), "the network failed between")
    #expect(!isFound([[("c", 500)], [("d", 500)]], in: limit()), "another one")
    #expect(!isFound([[("c", 100)], [("c", 100)]], in: limit()), "another one of its size was acknowledged")
    let two = [("c", 500), ("d", 500)]
    #expect(!isFound([two, two], in: limit()), "it is not known which")
  }

  @Test func messagesAreSentOneAtATimeUntilTheSuspectsAreAcknowledged() {
    var limit = limit()
    ended(&limit, [("c", 500)])
    limit.acknowledged(topic("b"), 50)
    #expect(limit.isSought)
    limit.acknowledged(topic("c"), 500)
    #expect(!limit.isSought)
    ended(&limit, [("d", 600)])
    limit.rejected(topic("d"))
    #expect(!limit.isSought, "it is never sent")
    ended(&limit, [("d", 600)])
    limit.lasted()
    #expect(!limit.isSought, "it is not sent any more")
  }

  @Test func theLimitIsForgottenWhenAConnectionThatHasLastedEnds() {
    var limit = limit()
    for _ in 1...2 { ended(&limit, [("c", 500)]) }
    limit.lasted()
    #expect(limit.forbids(500))
    ended(&limit, [("b", 100)])
    #expect(!limit.forbids(500) && !limit.isSought)
    // A lower limit is in force.
    limit.acknowledged(topic("a"), 10)
    for _ in 1...2 { ended(&limit, [("b", 50)]) }
    #expect(limit.forbids(50))
  }

  /// Retained state, which each connection sends again, and a message of the spool; of MQTT 5 the payload counts.
  @Test(arguments: [QoS.atLeastOnce, .atMostOnce], [true, false])
  func whatEndsTheConnectionIsRejected(_ qos: QoS, _ hasProperties: Bool) {
    var outbox = Outbox(limits: OutboxLimits(), hasProperties: hasProperties)
    let large = [UInt8](repeating: 46, count: 500)
    var number: Int32 = 0
    /// Sends everything, and acknowledges what is short.
    func connect() -> [String] {
      outbox.connected(MQTTConnection(receiveMaximum: 10))
      var sent: [String] = []
      while let packet = outbox.next() {
        number += 1
        sent.append(packet.message.topic.string)
        outbox.sent(packet, as: number)
        if packet.message.payload.count < 500 { outbox.acknowledged(number) }
      }
      return sent
    }
    outbox.setState(topic("a"), [1], qos: .atLeastOnce)
    outbox.setState(topic("b"), large, qos: qos)
    outbox.setState(topic("c"), [1], qos: qos)
    #expect(connect() == ["a", "b", "c"])
    outbox.ended(mayBeOfAMessage: true)
    outbox.disconnected()
    #expect(connect() == ["a", "b"])
    outbox.ended(mayBeOfAMessage: true)
    outbox.disconnected()
    #expect(connect() == ["a", "c"])
    #expect(!outbox.isSizeSought)
    outbox.append(
      MQTTMessage(topic: topic("readings"), payload: large, undelivered: .returned, number: 7))
    #expect(outbox.next() == nil)
    let outcomes = outbox.takeOutcomes()
    #expect(outcomes.tooLarge.map(\.topic) == [topic("b"), topic("readings")])
    // With MQTT 3.1.1: the header of 3 bytes, the topic and its length, the packet identifier, the payload.
    let bytes = hasProperties ? [500, 500] : [508, 515]
    #expect(outcomes.tooLarge.map(\.reason) == bytes.map { MQTTRefusal.endsConnection(bytes: $0) })
    #expect(outcomes.completed == [7] && outcomes.rejected == 1 && outbox.rejected == 2)
  }

  /// The length of the rest of a packet takes one byte more from 128 on.
  @Test(arguments: [119, 120, 121, 122, 123]) func theLimitOfAPacketHoldsForEachQoS(_ count: Int) {
    var outbox = Outbox(limits: OutboxLimits(), hasProperties: false)
    let state = topic("b")
    outbox.setState(topic("a"), [1], qos: .atLeastOnce)
    outbox.setState(state, [UInt8](repeating: 46, count: count), qos: .atMostOnce)
    var sent: [Bool] = []
    for number: Int32 in 1...3 {
      outbox.connected(MQTTConnection())
      var topics: [TopicName] = []
      while let packet = outbox.next() {
        topics.append(packet.message.topic)
        outbox.sent(packet, as: number * 10 + Int32(topics.count))
        if packet.message.topic != state { outbox.acknowledged(number * 10 + Int32(topics.count)) }
      }
      sent.append(topics.contains(state))
      outbox.ended(mayBeOfAMessage: true)
      outbox.disconnected()
    }
    #expect(sent == [true, true, false])
  }

  /// With QoS 0 it ends no other connection.
  @Test func aMessageThatIsSentOnceIsNotLookedFor() {
    var outbox = Outbox(limits: OutboxLimits(), hasProperties: false)
    outbox.setState(topic("a"), [1], qos: .atLeastOnce)
    outbox.setState(topic("b"), [1, 2], qos: .atMostOnce)
    outbox.connected(MQTTConnection())
    outbox.append(
      MQTTMessage(topic: topic("e"), payload: [UInt8](repeating: 46, count: 500), qos: .atMostOnce))
    for number: Int32 in 1...3 {
      if let packet = outbox.next() { outbox.sent(packet, as: number) }
    }
    #expect(outbox.queuedCount == 0)
    outbox.acknowledged(1)
    outbox.ended(mayBeOfAMessage: true)
    outbox.disconnected()
    outbox.connected(MQTTConnection())
    for number: Int32 in 11...12 {
      let packet = outbox.next()
      #expect(packet?.message.qos == .atLeastOnce, "the larger state is looked for")
      if let packet { outbox.sent(packet, as: number) }
      outbox.acknowledged(number)
    }
    #expect(!outbox.isSizeSought && outbox.isEmpty)
    outbox.setState(topic("b"), [3], qos: .atMostOnce)
    let packet = outbox.next()
    #expect(packet?.message.qos == .atMostOnce)
  }
}
