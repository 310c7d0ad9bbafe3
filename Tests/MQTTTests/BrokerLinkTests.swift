import EventLoop
import Testing

@testable import MQTT

@Suite struct BrokerLinkTests {
  private let start = Moment.now
  private let failure = MQTTError.unreachable(reason: "refused", errno: 111)

  private func link(_ brokers: [MQTTBroker] = [MQTTBroker(host: "one")]) -> BrokerLink {
    BrokerLink(MQTTOptions(brokers, clientID: ""))
  }

  private func connected() -> BrokerLink {
    var link = link()
    _ = link.start()
    _ = link.dialled()
    _ = link.accepted(at: start)
    return link
  }

  @Test func linkIsUpOnceAccepted() {
    var link = link()
    #expect(link.start() == [.setTimer(.seconds(10)), .dial])
    #expect(link.dialled() == [.setTimer(.seconds(10))], "however long the look-up took")
    #expect(!link.isUp)
    #expect(link.accepted(at: start) == [.cancelTimer, .begin])
    #expect(link.isUp)
    #expect(link.accepted(at: start) == [], "a second CONNACK has no effect")
    #expect(link.start() == [])
  }

  private static let refusals: [MQTTError] = [
    .notAuthorised(reasonCode: 135, reason: ""), .refused(reasonCode: 137, reason: ""), .unsupportedProtocol,
    .tls(reason: ""), .invalidOption(""), .unacknowledged(TopicName("e")!),
  ]

  private static let outages: [MQTTError] = [
    .unreachable(reason: "refused", errno: 111), .lookUpFailed(host: "", reason: ""), .timedOut(.connect),
    .keepAliveTimedOut, .connectionLost(reason: ""), .closedByBroker(reasonCode: 142, reason: ""),
    .protocolViolation(reason: ""), .file(path: "", reason: ""), .library(code: 1, reason: ""),
  ]

  /// A function of its own, because Swift 6.0.3 cannot compile the closures in the attribute.
  private static func waits() -> [(MQTTError, [Int])] {
    outages.map { ($0, [1, 2, 4, 4, 4]) } + refusals.map { ($0, [1, 2, 4, 8, 16, 30, 30]) }
  }

  @Test(arguments: waits())
  func waitsGrowWithRepeatedFailures(_ error: MQTTError, _ waits: [Int]) {
    var link = link()
    _ = link.start()
    for seconds in waits {
      let delay = Duration.seconds(seconds) * 0.5
      #expect(
        link.failed(error, at: start, jitter: 0.5)
          == [.drop, .setTimer(delay), .reportFailure(error, retryIn: delay)])
      #expect(link.state == .waiting)
      #expect(link.failed(error, at: start, jitter: 0.5) == [])
      #expect(link.timeout(jitter: 0.5) == [.setTimer(.seconds(10)), .dial])
    }
  }

  @Test func aStableConnectionResetsTheWait() {
    var link = connected()
    for since in [0, 29, 30] {
      let actions = link.failed(failure, at: start + .seconds(since), jitter: 1)
      let expected: Duration = [0: .seconds(1), 29: .seconds(2), 30: .seconds(1)][since]!
      #expect(actions == [.drop, .setTimer(expected), .reportLoss(failure, retryIn: expected)])
      _ = link.timeout(jitter: 1)
      _ = link.dialled()
      _ = link.accepted(at: start)
    }
  }

  enum Behaviour: CaseIterable { case refuses, dropsAtOnce, lasts }

  /// All orders in which a flapping broker may fail, with the longest back-off between attempts.
  @Test(arguments: Behaviour.allCases, Behaviour.allCases)
  func flappingBrokerIsReconnectedWithinFiveSeconds(_ first: Behaviour, _ second: Behaviour) {
    for third in Behaviour.allCases {
      var link = link()
      _ = link.start()
      var now = start
      var back = start
      for (index, seconds) in [0.1, 3, 29, 1.3, 0.7, 8, 15, 2.1].enumerated() {
        back = back + .seconds(seconds)
        while now < back {
          _ = link.dialled()
          switch [first, second, third][index % 3] {
          case .refuses: break
          case .dropsAtOnce: _ = link.accepted(at: now)
          case .lasts:
            _ = link.accepted(at: now)
            now = back
          }
          for case .setTimer(let delay) in link.failed(failure, at: now, jitter: 1) { now = now + delay }
          _ = link.timeout(jitter: 1)
        }
      }
      // The first attempt after the broker is back for good.
      #expect(back.duration(to: now) < .seconds(5), "\(third)")
    }
  }

  @Test func slowNameResolutionIsReportedAndAwaited() {
    var link = link()
    _ = link.start()
    #expect(
      link.timeout(jitter: 0) == [.reportFailure(.timedOut(.lookUp), retryIn: nil)])
    #expect(link.dialled() == [.setTimer(.seconds(10))], "connecting has its own time limit")
    #expect(link.accepted(at: start) == [.cancelTimer, .begin])
  }

  @Test(arguments: [MQTTError.Phase.connect, .tls, .connack])
  func anAttemptWithoutAnAnswerIsAbandoned(_ phase: MQTTError.Phase) {
    var link = link()
    _ = link.start()
    _ = link.dialled()
    #expect(
      link.failed(.timedOut(phase), at: start, jitter: 1)
        == [.drop, .setTimer(.seconds(1)), .reportFailure(.timedOut(phase), retryIn: .seconds(1))])
  }

  /// There is no wait, and nothing to report, until all have been tried.
  @Test func theNextAddressIsTriedAtOnce() {
    var link = link()
    _ = link.start()
    _ = link.dialled()
    #expect(link.isTrying)
    #expect(link.triesNextAddress() == [.drop, .setTimer(.seconds(10)), .dial])
    #expect(link.state == .dialling && link.isTrying)
    _ = link.stop(isWaiting: true, deadline: .seconds(5))
    #expect(link.isTrying && link.triesNextAddress() == [.drop, .dial])
    _ = link.dialled()
    #expect(link.timeout(jitter: 0) == [.cancelTimer, .drop, .finish])
    #expect(!connected().isTrying)
  }

  private static let three = ["one", "two", "three"].map { MQTTBroker(host: $0) }

  /// The wait is only between one round of all brokers and the next.
  @Test func brokersAreTriedInTurn() {
    var link = link(Self.three)
    _ = link.start()
    for round in [1, 2] {
      for (index, delay) in [Duration.zero, .zero, .seconds(round)].enumerated() {
        #expect(link.choice.index == index)
        #expect(
          link.failed(failure, at: start, jitter: 1)
            == [.drop, .setTimer(delay), .reportFailure(failure, retryIn: delay)])
        #expect(link.timeout(jitter: 1) == [.setTimer(.seconds(10)), .dial])
      }
    }
  }

  /// Connected to the second broker.
  private func failedOver() -> BrokerLink {
    var link = link(Self.three)
    _ = link.start()
    _ = link.failed(failure, at: start, jitter: 0)
    _ = link.timeout(jitter: 0)
    _ = link.dialled()
    return link
  }

  @Test func theFirstBrokerIsUsedAgainWhenItIsWellForAMinute() {
    var link = failedOver()
    #expect(link.accepted(at: start) == [.setTimer(.seconds(15)), .begin])
    #expect(link.timeout(jitter: 0.5) == [.setTimer(.seconds(15)), .probe])
    let probes = [(15, true), (30, true), (45, false), (60, true), (90, true), (119, true)]
    for (seconds, isWell) in probes {
      #expect(link.probed(isWell: isWell, at: start + .seconds(seconds), isInFlight: false) == [])
    }
    #expect(
      link.probed(isWell: true, at: start + .seconds(120), isInFlight: false) == [
        .setTimer(.seconds(1)), .disconnect,
      ])
    #expect(link.probed(isWell: true, at: start + .seconds(121), isInFlight: false) == [], "it is on its way")
    #expect(
      link.failed(.connectionLost(reason: ""), at: start + .seconds(120), jitter: 1)
        == [.drop, .setTimer(.zero), .reportEnd])
    #expect(link.choice.index == 0)
    _ = link.timeout(jitter: 0)
    _ = link.dialled()
    #expect(link.accepted(at: start) == [.cancelTimer, .begin], "the first is not probed")
  }

  /// A broker that cannot send an acknowledgement to a closed socket publishes the will.
  @Test func acknowledgementsAreAwaitedBeforeDisconnect() {
    var link = connected()
    #expect(link.acknowledged() == [])
    #expect(link.reconnect(after: .seconds(10), isInFlight: true) == [.setTimer(.seconds(1))])
    #expect(!link.isUp)
    var (late, lost, stopped) = (link, link, link)
    #expect(link.acknowledged() == [.setTimer(.seconds(1)), .disconnect])
    #expect(link.acknowledged() == [], "once")
    #expect(late.timeout(jitter: 0) == [.setTimer(.seconds(1)), .disconnect])
    #expect(
      lost.failed(.connectionLost(reason: ""), at: start, jitter: 0)
        == [.drop, .setTimer(.seconds(10)), .reportEnd])
    #expect(stopped.stop(isWaiting: true, deadline: .seconds(2)) == [.setTimer(.seconds(2))])
    #expect(stopped.drained() == [.disconnect])
  }

  /// One that accepts and then closes the connection does not keep the client from the others.
  @Test(arguments: [(29, 2), (30, 0)])
  func aLostConnectionIsMadeAgainByTheFirstIfItHadLasted(_ seconds: Int, _ next: Int) {
    var link = failedOver()
    _ = link.accepted(at: start)
    let actions = link.failed(failure, at: start + .seconds(seconds), jitter: 1)
    // All clients of a broker lose it at the same time.
    #expect(actions == [.drop, .setTimer(.seconds(1)), .reportLoss(failure, retryIn: .seconds(1))])
    #expect(link.choice.index == next)
  }

  /// The connections last for a minute, as the broker answers pings.
  @Test func brokerThatDoesNotAcknowledgeIsPassedOver() {
    var link = failedOver()
    let error = MQTTError.unacknowledged(TopicName("e")!)
    for (next, seconds) in [(2, 1), (0, 2), (1, 4)] {
      _ = link.accepted(at: start)
      let delay = Duration.seconds(seconds)
      #expect(
        link.failed(error, at: start + .seconds(60), jitter: 1)
          == [.drop, .setTimer(delay), .reportLoss(error, retryIn: delay)])
      #expect(link.choice.index == next)
      _ = link.timeout(jitter: 0)
      _ = link.dialled()
    }
  }

  @Test func stopWithoutAConnectionEndsAtOnce() {
    var idle = link()
    #expect(idle.stop(isWaiting: true, deadline: .seconds(5)) == [.cancelTimer, .drop, .finish])
    #expect(idle.start() == [])
    var waiting = link()
    _ = waiting.start()
    _ = waiting.failed(failure, at: start, jitter: 0)
    #expect(waiting.stop(isWaiting: false, deadline: .seconds(5)) == [.cancelTimer, .drop, .finish])
    var dialling = link()
    _ = dialling.start()
    #expect(dialling.stop(isWaiting: false, deadline: .seconds(5)) == [.cancelTimer, .drop, .finish])
    #expect(dialling.dialled() == [])
    #expect(dialling.failed(failure, at: start, jitter: 0) == [])
  }

  /// The broker may retain `online`, as nothing has ended the last connection but DISCONNECT.
  @Test func stopBetweenConnectionsMakesOneMore() {
    var waiting = link()
    _ = waiting.start()
    _ = waiting.failed(failure, at: start, jitter: 0)
    #expect(waiting.stop(isWaiting: true, deadline: .seconds(5)) == [.setTimer(.seconds(5)), .dial])
    var failing = waiting
    #expect(failing.failed(failure, at: start, jitter: 0) == [.cancelTimer, .drop, .finish])
    #expect(waiting.dialled() == [])
    #expect(waiting.accepted(at: start) == [.begin])
    #expect(waiting.drained() == [.disconnect])

    var leaving = connected()
    _ = leaving.reconnect(after: .seconds(10), isInFlight: false)
    #expect(leaving.stop(isWaiting: true, deadline: .seconds(5)) == [])
    #expect(
      leaving.failed(.connectionLost(reason: ""), at: start, jitter: 0)
        == [.drop, .reportEnd, .setTimer(.seconds(5)), .dial])
    #expect(leaving.timeout(jitter: 0) == [.cancelTimer, .drop, .finish])
  }

  @Test func stopSendsDisconnect() {
    var link = connected()
    #expect(link.stop(isWaiting: false, deadline: .seconds(5)) == [.setTimer(.seconds(5)), .disconnect])
    #expect(link.failed(failure, at: start, jitter: 0) == [.cancelTimer, .drop, .finish])
    #expect(link.state == .stopped)
  }

  @Test func stopWaitsForQueuedMessages() {
    var link = connected()
    #expect(link.stop(isWaiting: true, deadline: .seconds(5)) == [.setTimer(.seconds(5))])
    #expect(link.isUp)
    #expect(link.stop(isWaiting: true, deadline: .seconds(5)) == [])
    #expect(link.drained() == [.disconnect])
    #expect(link.timeout(jitter: 0) == [.cancelTimer, .drop, .finish])
  }

  @Test func stopEndsAtItsDeadline() {
    var link = connected()
    _ = link.stop(isWaiting: true, deadline: .seconds(5))
    // The will must be published, as the messages that replace it may not have been sent.
    #expect(link.timeout(jitter: 0) == [.cancelTimer, .drop, .finish])
  }

  @Test func stopDuringAnAttemptWaitsForItsEnd() {
    var link = link()
    _ = link.start()
    #expect(link.stop(isWaiting: true, deadline: .seconds(5)) == [.setTimer(.seconds(5))])
    #expect(link.dialled() == [])
    #expect(link.accepted(at: start) == [.begin])
    #expect(link.drained() == [.disconnect])

    var failing = self.link()
    _ = failing.start()
    _ = failing.stop(isWaiting: true, deadline: .seconds(5))
    #expect(failing.failed(failure, at: start, jitter: 0) == [.cancelTimer, .drop, .finish])
  }

  @Test func drainedHasNoEffectUnlessStopping() {
    var link = connected()
    #expect(link.drained() == [])
  }

  @Test func abandonEndsTheLink() {
    var link = connected()
    #expect(link.abandon() == [.cancelTimer, .drop, .finish])
    #expect(link.abandon() == [])
  }
}
