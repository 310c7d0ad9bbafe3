import BlueZ
import Configuration
import EventLoop
import TestSupport
import Testing

@testable import Devices

@Suite struct PeripheralSessionTests {
  private typealias Session = PeripheralSession
  private let start = Moment.now
  private func at(_ seconds: Int) -> Moment { start + .seconds(seconds) }

  // MARK: Sessions in each state

  private var absent: Session { Session(now: start) }

  private var connecting: Session {
    var session = absent
    #expect(session.seen(inRange: true) == [.connect])
    return session
  }

  private var subscribing: Session {
    var session = connecting
    #expect(session.connected(.connected) == [.subscribe])
    return session
  }

  private var live: Session {
    var session = subscribing
    #expect(session.subscribed(nil, at: start) == [.online, .setTimer(.seconds(30))])
    return session
  }

  private var waiting: Session {
    var session = subscribing
    expectTimer(session.disconnected(at: start), .seconds(1))
    return session
  }

  private var leaving: Session {
    var session = live
    #expect(session.unresponsive() == [.offline, .report(.unresponsive), .cancelTimer, .disconnect])
    return session
  }

  private var stopped: Session {
    var session = absent
    _ = session.stop()
    return session
  }

  /// The last action sets a timer of `full` length, less the jitter of at most three tenths.
  private func expectTimer(
    _ actions: [Session.Action], _ full: Duration, after others: [Session.Action] = [],
    _ location: SourceLocation = #_sourceLocation
  ) {
    guard case .setTimer(let delay)? = actions.last else {
      Issue.record("no timer in \(actions)", sourceLocation: location)
      return
    }
    #expect(delay <= full && delay >= full * 0.7 - .milliseconds(1), sourceLocation: location)
    #expect(Array(actions.dropLast()) == others, sourceLocation: location)
  }

  // MARK: Connecting

  @Test func connectsWhenInRange() {
    var session = absent
    #expect(session.seen(inRange: false) == [])
    #expect(session.state == .absent)
    #expect(session.seen(inRange: true) == [.connect])
    // Seen again during the attempt: there is no second one.
    #expect(session.seen(inRange: true) == [])
    #expect(session.connected(.connected) == [.subscribe])
    #expect(session.subscribed(nil, at: start) == [.online, .setTimer(.seconds(30))])
    #expect(session.state == .live)
    #expect(session.seen(inRange: true) == [])
    #expect(session.seen(inRange: false) == [])
    #expect(session.state == .live)
  }

  @Test func failedConnectIsRetriedWithBackOff() {
    var session = connecting
    for seconds in [1, 2, 4, 8, 16, 32, 60, 60, 60] {
      let actions = session.connected(.failed(.transient("le-connection-abort-by-local")))
      // Reported once.
      expectTimer(
        actions, .seconds(seconds),
        after: seconds == 1 ? [.report(.connectFailed("le-connection-abort-by-local"))] : [])
      #expect(session.state == .waiting)
      #expect(session.timer(at: start) == [.connect])
    }
    // Another trouble is reported again.
    #expect(
      session.connected(.failed(.timedOut("Connect: no answer in time"))).first
        == .report(.connectFailed("Connect: no answer in time")))
  }

  /// It is probably switched off.
  @Test func bondedPeripheralThatIsNotReceivedIsTriedLessAndLessOften() {
    let timeout = CentralError.timedOut("Connect: no answer in time")
    var session = connecting
    session.seen(isPaired: true)
    #expect(session.seen(isReceived: false) == [])
    for (index, seconds) in [60, 120, 240, 480, 600, 600].enumerated() {
      let actions = session.connected(.failed(timeout))
      expectTimer(
        actions, .seconds(seconds), after: index == 0 ? [.report(.connectFailed(timeout.description))] : [])
      #expect(session.seen(isReceived: false) == [])
      #expect(session.timer(at: start) == [.connect])
    }
    _ = session.connected(.failed(timeout))
    // Back: from now on as any other.
    expectTimer(session.seen(isReceived: true), .seconds(1))
    #expect(session.seen(isReceived: true) == [])
    #expect(session.timer(at: start) == [.connect])
    expectTimer(session.connected(.failed(timeout)), .seconds(2))
    // Away again, and away from the beginning.
    #expect(session.timer(at: start) == [.connect])
    _ = session.seen(isReceived: false)
    expectTimer(session.connected(.failed(timeout)), .seconds(60))
  }

  @Test func lossOfTheAdapterResetsTheBackOff() {
    var session = connecting
    for seconds in [1, 2, 4, 8, 16] {
      expectTimer(
        session.connected(.failed(.disconnected)), .seconds(seconds),
        after: seconds == 1 ? [.report(.connectFailed("the link is gone"))] : [])
      #expect(session.timer(at: start) == [.connect])
    }
    _ = session.connected(.connected)
    _ = session.subscribed(nil, at: start)
    #expect(session.adapterWentAway() == [.offline, .cancelTimer])
    #expect(session.seen(inRange: true) == [.connect])
    expectTimer(
      session.connected(.failed(.disconnected)), .seconds(1),
      after: [.report(.connectFailed("the link is gone"))])
  }

  @Test func lastErrorSaysWhyThereIsNoLink() {
    var session = live
    #expect(session.lastError == nil)
    _ = session.disconnected(at: start)
    #expect(session.lastError == .linkEnded(nil))
    // Some versions of bluetoothd give a reason, once.
    let (first, second) = (session.linkEnded(because: "timeout"), session.linkEnded(because: "other"))
    #expect(first && !second)
    #expect(session.lastError == .linkEnded("timeout"))
    // For the findings only what lasts counts.
    #expect(session.lastTrouble == nil)
    _ = session.timer(at: start)
    _ = session.connected(.failed(.transient("aborted")))
    #expect(session.lastError == .connectFailed("aborted") && session.lastTrouble == session.lastError)
    _ = session.linkEnded(because: "other")
    #expect(session.lastError == .connectFailed("aborted"))
    _ = session.timer(at: start)
    _ = session.connected(.connected)
    _ = session.subscribed(nil, at: start)
    #expect(session.lastError == nil)
  }

  @Test func peripheralThatIsRefusedIsTriedLessAndLessOften() {
    var session = connecting
    for (index, seconds) in [60, 120, 240].enumerated() {
      expectTimer(
        session.connected(.failed(.refused("too large"))), .seconds(seconds),
        after: index == 0 ? [.report(.unusable("too large"))] : [])
      #expect(session.timer(at: start) == [.connect])
    }
  }

  @Test func bondedPeripheralIsGivenTimeToBeReceivedFirst() {
    var session = absent
    session.seen(isPaired: true)
    #expect(session.seen(isReceived: false) == [])
    #expect(session.seen(inRange: true) == [.setTimer(.seconds(10))])
    var received = session
    expectTimer(received.seen(isReceived: true), .seconds(1))
    #expect(session.timer(at: start) == [.connect])
  }

  @Test(arguments: [CentralError.gone, .unavailable])
  func absentPeripheralIsAwaitedWithoutATimer(error: CentralError) {
    var session = connecting
    _ = session.seen(inRange: false)
    #expect(session.connected(.failed(error)) == [])
    #expect(session.state == .absent)
    #expect(session.seen(inRange: true) == [.connect])
  }

  @Test(arguments: [CentralError.gone, .unavailable])
  func peripheralSeenAgainDuringTheFailureIsRetried(error: CentralError) {
    var session = connecting
    _ = session.seen(inRange: false)
    #expect(session.seen(inRange: true) == [])
    expectTimer(session.connected(.failed(error)), .seconds(1))
    #expect(session.timer(at: start) == [.connect])
  }

  @Test func aFailedSubscriptionEndsTheLink() {
    var session = subscribing
    let actions = session.subscribed(.refused("NotSupported"), at: start)
    #expect(actions == [.report(.subscribeFailed("NotSupported")), .cancelTimer, .disconnect])
    #expect(session.state == .leaving)
    expectTimer(session.disconnectCompleted(), .seconds(1))
  }

  @Test func linkLostWhileSubscribingIsRetried() {
    var session = subscribing
    expectTimer(session.disconnected(at: start), .seconds(1))
    // The operation that failed because of it reports it a moment later.
    #expect(session.subscribed(.disconnected, at: start) == [])
    #expect(session.state == .waiting)
    #expect(session.timer(at: start) == [.connect])
  }

  @Test func unsuitablePeripheralIsRetriedLessAndLessOften() {
    var session = connecting
    #expect(session.connected(.unsuitable) == [.setTimer(.seconds(3))])
    // bluetoothd may have cached the services of an earlier program.
    #expect(session.timer(at: start) == [.cancelTimer, .forget])
    expectConnectsAtOnce(&session)
    for minutes in [1, 2, 4, 8, 16, 32, 60, 60] {
      #expect(session.connected(.unsuitable) == [.setTimer(.seconds(3))])
      let actions = session.timer(at: start)
      #expect(actions == (minutes == 1 ? [.report(.unsuitable)] : []) + [.cancelTimer, .disconnect])
      #expect(session.state == .leaving)
      expectTimer(session.disconnectCompleted(), .seconds(60 * minutes))
      // Coming into range does not shorten the back-off.
      #expect(session.seen(inRange: true) == [])
      #expect(session.timer(at: start) == [.connect])
    }
    // It has another program now.
    #expect(session.connected(.connected) == [.subscribe])
    _ = session.subscribed(nil, at: start)
    _ = session.disconnected(at: at(100))
    _ = session.timer(at: at(101))
    _ = session.connected(.unsuitable)
    #expect(session.timer(at: at(103)) == [.cancelTimer, .forget])
    expectConnectsAtOnce(&session)
    _ = session.connected(.unsuitable)
    #expect(session.timer(at: at(104)).first == .report(.unsuitable))
    expectTimer(session.disconnectCompleted(), .seconds(60))
  }

  @Test func servicesAddedAMomentLaterAreUsedAtOnce() {
    var session = connecting
    _ = session.connected(.unsuitable)
    #expect(session.awaitsServices)
    #expect(session.connected(.connected) == [.subscribe])
    // The timer has not been cancelled.
    #expect(session.timer(at: at(3)) == [])
    #expect(session.subscribed(nil, at: at(3)).first == .online)
  }

  @Test func linkThatEndsBeforeTheServicesAppearIsRetriedLater() {
    var session = connecting
    session.seen(isPaired: true)
    _ = session.connected(.unsuitable)
    expectTimer(session.disconnected(at: start), .seconds(60), after: [.report(.unsuitable)])
    #expect(!session.awaitsServices)
    #expect(session.timer(at: at(60)) == [.connect])
    // The new attempt ends only with its result.
    #expect(session.disconnected(at: at(60)) == [])
    #expect(session.timer(at: at(61)) == [])
  }

  @Test func reconnectRequestDoesNotWaitForServices() {
    var session = connecting
    session.seen(isPaired: true)
    _ = session.connected(.unsuitable)
    #expect(session.reconnect() == [.cancelTimer, .disconnect])
    expectTimer(session.disconnectCompleted(), .zero)
  }

  @Test func pairedPeripheralIsNotRemovedForItsServices() {
    var session = connecting
    session.seen(isPaired: true)
    _ = session.connected(.unsuitable)
    #expect(session.timer(at: at(3)) == [.report(.unsuitable), .cancelTimer, .disconnect])
  }

  @Test func adapterLossEndsTheWaitForServices() {
    var session = connecting
    _ = session.connected(.unsuitable)
    #expect(session.adapterWentAway() == [.cancelTimer])
    #expect(session.state == .absent)
    #expect(session.disconnected(at: start) == [])
    #expect(session.seen(inRange: true) == [.connect])
  }

  @Test func silentPeripheralIsRemovedOnceInARow() {
    var session = live
    #expect(session.timer(at: at(30)) == [.offline, .report(.silent(.seconds(30))), .cancelTimer, .forget])
    expectTimer(session.disconnectCompleted(), .seconds(1))
    _ = session.timer(at: at(31))
    _ = session.connected(.connected)
    _ = session.subscribed(nil, at: at(32))
    #expect(session.timer(at: at(62)).suffix(2) == [.cancelTimer, .disconnect])
    _ = session.disconnectCompleted()
    _ = session.timer(at: at(70))
    // A link with a reading ends the row.
    _ = session.connected(.connected)
    session.received(at: at(71))
    _ = session.subscribed(nil, at: at(71))
    #expect(session.timer(at: at(101)).suffix(2) == [.cancelTimer, .disconnect])
    _ = session.disconnectCompleted()
    _ = session.timer(at: at(110))
    _ = session.connected(.connected)
    _ = session.subscribed(nil, at: at(111))
    #expect(session.timer(at: at(141)).last == .forget)
  }

  @Test func polledPeripheralMayBeSilentForThreeIntervals() {
    var session = Session(now: start, interval: .seconds(60))
    _ = session.seen(inRange: true)
    _ = session.connected(.connected)
    session.received(at: start)
    #expect(session.subscribed(nil, at: start) == [.online, .setTimer(.seconds(180))])
  }

  /// As on a Raspberry Pi whose WLAN disturbs Bluetooth.
  @Test func failingConnectsDoNotRemoveABond() {
    var session = connecting
    session.setPairing(.always)
    session.seen(isPaired: true)
    for error in [
      CentralError.keyMissing, .transient("abort"), .transient("abort"), .keyMissing, .transient("abort"),
    ] {
      #expect(session.connected(.failed(error)).last != .forget)
      _ = session.timer(at: start)
    }
    #expect(session.connected(.failed(.keyMissing)).last == .forget)
  }

  @Test func peripheralThatRefusesTwoSubscriptionsIsRemovedOnce() {
    var session = connecting
    for last in [Session.Action.disconnect, .forget, .disconnect, .disconnect] {
      _ = session.connected(.connected)
      #expect(session.subscribed(.refused("NotPermitted"), at: start).suffix(2) == [.cancelTimer, last])
      _ = session.disconnectCompleted()
      _ = session.timer(at: start)
    }
  }

  // MARK: Pairing

  private func expectConnectsAtOnce(
    _ session: inout Session, _ location: SourceLocation = #_sourceLocation
  ) {
    #expect(session.disconnectCompleted() == [.setTimer(.zero)], sourceLocation: location)
    #expect(session.timer(at: start) == [.connect], sourceLocation: location)
  }

  private func connecting(_ mode: Configuration.PairingMode) -> Session {
    var session = Session(now: start, pairing: mode)
    _ = session.seen(inRange: true)
    return session
  }

  @Test func configuredPairingPrecedesUse() {
    var session = connecting(.always)
    #expect(session.pairing.pairsFirst)
    session.seen(isPaired: true)
    #expect(!session.pairing.pairsFirst)
    #expect(session.connected(.connected) == [.subscribe])
    #expect(!connecting(.never).pairing.pairsFirst)
    #expect(!connecting(.ask).pairing.pairsFirst)
  }

  @Test func failedPairingIsRetriedWithBackOff() {
    var session = connecting(.always)
    for seconds in [1, 2, 4] {
      expectTimer(
        session.connected(.notPaired(.refused)), .seconds(seconds),
        after: seconds == 1 ? [.report(.pairingFailed(PairingError.refused.description))] : [])
      #expect(session.timer(at: start) == [.connect])
      #expect(session.pairing.pairsFirst)
    }
  }

  @Test func aFailedRequestToPairIsNotRepeated() {
    var session = waiting
    #expect(session.pair(.ask) == [.cancelTimer, .connect])
    #expect(session.pairing.pairsFirst)
    expectTimer(
      session.connected(.notPaired(.passkeyMissing)), .seconds(60), after: [.report(.wantsPairing)])
    #expect(session.timer(at: start) == [.connect])
    #expect(!session.pairing.pairsFirst)
  }

  @Test func linkThatEndsOnEveryReadIsReportedOnce() {
    var session = connecting
    for number in 1...7 {
      _ = session.connected(.connected)
      #expect((session.disconnected(at: start).first == .report(.endsLinks)) == (number == 5))
      _ = session.timer(at: start)
    }
  }

  @Test func lostBondIsReplacedIfPairingIsOn() {
    var session = connecting(.always)
    session.seen(isPaired: true)
    for _ in 0..<2 {
      #expect(session.connected(.failed(.keyMissing)).last != .forget)
      _ = session.timer(at: start)
    }
    let actions = session.connected(.failed(.keyMissing))
    #expect(actions == [.report(.bondLost(pairsAgain: true)), .cancelTimer, .forget])
    expectConnectsAtOnce(&session)
    #expect(session.pairing.pairsFirst)
    session.seen(isPaired: true)
    #expect(session.connected(.connected) == [.subscribe])
  }

  @Test func lostBondIsReplacedOnlyByRequestOtherwise() {
    var session = connecting(.ask)
    session.seen(isPaired: true)
    for _ in 0..<2 {
      _ = session.connected(.failed(.keyMissing))
      _ = session.timer(at: start)
    }
    expectTimer(
      session.connected(.failed(.keyMissing)), .seconds(60), after: [.report(.bondLost(pairsAgain: false))])
    // However often it happens.
    for minutes in [2, 4, 8] {
      #expect(session.timer(at: start) == [.connect])
      #expect(!session.pairing.pairsFirst)
      expectTimer(session.connected(.failed(.keyMissing)), .seconds(60 * minutes))
    }
    // Until a user wants to pair.
    #expect(session.pair(.ask) == [.cancelTimer, .forget])
    expectConnectsAtOnce(&session)
    #expect(session.pairing.pairsFirst)
  }

  @Test func otherFailuresKeepTheBond() {
    var session = connecting(.always)
    session.seen(isPaired: true)
    for _ in 0..<10 {
      for error in [CentralError.keyMissing, .keyMissing, .disconnected] {
        #expect(session.connected(.failed(error)).last != .forget)
        _ = session.timer(at: start)
      }
    }
  }

  @Test func pairRequestUsesANewLink() {
    var session = live
    #expect(session.pair(.ask) == [.offline, .cancelTimer, .disconnect])
    expectConnectsAtOnce(&session)
    #expect(session.pairing.pairsFirst)
    session = waiting
    #expect(session.pair(.ask) == [.cancelTimer, .connect])
    #expect(session.pairing.pairsFirst)
    // While connecting: the link is ended as soon as it is up.
    session = connecting
    #expect(session.pair(.ask) == [])
    #expect(session.connected(.connected) == [.cancelTimer, .disconnect])
    expectConnectsAtOnce(&session)
    #expect(session.pairing.pairsFirst)
  }

  @Test func unpairRequestRemovesThePeripheral() {
    var session = live
    session.seen(isPaired: true)
    #expect(session.unpair() == [.offline, .cancelTimer, .forget])
    expectTimer(session.disconnectCompleted(), .seconds(1))
    session = connecting(.always)
    #expect(session.unpair() == [.forget])
    #expect(session.disconnectCompleted() == [])
    expectTimer(
      session.connected(.failed(.disconnected)), .seconds(1),
      after: [.report(.connectFailed("the link is gone"))])
    #expect(!session.pairing.pairsFirst)
  }

  /// If a peripheral requires pairing, bluetoothd 5.66 never answers a read, and 5.82 fails it at once.
  @Test(arguments: [CentralError.timedOut("ReadValue: no answer in time"), .unlikely("Failed: 0x0e")])
  func unreadableOnTwoLinksWantsPairing(error: CentralError) {
    var session = connecting(.ask)
    _ = session.connected(.connected)
    var actions = session.unreadable(error)
    #expect(actions == [.report(.subscribeFailed(error.description)), .cancelTimer, .disconnect])
    expectTimer(session.disconnectCompleted(), .seconds(1))
    for minutes in [1, 2, 4] {
      #expect(session.timer(at: start) == [.connect])
      _ = session.connected(.connected)
      actions = session.unreadable(error)
      #expect(actions == (minutes == 1 ? [.report(.wantsPairing)] : []) + [.cancelTimer, .disconnect])
      expectTimer(session.disconnectCompleted(), .seconds(60 * minutes))
      #expect(!session.pairing.pairsFirst)
    }
    // It has another program now, which can be read.
    _ = session.timer(at: start)
    _ = session.connected(.connected)
    _ = session.subscribed(nil, at: start)
    _ = session.disconnected(at: at(100))
    _ = session.timer(at: at(101))
    _ = session.connected(.connected)
    #expect(session.unreadable(error).first == .report(.subscribeFailed(error.description)))
    // A second failure on the same link is ignored.
    #expect(session.unreadable(error) == [])
  }

  @Test func refusedPeripheralIsTriedLessAndLessOften() {
    for result in [Session.Connection.failed(.refused("HID")), .notPaired(.failed(.refused("HID")))] {
      var session = connecting(.always)
      for minutes in [1, 2, 4] {
        let reports: [Session.Action] = minutes == 1 ? [.report(.unusable("HID"))] : []
        expectTimer(session.connected(result), .seconds(60 * minutes), after: reports)
        #expect(session.timer(at: start) == [.connect])
      }
    }
  }

  @Test func bondOfAPeripheralThatBecomesUnusableIsDeleted() {
    for isPaired in [true, false] {
      var session = live
      session.seen(isPaired: isPaired)
      let end = isPaired ? Session.Action.forget : .disconnect
      #expect(session.becameUnusable("HID") == [.offline, .report(.unusable("HID")), .cancelTimer, end])
      // It is told again before the link has ended.
      #expect(session.becameUnusable("HID") == [])
      expectTimer(session.disconnectCompleted(), .seconds(60))
    }
  }

  // MARK: The end of a link

  @Test func outOfRangePeripheralIsAbsentAfterTheBackOff() {
    var session = waiting
    _ = session.seen(inRange: false)
    #expect(session.state == .waiting)
    #expect(session.timer(at: start) == [])
    #expect(session.state == .absent)
    #expect(session.seen(inRange: true) == [.connect])
  }

  @Test func comingIntoRangeDoesNotShortenTheBackOff() {
    var session = waiting
    _ = session.seen(inRange: false)
    #expect(session.seen(inRange: true) == [])
    #expect(session.timer(at: start) == [.connect])
  }

  @Test func onlyALongLinkResetsTheBackOff() {
    var session = connecting
    for seconds in [1, 2, 4] {
      _ = session.connected(.connected)
      _ = session.subscribed(nil, at: start)
      expectTimer(session.disconnected(at: at(29)), .seconds(seconds), after: [.offline])
      _ = session.timer(at: at(40))
    }
    _ = session.connected(.connected)
    _ = session.subscribed(nil, at: start)
    expectTimer(session.disconnected(at: at(30)), .seconds(1), after: [.offline])
    _ = session.timer(at: at(40))
    // A trouble that had ended is reported again.
    #expect(session.connected(.failed(.transient("x"))).first == .report(.connectFailed("x")))
  }

  @Test func takeoversBetweenTwoGatewaysBecomeLessFrequent() {
    var session = connecting
    func handedOver(afterSeconds seconds: Int) -> [Session.Action] {
      _ = session.connected(.connected)
      _ = session.subscribed(nil, at: start)
      session.received(at: at(seconds))
      #expect(session.handedOver() == [.offline, .cancelTimer, .disconnect])
      defer { _ = session.timer(at: at(seconds)) }
      return session.disconnectCompleted()
    }
    for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
      expectTimer(handedOver(afterSeconds: 599), .seconds(seconds))
    }
    expectTimer(handedOver(afterSeconds: 600), .seconds(1))
  }

  @Test func longLinkThatTimedOutResetsTheBackOff() {
    var session = connecting
    for _ in 0..<5 {
      _ = session.connected(.failed(.transient("x")))
      _ = session.timer(at: start)
    }
    _ = session.connected(.connected)
    _ = session.subscribed(nil, at: start)
    session.received(at: at(3600))
    #expect(session.timer(at: at(3630)).contains(.disconnect))
    expectTimer(session.disconnectCompleted(), .seconds(1))
  }

  @Test func linkWithoutReadingsDoesNotResetTheBackOff() {
    var session = connecting
    session.seen(isPaired: true)
    for seconds in [1, 2, 4, 8] {
      _ = session.connected(.connected)
      _ = session.subscribed(nil, at: start)
      #expect(session.timer(at: at(30)).contains(.disconnect))
      expectTimer(session.disconnectCompleted(), .seconds(seconds))
      _ = session.timer(at: at(60))
    }
  }

  @Test func unansweredOperationEndsTheLink() {
    var session = live
    #expect(session.unresponsive() == [.offline, .report(.unresponsive), .cancelTimer, .disconnect])
    // A second one is late too, and the end of the link is reported.
    #expect(session.unresponsive() == [])
    #expect(session.disconnected(at: start) == [])
    #expect(session.state == .leaving)
    expectTimer(session.disconnectCompleted(), .seconds(1))
  }

  // MARK: Missing readings

  @Test func halfAMinuteWithoutReadingsEndsTheLink() {
    var session = live
    session.received(at: at(10))
    // The timer was set when it went online; now it is set to the remaining time.
    #expect(session.timer(at: at(30)) == [.setTimer(.seconds(10))])
    #expect(
      session.timer(at: at(40)) == [.offline, .report(.silent(.seconds(30))), .cancelTimer, .disconnect])
    #expect(session.state == .leaving)
  }

  @Test func readingTimeoutDependsOnThePeriod() {
    var session = live
    // Until the next reading the longer of the old and the new period counts.
    #expect(session.setPeriod(60_000) == [.setTimer(.seconds(180))])
    session.received(at: at(1))
    #expect(session.timer(at: at(180)) == [.setTimer(.seconds(1))])
    #expect(session.setPeriod(20_000) == [.setTimer(.seconds(60))])
    // However often the period is read, the timer runs on.
    #expect(session.setPeriod(20_000) == [])
    session.received(at: at(61))
    #expect(session.timer(at: at(120)) == [.setTimer(.seconds(1))])
    #expect(session.timer(at: at(121)).first == .offline)
  }

  @Test func longestPeriodIsSupported() {
    var session = live
    #expect(session.setPeriod(65_535) == [.setTimer(.milliseconds(196_605))])
  }

  @Test func periodKnownBeforeLiveSetsTheTimeout() {
    var session = subscribing
    #expect(session.setPeriod(20_000) == [])
    #expect(session.subscribed(nil, at: start) == [.online, .setTimer(.seconds(60))])
  }

  // MARK: The adapter

  @Test func adapterLossMakesThePeripheralAbsent() {
    var session = live
    #expect(session.adapterWentAway() == [.offline, .cancelTimer])
    // What bluetoothd reports while it ends is not the device's trouble.
    var ending = live
    _ = ending.servicesLost()
    #expect(ending.lastTrouble == .servicesLost)
    _ = ending.adapterWentAway()
    #expect(ending.lastTrouble == nil)
    #expect(session.state == .absent)
    #expect(session.disconnected(at: start) == [])

    session = waiting
    #expect(session.adapterWentAway() == [.cancelTimer])
    #expect(session.seen(inRange: true) == [.connect])

    session = subscribing
    #expect(session.adapterWentAway() == [.cancelTimer])
    #expect(session.subscribed(.disconnected, at: start) == [])
    #expect(session.state == .absent)
  }

  @Test func connectInProgressEndsByItsResultAfterAdapterLoss() {
    var session = connecting
    #expect(session.adapterWentAway() == [])
    #expect(session.connected(.failed(.unavailable)) == [])
    #expect(session.state == .absent)

    session = connecting
    _ = session.adapterWentAway()
    // The attempt fails with another error: it waits first, and is then absent.
    _ = session.connected(.failed(.disconnected))
    #expect(session.timer(at: start) == [])
    #expect(session.state == .absent)

    session = leaving
    #expect(session.adapterWentAway() == [])
    _ = session.disconnectCompleted()
    #expect(session.timer(at: start) == [])
    #expect(session.state == .absent)
  }

  // MARK: Stopping

  @Test func stopEndsTheSessionInEveryState() {
    for (index, state) in [absent, waiting, connecting, subscribing, live, leaving, stopped].enumerated() {
      var session = state
      let wasLive = session.state == .live
      #expect(session.stop() == (wasLive ? [.offline] : []) + [.cancelTimer], "\(index)")
      #expect(session.state == .stopped)
      // Late inputs change nothing.
      #expect(session.seen(inRange: true) == [])
      #expect(session.seen(inRange: false) == [])
      #expect(session.connected(.connected) == [])
      #expect(session.connected(.unsuitable) == [])
      #expect(session.connected(.failed(.timedOut("x"))) == [])
      #expect(session.subscribed(nil, at: start) == [])
      #expect(session.disconnected(at: start) == [])
      #expect(session.unresponsive() == [])
      #expect(session.timer(at: at(1000)) == [])
      #expect(session.disconnectCompleted() == [])
      #expect(session.adapterWentAway() == [])
      #expect(session.setPeriod(1) == [])
      #expect(session.state == .stopped)
    }
  }

  @Test func inputsThatDoNotFitTheStateAreIgnored() {
    for before in [absent, connecting, subscribing, leaving] {
      var session = before
      #expect(session.timer(at: at(1000)) == [])
      #expect(session.state == before.state)
    }
    for before in [absent, waiting, subscribing, live, leaving] {
      var session = before
      #expect(session.connected(.connected) == [])
      #expect(session.connected(.unsuitable) == [])
      #expect(session.connected(.failed(.gone)) == [])
      #expect(session.state == before.state)
    }
    for before in [absent, waiting, connecting, live, leaving] {
      var session = before
      #expect(session.subscribed(nil, at: start) == [])
      #expect(session.subscribed(.disconnected, at: start) == [])
      #expect(session.state == before.state)
    }
    for before in [absent, waiting, connecting, subscribing, live] {
      var session = before
      #expect(session.disconnectCompleted() == [])
      #expect(session.state == before.state)
    }
    for before in [absent, waiting, connecting, leaving] {
      var session = before
      #expect(session.disconnected(at: start) == [])
      #expect(session.state == before.state)
    }
    for before in [absent, waiting, connecting, subscribing, leaving] {
      var session = before
      #expect(session.unresponsive() == [])
      #expect(session.setPeriod(5000) == [])
      #expect(session.state == before.state)
    }
  }

  /// For any order of inputs, online and offline alternate, there is only one attempt to connect at a time, and in
  /// each state some input is still to come that leads on.
  @Test(arguments: [false, true])
  func randomInputsLeaveNoSessionStuck(isOnDemand: Bool) {
    var random = SplitMix64(state: 11)
    for _ in 0..<500 {
      var session = Session(now: start, isOnDemand: isOnDemand)
      var isOnline = false
      var pending: Set<String> = []
      var hasTimer = false
      for step in 0..<60 {
        let now = at(step * 10)
        let actions: [Session.Action]
        switch Int.random(in: 0..<17, using: &random) {
        case 0: actions = session.seen(inRange: true)
        case 1: actions = session.seen(inRange: false)
        case 2 where session.awaitsServices: actions = session.connected(.connected)
        case 2 where pending.contains("connect"):
          pending.remove("connect")
          let results: [Session.Connection] = [
            .connected, .connected, .unsuitable, .failed(.gone), .failed(.timedOut("x")),
            .failed(.keyMissing), .failed(.keyMissing), .failed(.refused("HID")), .notPaired(.refused),
          ]
          actions = session.connected(results.randomElement(using: &random)!)
        case 3 where pending.contains("subscribe"):
          pending.remove("subscribe")
          actions = session.subscribed(Bool.random(using: &random) ? nil : .disconnected, at: now)
        case 4: actions = session.disconnected(at: now)
        case 5: actions = session.adapterWentAway()
        case 6 where hasTimer:
          hasTimer = false
          actions = session.timer(at: now)
        case 7 where pending.contains("leave"):
          pending.remove("leave")
          actions = session.disconnectCompleted()
        case 8: actions = session.unresponsive()
        case 9 where pending.contains("subscribe"):
          pending.remove("subscribe")
          actions = session.unreadable(.timedOut("x"))
        case 10: actions = session.demanded()
        case 11: actions = session.visitEnded()
        case 12: actions = session.handedOver()
        case 13:
          actions = session.pair(Configuration.PairingMode.allCases.randomElement(using: &random)!)
        case 14: actions = session.unpair()
        case 15:
          session.seen(isPaired: Bool.random(using: &random))
          continue
        case 16: actions = session.becameUnusable("HID")
        default: continue
        }
        for action in actions {
          switch action {
          case .connect: #expect(pending.insert("connect").inserted)
          case .subscribe: pending.insert("subscribe")
          case .disconnect: #expect(pending.insert("leave").inserted)
          case .forget: if session.state == .leaving { pending.insert("leave") }
          case .online:
            #expect(!isOnline)
            isOnline = true
          case .offline:
            #expect(isOnline)
            isOnline = false
          case .setTimer: hasTimer = true
          case .cancelTimer: hasTimer = false
          case .report: break
          }
        }
        #expect(isOnline == (session.state == .live))
        switch session.state {
        case .absent: break
        case .waiting: #expect(hasTimer)
        case .live: #expect(hasTimer != isOnDemand)
        case .idle: #expect(isOnDemand && pending.isDisjoint(with: ["connect", "leave"]))
        case .connecting: #expect(session.awaitsServices ? hasTimer : pending.contains("connect"))
        case .subscribing: #expect(pending.contains("subscribe"))
        case .leaving: #expect(pending.contains("leave"))
        case .stopped: Issue.record("stopped without a call of stop()")
        }
      }
    }
  }
}
