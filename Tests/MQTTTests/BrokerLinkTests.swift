import EventLoop
import Testing

@testable import MQTT

@Suite struct BrokerLinkTests {
  private let start = Moment.now
  private let failure = MQTTError.unreachable(reason: "refused", errno: 111)

  private func link() -> BrokerLink {
    let options = MQTTOptions(host: "", clientID: "")
    return BrokerLink(
      connectTimeout: options.connectTimeout, backOff: options.backOff,
      refusalBackOff: options.refusalBackOff)
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
    #expect(link.dialled() == [])
    #expect(!link.isUp)
    #expect(link.accepted(at: start) == [.cancelTimer, .begin])
    #expect(link.isUp)
    #expect(link.accepted(at: start) == [], "a second CONNACK has no effect")
    #expect(link.start() == [])
  }

  private static let refusals: [MQTTError] = [
    .notAuthorised(reasonCode: 135, reason: ""), .refused(reasonCode: 137, reason: ""), .unsupportedProtocol,
    .tls(reason: ""), .invalidOption(""),
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
      #expect(link.timeout(in: .lookUp, at: start, jitter: 0.5) == [.setTimer(.seconds(10)), .dial])
    }
  }

  @Test func aStableConnectionResetsTheWait() {
    var link = connected()
    for since in [0, 29, 30] {
      let actions = link.failed(failure, at: start + .seconds(since), jitter: 1)
      let expected: Duration = [0: .seconds(1), 29: .seconds(2), 30: .seconds(1)][since]!
      #expect(actions == [.drop, .setTimer(expected), .reportLoss(failure, retryIn: expected)])
      _ = link.timeout(in: .lookUp, at: start, jitter: 1)
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
          _ = link.timeout(in: .lookUp, at: now, jitter: 1)
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
      link.timeout(in: .lookUp, at: start, jitter: 0) == [.reportFailure(.timedOut(.lookUp), retryIn: nil)])
    #expect(link.dialled() == [.setTimer(.seconds(10))], "connecting has its own time limit")
    #expect(link.accepted(at: start) == [.cancelTimer, .begin])
  }

  @Test(arguments: [MQTTError.Phase.connect, .tls, .connack])
  func anAttemptWithoutAnAnswerIsAbandoned(_ phase: MQTTError.Phase) {
    var link = link()
    _ = link.start()
    _ = link.dialled()
    #expect(
      link.timeout(in: phase, at: start, jitter: 1)
        == [.drop, .setTimer(.seconds(1)), .reportFailure(.timedOut(phase), retryIn: .seconds(1))])
  }

  @Test func stopWithoutAConnectionEndsAtOnce() {
    var idle = link()
    #expect(idle.stop(isWaiting: true, deadline: .seconds(5)) == [.cancelTimer, .drop, .finish])
    #expect(idle.start() == [])
    var waiting = link()
    _ = waiting.start()
    _ = waiting.failed(failure, at: start, jitter: 0)
    #expect(waiting.stop(isWaiting: true, deadline: .seconds(5)) == [.cancelTimer, .drop, .finish])
    var dialling = link()
    _ = dialling.start()
    #expect(dialling.stop(isWaiting: false, deadline: .seconds(5)) == [.cancelTimer, .drop, .finish])
    #expect(dialling.dialled() == [])
    #expect(dialling.failed(failure, at: start, jitter: 0) == [])
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
    #expect(link.timeout(in: .connack, at: start, jitter: 0) == [.cancelTimer, .drop, .finish])
  }

  @Test func stopEndsAtItsDeadline() {
    var link = connected()
    _ = link.stop(isWaiting: true, deadline: .seconds(5))
    // The will must be published, as the messages that replace it may not have been sent.
    #expect(link.timeout(in: .connack, at: start, jitter: 0) == [.cancelTimer, .drop, .finish])
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
