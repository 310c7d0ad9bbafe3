import Testing

@testable import MQTT

/// State is kept, sent on each connection, and cleared.
extension OutboxTests {
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
