import EventLoop
import Testing

@testable import MQTT

@Suite struct OutboxTests {
  private func topic(_ text: String) -> TopicName { TopicName(text)! }

  private func message(
    _ text: String, qos: QoS = .atLeastOnce, undelivered: MQTTMessage.Undelivered = .kept,
    number: Int64? = nil
  ) -> MQTTMessage {
    MQTTMessage(
      topic: topic("e"), payload: Array(text.utf8), qos: qos, undelivered: undelivered, number: number)
  }

  private func outbox(messages: Int = 10_000, bytes: Int = 1 << 20) -> Outbox {
    Outbox(limits: OutboxLimits(messages: messages, bytes: bytes, inFlight: 1000))
  }

  private func peer(window: UInt16 = 100, maximumPacket: UInt32? = nil) -> MQTTConnection {
    MQTTConnection(receiveMaximum: window, maximumPacketSize: maximumPacket)
  }

  /// The next packet to send.
  private func next(_ outbox: inout Outbox) throws -> Outbox.Packet {
    let packet = outbox.next()
    return try #require(packet)
  }

  /// Sends everything that may be sent, and returns it; packet identifiers count from `first`.
  private func sendAll(_ outbox: inout Outbox, first: Int32 = 1) -> [String] {
    var sent: [String] = []
    var identifier = first
    while let packet = outbox.next() {
      sent.append("\(packet.message.topic)=\(String(decoding: packet.message.payload, as: UTF8.self))")
      outbox.sent(packet, as: identifier)
      identifier += 1
    }
    return sent
  }

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

  @Test func repeatedStateIsSentEachTime() {
    var outbox = outbox()
    outbox.connected(peer())
    for _ in 1...3 {
      outbox.setState(topic("a"), Array("21".utf8), qos: .atLeastOnce)
      #expect(sendAll(&outbox) == ["a=21"])
    }
  }

  @Test func newConnectionBeginsWithAllStateInOrder() {
    var outbox = outbox()
    outbox.setState(topic("z"), Array("1".utf8), qos: .atMostOnce)
    outbox.setState(topic("a"), Array("2".utf8), qos: .atMostOnce)
    outbox.append(message("1"))
    outbox.setState(topic("z"), Array("3".utf8), qos: .atMostOnce)
    for _ in 1...2 {
      outbox.connected(peer())
      #expect(sendAll(&outbox).prefix(2) == ["z=3", "a=2"])
      outbox.disconnected()
    }
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

  @Test func clearedTopicIsSentUntilAcknowledged() {
    var outbox = outbox()
    outbox.setState(topic("a"), [1], qos: .atLeastOnce)
    outbox.clearState(topic("a"))
    outbox.connected(peer())
    #expect(sendAll(&outbox) == ["a="])
    outbox.disconnected()
    outbox.connected(peer())
    #expect(sendAll(&outbox) == ["a="])
    outbox.acknowledged(1)
    outbox.disconnected()
    outbox.connected(peer())
    #expect(sendAll(&outbox).isEmpty)
  }

  @Test func whatIsLeftOnATopicIsSentUntilAcknowledgedOrReplacedOnThisConnection() {
    var outbox = outbox()
    outbox.connected(peer())
    for name in ["a", "b", "c"] { outbox.clearState(topic(name), leaving: Array("offline".utf8)) }
    #expect(sendAll(&outbox) == ["a=offline", "b=offline", "c=offline"])
    outbox.acknowledged(1)
    outbox.disconnected()
    outbox.setState(topic("b"), Array("online".utf8), qos: .atLeastOnce)
    outbox.connected(peer())
    #expect(sendAll(&outbox) == ["b=online"])
  }

  @Test func aStateThatReplacesTheLastOneTakesItsOwnPlace() {
    var outbox = outbox()
    outbox.connected(peer())
    outbox.clearState(topic("a"), leaving: Array("offline".utf8))
    outbox.setState(topic("info"), Array("1".utf8), qos: .atLeastOnce)
    outbox.setState(topic("a"), Array("online".utf8), qos: .atLeastOnce)
    #expect(sendAll(&outbox) == ["info=1", "a=online"])
  }

  @Test func lateAcknowledgementOfAClearKeepsANewerValue() {
    var outbox = outbox()
    outbox.connected(peer())
    outbox.clearState(topic("a"))
    #expect(sendAll(&outbox, first: 1) == ["a="])
    outbox.setState(topic("a"), Array("2".utf8), qos: .atLeastOnce)
    #expect(sendAll(&outbox, first: 2) == ["a=2"])
    outbox.acknowledged(1)
    outbox.disconnected()
    outbox.connected(peer())
    #expect(sendAll(&outbox) == ["a=2"])
  }

  @Test func lateAcknowledgementOfAClearKeepsAStateThatWasReleasedAndSetAgain() {
    var outbox = outbox()
    outbox.connected(peer())
    outbox.clearState(topic("a"))
    #expect(sendAll(&outbox, first: 1) == ["a="])
    outbox.releaseState(topic("a"))
    outbox.setState(topic("a"), Array("2".utf8), qos: .atLeastOnce)
    outbox.acknowledged(1)
    outbox.disconnected()
    outbox.connected(peer())
    #expect(sendAll(&outbox) == ["a=2"])
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

  @Test func refusedMessageIsDoneAndCounted() {
    var outbox = outbox()
    outbox.connected(peer())
    outbox.append(message("1"))
    _ = sendAll(&outbox)
    outbox.acknowledged(1, .notAuthorized)
    #expect(outbox.rejected == 1)
    #expect(outbox.isEmpty)
  }

  @Test func refusedStateIsSentAgainUntilTheBrokerTakesIt() {
    var outbox = outbox()
    outbox.connected(peer())
    for name in ["a", "b", "c", "d"] { outbox.setState(topic(name), Array("1".utf8), qos: .atLeastOnce) }
    outbox.clearState(topic("e"))
    #expect(sendAll(&outbox) == ["a=1", "b=1", "c=1", "d=1", "e="])
    outbox.acknowledged(1, .notAuthorized)
    outbox.acknowledged(2, .quotaExceeded)
    outbox.acknowledged(3)
    outbox.acknowledged(4, .tooLarge(most: nil))
    outbox.acknowledged(5, .notAuthorized)
    #expect(outbox.rejected == 4 && outbox.isEmpty)
    outbox.setState(topic("b"), Array("2".utf8), qos: .atLeastOnce)
    outbox.queueRefusedState()
    #expect(sendAll(&outbox, first: 6) == ["b=2", "a=1", "e="])
    outbox.acknowledged(6)
    outbox.acknowledged(7, .notAuthorized)
    outbox.acknowledged(8)
    #expect(outbox.rejected == 4, "the same payload counts once")
    outbox.queueRefusedState()
    #expect(sendAll(&outbox, first: 9) == ["a=1"])
    outbox.acknowledged(9)
    outbox.queueRefusedState()
    #expect(outbox.isEmpty)
    outbox.disconnected()
    outbox.connected(peer())
    #expect(sendAll(&outbox) == ["a=1", "b=2", "c=1", "d=1"])
    outbox.setState(topic("a"), Array("2".utf8), qos: .atLeastOnce)
    #expect(sendAll(&outbox, first: 5) == ["a=2"])
    outbox.acknowledged(5, .notAuthorized)
    #expect(outbox.rejected == 5, "another payload")
  }

  /// Refused ones, and those that were not sent yet.
  @Test func deletionsBelowATopicAreReleased() {
    var outbox = outbox()
    outbox.connected(peer(window: 2))
    outbox.clearState(topic("m/old/a"))
    outbox.clearState(topic("m/older/a"))
    outbox.clearState(topic("m/old/b"))
    outbox.setState(topic("m/old/c"), Array("1".utf8), qos: .atLeastOnce)
    #expect(sendAll(&outbox) == ["m/old/a=", "m/older/a="])
    outbox.acknowledged(1, .quotaExceeded)
    outbox.acknowledged(2, .quotaExceeded)
    outbox.releaseDeletions(under: "m/old/")
    outbox.queueRefusedState()
    #expect(sendAll(&outbox, first: 3) == ["m/old/c=1", "m/older/a="])
    outbox.disconnected()
    outbox.connected(peer())
    #expect(sendAll(&outbox) == ["m/older/a=", "m/old/c=1"])
  }

  /// A state that was to be deleted is set again: it is no deletion any more.
  @Test func aStateThatIsSetAgainIsNotReleasedAsADeletion() {
    var outbox = outbox()
    outbox.clearState(topic("m/old/a"))
    outbox.setState(topic("m/old/a"), Array("1".utf8), qos: .atLeastOnce)
    outbox.releaseDeletions(under: "m/old/")
    outbox.connected(peer())
    #expect(sendAll(&outbox) == ["m/old/a=1"])
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

  /// Its place in the order is not what another topic left there.
  @Test func stateBehindAReleasedOneKeepsItsPlaceInTheQueue() {
    var outbox = outbox()
    outbox.connected(peer())
    outbox.setState(topic("old"), Array("1".utf8), qos: .atLeastOnce)
    outbox.releaseState(topic("old"))
    outbox.append(message("2"))
    outbox.setState(topic("new"), Array("3".utf8), qos: .atLeastOnce)
    #expect(sendAll(&outbox) == ["e=2", "new=3"])
  }
}
