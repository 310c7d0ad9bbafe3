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

  /// Retained state, which each connection sends again, and a message of the spool.
  @Test(arguments: [QoS.atLeastOnce, .atMostOnce]) func whatEndsTheConnectionIsRejected(_ qos: QoS) {
    var outbox = Outbox(limits: OutboxLimits())
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
    #expect(outcomes.tooLarge.allSatisfy { $0.reason == .endsConnection(bytes: 500) })
    #expect(outcomes.completed == [7] && outcomes.rejected == 1 && outbox.rejected == 2)
  }
}
