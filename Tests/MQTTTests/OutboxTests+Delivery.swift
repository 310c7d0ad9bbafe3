import EventLoop
import Testing

@testable import MQTT

/// Messages are acknowledged or sent again, dropped, refused or returned.
extension OutboxTests {
  /// However late the others are.
  @Test func messageThatIsNeverAcknowledgedIsFound() {
    var outbox = outbox()
    let start = Moment.now
    func unacknowledged(at seconds: Int) -> TopicName? {
      outbox.unacknowledged(for: .seconds(60), at: start + .seconds(seconds))
    }
    outbox.connected(peer())
    outbox.append(message("1"))
    outbox.append(message("2"))
    #expect(sendAll(&outbox) == ["e=1", "e=2"])
    #expect(unacknowledged(at: 0) == nil)
    outbox.acknowledged(1)
    #expect(unacknowledged(at: 59) == nil)
    #expect(unacknowledged(at: 118) == nil)
    #expect(unacknowledged(at: 119) == topic("e"))
    outbox.disconnected()
    outbox.connected(peer())
    #expect(sendAll(&outbox, first: 2) == ["e=2"])
    #expect(unacknowledged(at: 119) == nil)
    outbox.acknowledged(2)
    #expect(unacknowledged(at: 300) == nil)
    // 65,535 packets later.
    outbox.append(message("2"))
    #expect(sendAll(&outbox, first: 2) == ["e=2"])
    #expect(unacknowledged(at: 400) == nil)
  }

  @Test func unacknowledgedMessagesAreSentAgainFirst() {
    var outbox = outbox()
    outbox.connected(peer(window: 3))
    for number in 1...5 { outbox.append(message("\(number)")) }
    #expect(sendAll(&outbox) == ["e=1", "e=2", "e=3"])
    #expect(outbox.acknowledged(2) != nil)
    outbox.disconnected()
    outbox.append(message("6"))
    outbox.connected(peer())
    outbox.append(message("7"))
    #expect(
      sendAll(&outbox, first: 10)
        == ["e=1", "e=3", "e=4", "e=5", "e=6", "e=7"])
  }

  @Test func secondOutageDoesNotMarkTwice() {
    var outbox = outbox()
    outbox.append(message("1"))
    for _ in 1...3 {
      outbox.connected(peer())
      #expect(sendAll(&outbox) == ["e=1"])
      outbox.disconnected()
    }
  }

  @Test func windowLimitsUnacknowledgedMessages() {
    var outbox = outbox()
    outbox.connected(peer(window: 2))
    for number in 1...4 { outbox.append(message("\(number)")) }
    #expect(sendAll(&outbox) == ["e=1", "e=2"])
    #expect(outbox.acknowledged(7) == nil)
    #expect(sendAll(&outbox).isEmpty)
    outbox.acknowledged(1)
    #expect(sendAll(&outbox, first: 3) == ["e=3"])
  }

  @Test func qosZeroIsDoneWhenSentAndIgnoresTheWindow() {
    var outbox = outbox()
    outbox.connected(peer(window: 1))
    for number in 1...3 { outbox.append(message("\(number)", qos: .atMostOnce)) }
    #expect(sendAll(&outbox).count == 3)
    #expect(outbox.isEmpty)
    outbox.disconnected()
    outbox.connected(peer())
    #expect(sendAll(&outbox).isEmpty)
  }

  @Test func oldestMessagesAreDroppedAndStateIsKept() {
    var outbox = outbox(messages: 3)
    outbox.setState(topic("a"), [], qos: .atMostOnce)
    for number in 1...5 { outbox.append(message("\(number)")) }
    outbox.setState(topic("b"), [], qos: .atMostOnce)
    #expect(outbox.lost == 2)
    outbox.connected(peer())
    #expect(sendAll(&outbox) == ["a=", "b=", "e=3", "e=4", "e=5"])
  }

  @Test func oldestMessagesAreDroppedAboveTheByteLimit() {
    var outbox = outbox(bytes: 25)
    for number in 1...5 { outbox.append(message("12345678\(number)")) }
    #expect(outbox.lost == 3)
    outbox.append(message(String(repeating: "x", count: 30)))
    #expect(outbox.lost == 4)
    #expect(outbox.queuedCount == 2)
  }

  @Test func fullQueueDropsUnacknowledgedMessagesFirst() {
    var outbox = outbox(messages: 2)
    outbox.connected(peer(window: 2))
    for number in 1...4 {
      outbox.append(message("\(number)"))
      if number <= 2 { _ = sendAll(&outbox, first: Int32(number)) }
    }
    outbox.disconnected()
    #expect(outbox.lost == 2)
    outbox.connected(peer())
    #expect(sendAll(&outbox) == ["e=3", "e=4"])
  }

  @Test func whatIsNotDeliveredIsKeptDroppedOrReturned() throws {
    var outbox = outbox(messages: 4)
    outbox.append(message("a", undelivered: .returned))
    outbox.append(message("b", undelivered: .dropped))
    outbox.append(message("c"))
    #expect(outbox.takeOutcomes().returned.map(\.payload) == [Array("a".utf8)], "without a connection")
    outbox.connected(peer())
    #expect(sendAll(&outbox) == ["e=c"])
    for text in ["1", "2", "3"] { outbox.append(message(text, undelivered: .returned)) }
    outbox.append(message("4", undelivered: .dropped))
    outbox.append(message("5"))
    #expect(outbox.takeOutcomes().returned.map(\.payload) == [Array("1".utf8)], "there are too many")
    #expect(outbox.next().map { outbox.sent($0, as: 9) } != nil)
    outbox.disconnected()
    #expect(outbox.takeOutcomes().returned.map(\.payload) == [Array("2".utf8), Array("3".utf8)])
    outbox.connected(peer())
    #expect(sendAll(&outbox) == ["e=c", "e=5"])
    #expect(outbox.lost == 0)
  }

  @Test func numbersAreReportedWhenMessagesAreAcknowledgedRejectedOrTooLarge() throws {
    var outbox = outbox()
    outbox.connected(peer(maximumPacket: 30))
    for number in 1...3 { outbox.append(message("\(number)", number: Int64(number))) }
    outbox.append(message("4", qos: .atMostOnce, number: 4))
    outbox.append(message(String(repeating: "5", count: 30), number: 5))
    #expect(sendAll(&outbox).count == 4)
    let outcomes = outbox.takeOutcomes()
    #expect(outcomes.completed == [4, 5] && outcomes.rejected == 1)
    #expect(outcomes.tooLarge.map(\.topic) == [topic("e")])
    outbox.acknowledged(2)
    outbox.acknowledged(1, .other("Topic name invalid"))
    let others = outbox.takeOutcomes()
    #expect(others.completed == [2, 1] && others.rejected == 1)
    outbox.disconnected()
    #expect(!outbox.hasOutcomes)
  }

  @Test func tooLargeMessageIsDroppedAndCounted() throws {
    // PUBLISH of MQTT 5, QoS 1: 1 + 1 bytes of header, 2 + 1 topic, 2 identifier, 1 properties, payload.
    var outbox = outbox()
    outbox.connected(peer(maximumPacket: 18))
    outbox.append(message("12345678901"))
    outbox.append(message("1234567890"))
    let packet = try next(&outbox)
    #expect(packet.message.payload.count == 10)
    #expect(packet.size == 18)
    #expect(outbox.rejected == 1)
    let tooLarge = outbox.takeOutcomes().tooLarge
    #expect(tooLarge.map(\.topic) == [topic("e")] && tooLarge.map(\.reason) == [.tooLarge(most: 18)])
    #expect(outbox.takeOutcomes().tooLarge.isEmpty)
  }

  @Test func refusedMessageIsDoneAndCounted() {
    var outbox = outbox()
    outbox.connected(peer())
    outbox.append(message("1"))
    _ = sendAll(&outbox)
    outbox.acknowledged(1, .notAuthorized)
    #expect(outbox.rejected == 1)
    #expect(outbox.isEmpty)
  }

  /// If it were given back, it would come again.
  @Test func messageLargerThanTheQueueIsDone() {
    var outbox = outbox(bytes: 25)
    outbox.connected(peer())
    let isFirstQueued = outbox.append(message("1", undelivered: .returned, number: 1))
    let large = message(String(repeating: "x", count: 25), undelivered: .returned, number: 2)
    let isLargeQueued = outbox.append(large)
    #expect(isFirstQueued && !isLargeQueued)
    let outcomes = outbox.takeOutcomes()
    #expect(outcomes.returned.isEmpty && outcomes.completed == [2] && outcomes.rejected == 1)
    #expect(outbox.lost == 1)
    #expect(sendAll(&outbox) == ["e=1"])
  }

  @Test(
    arguments: [
      (.quotaExceeded, true), (.notAuthorized, false), (.other("Topic name invalid"), false),
      (.tooLarge(most: nil), false),
    ] as [(MQTTRefusal, Bool)])
  func readingIsGivenBackIfOnlyAQuotaIsExceeded(_ refusal: MQTTRefusal, _ isReturned: Bool) throws {
    var outbox = outbox()
    outbox.connected(peer())
    outbox.append(message("1", undelivered: .returned, number: 7))
    _ = sendAll(&outbox)
    let answer = outbox.acknowledged(1, refusal)
    let returned: MQTTMessage? = if case .returned(let message) = answer?.fate { message } else { nil }
    #expect(answer?.topic == topic("e") && returned?.number == (isReturned ? 7 : nil))
    #expect(outbox.rejected == (isReturned ? 0 : 1) && outbox.isEmpty)
    #expect(outbox.takeOutcomes().completed == (isReturned ? [] : [7]))
  }
}
