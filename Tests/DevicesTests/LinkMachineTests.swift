import BlueZ
import Configuration
import Testing

@testable import Devices

@Suite struct LinkMachineTests {
  typealias Machine = LinkMachine

  let connecting = LinkBench().connecting()
  let live = LinkBench().live()
  static let onDemand = LinkBench(isOnDemand: true)
  let idle = onDemand.idle()

  static let aborted = CentralError.transient("le-connection-abort-by-local")

  func expectConnectsAtOnce(
    _ bench: inout LinkBench, _ location: SourceLocation = #_sourceLocation
  ) {
    #expect(bench.disconnectCompleted() == [] && bench.wait == .zero, sourceLocation: location)
    #expect(bench.timer() == [.connect], sourceLocation: location)
  }

  // MARK: Connecting

  @Test func connectsWhenInRange() {
    var bench = LinkBench()
    #expect(bench.range(false) == [] && bench.state == .absent)
    #expect(bench.range(true) == [.connect])
    // Seen again during the attempt: there is no second one.
    #expect(bench.range(true) == [])
    #expect(bench.connected() == [.subscribe])
    #expect(bench.subscribed() == [.online])
    #expect(bench.state == .live && bench.wait == .seconds(30))
    #expect(bench.range(false) == [] && bench.state == .live)
  }

  @Test func failedConnectIsRetriedWithBackOff() {
    var bench = connecting
    for seconds in [1, 2, 4, 8, 16, 32, 60, 60, 60] {
      // Reported once.
      #expect(
        bench.failed(Self.aborted)
          == (seconds == 1 ? [.log(.connectFailed("le-connection-abort-by-local"))] : []))
      #expect(bench.state == .waiting && bench.wait == .seconds(seconds))
      #expect(bench.timer() == [.connect])
    }
    let timeout = CentralError.timedOut("Connect: no answer in time")
    #expect(bench.failed(timeout) == [.log(.connectFailed(timeout.description))], "another trouble")
  }

  /// It is probably switched off.
  @Test func bondedPeripheralThatIsNotReceivedIsTriedLessAndLessOften() {
    var bench = LinkBench(isPaired: true).connecting()
    _ = bench.received(false)
    for seconds in [60, 120, 240, 480, 600, 600] {
      _ = bench.failed(.timedOut("x"))
      #expect(bench.wait == .seconds(seconds))
      #expect(bench.received(false) == [] && bench.wait == .seconds(seconds))
      #expect(bench.timer() == [.connect])
    }
    _ = bench.failed(.timedOut("x"))
    // Back: from now on as any other.
    for _ in 0..<2 { #expect(bench.received(true) == [] && bench.wait == .seconds(1)) }
    #expect(bench.timer() == [.connect])
    #expect(bench.failed(.timedOut("x")) == [] && bench.wait == .seconds(2))
    // Away again, and away from the beginning.
    #expect(bench.timer() == [.connect])
    _ = bench.received(false)
    #expect(bench.failed(.timedOut("x")) == [] && bench.wait == .seconds(60))
  }

  @Test func bondedPeripheralIsGivenTimeToBeReceivedFirst() {
    var bench = LinkBench(isPaired: true)
    bench.seen.isReceived = false
    #expect(bench.range(true) == [] && bench.wait == .seconds(10))
    var received = bench
    #expect(received.received(true) == [] && received.wait == .seconds(1))
    #expect(bench.timer() == [.connect])
  }

  @Test func lossOfTheAdapterResetsTheBackOff() {
    var bench = connecting
    for seconds in [1, 2, 4, 8, 16] {
      _ = bench.failed(.disconnected)
      #expect(bench.wait == .seconds(seconds))
      _ = bench.timer()
    }
    _ = bench.connected()
    _ = bench.subscribed()
    #expect(bench.adapterWentAway() == [.offline])
    #expect(bench.range(true) == [.connect])
    #expect(bench.failed(.disconnected) == [.log(.connectFailed("the link is gone"))])
    #expect(bench.wait == .seconds(1))
  }

  @Test func lastErrorSaysWhyThereIsNoLink() {
    var bench = live
    #expect(bench.machine.lastError == nil)
    // Some versions of bluetoothd give a reason.
    #expect(bench.disconnected(because: "timeout") == [.offline])
    #expect(bench.machine.lastError == .linkEnded("timeout"))
    _ = bench.timer()
    #expect(bench.failed(Self.aborted).count == 1)
    // What has failed since the last readings says more than the end of a link without any.
    _ = bench.timer()
    _ = bench.connected()
    _ = bench.disconnected()
    #expect(bench.machine.lastError == .connectFailed("le-connection-abort-by-local"))
    _ = bench.timer()
    _ = bench.connected()
    _ = bench.subscribed()
    #expect(bench.machine.lastError == nil)
  }

  @Test func classicBluetoothHasItsOwnRemedy() {
    let trouble = Trouble.unusable("Failed: br-connection-unknown: \(CentralError.classic)")
    let remedy = trouble.remedy("a", .microbit, .ask) ?? ""
    #expect(
      remedy.hasSuffix(
        "ControllerMode = le in /etc/bluetooth/main.conf, then: sudo systemctl restart bluetooth"))
  }

  @Test func peripheralThatIsRefusedIsTriedLessAndLessOften() {
    for result in [Machine.Connection.failed(.refused("HID")), .notPaired(.failed(.refused("HID")))] {
      var bench = LinkBench(.always).connecting()
      for minutes in [1, 2, 4] {
        #expect(bench.connected(result) == (minutes == 1 ? [.log(.unusable("HID"))] : []))
        #expect(bench.wait == .seconds(60 * minutes))
        #expect(bench.timer() == [.connect])
      }
    }
  }

  @Test(arguments: [CentralError.gone, .unavailable])
  func absentPeripheralIsAwaitedWithoutATimer(error: CentralError) {
    var bench = connecting
    _ = bench.range(false)
    var back = bench
    #expect(bench.failed(error) == [] && bench.state == .absent)
    #expect(bench.range(true) == [.connect])
    // It is seen again during the failure.
    #expect(back.range(true) == [])
    #expect(back.failed(error) == [] && back.wait == .seconds(1))
  }

  @Test func aFailedSubscriptionEndsTheLink() {
    var bench = connecting
    for last in [Machine.Action.disconnect, .forget, .disconnect, .disconnect] {
      _ = bench.connected()
      // bluetoothd may have cached the services of an earlier program: the peripheral is removed once in a row.
      #expect(bench.subscribed(.failed(.refused("NotPermitted"))).last == last)
      #expect(bench.state == .leaving)
      _ = bench.disconnectCompleted()
      _ = bench.timer()
    }
  }

  @Test func linkLostWhileSubscribingIsRetried() {
    var bench = LinkBench().subscribing()
    #expect(bench.disconnected() == [] && bench.wait == .seconds(1))
    // The operation that failed because of it reports it a moment later.
    #expect(bench.subscribed(.failed(.disconnected)) == [] && bench.state == .waiting)
    #expect(bench.timer() == [.connect])
  }

  @Test func linkThatEndsOnEveryReadIsReportedOnce() {
    var bench = connecting
    for number in 1...7 {
      _ = bench.connected()
      #expect(bench.disconnected() == (number == 5 ? [.log(.wantsPairing)] : []))
      _ = bench.timer()
    }
  }

  // MARK: The end of a link

  @Test func outOfRangePeripheralIsAbsentAfterTheBackOff() {
    var bench = LinkBench().waiting()
    _ = bench.range(false)
    var back = bench
    #expect(bench.state == .waiting)
    #expect(bench.timer() == [] && bench.state == .absent)
    #expect(bench.range(true) == [.connect])
    // Coming back does not shorten the back-off.
    #expect(back.range(true) == [])
    #expect(back.timer() == [.connect])
  }

  @Test func onlyALongLinkResetsTheBackOff() {
    var bench = connecting
    for (link, wait) in [(29, 1), (29, 2), (29, 4), (30, 1)] {
      _ = bench.connected()
      _ = bench.subscribed()
      bench.pass(link)
      #expect(bench.disconnected() == [.offline] && bench.wait == .seconds(wait))
      _ = bench.timer()
    }
  }

  /// The link counts until the last reading.
  @Test(arguments: [(true, 1), (false, 32)])
  func silentLinkResetsTheBackOffOnlyAfterReadings(hasReadings: Bool, wait: Int) {
    var bench = LinkBench(isPaired: true).connecting()
    for _ in 0..<5 {
      _ = bench.failed(Self.aborted)
      _ = bench.timer()
    }
    _ = bench.connected()
    _ = bench.subscribed()
    if hasReadings {
      bench.pass(3600)
      bench.reading()
      #expect(bench.timer() == [] && bench.wait == .seconds(30))
    }
    #expect(bench.timer() == [.log(.silent(.seconds(30))), .offline, .disconnect])
    #expect(bench.disconnectCompleted() == [] && bench.wait == .seconds(wait))
  }

  @Test func takeoversBetweenTwoGatewaysBecomeLessFrequent() {
    var bench = connecting
    for (link, wait) in [1, 2, 4, 8, 16, 32, 60, 60].map({ (599, $0) }) + [(600, 1)] {
      _ = bench.connected()
      _ = bench.subscribed()
      bench.pass(link)
      bench.reading()
      #expect(bench.take(.handedOver) == [.offline, .disconnect])
      #expect(bench.disconnectCompleted() == [] && bench.wait == .seconds(wait))
      _ = bench.timer()
    }
  }

  @Test func unansweredOperationEndsTheLink() {
    var bench = live
    #expect(bench.take(.unresponsive) == [.log(.unresponsive), .offline, .disconnect])
    // A second one is late too, and the end of the link is reported.
    #expect(bench.take(.unresponsive) == [] && bench.disconnected() == [])
    #expect(bench.state == .leaving)
    #expect(bench.disconnectCompleted() == [] && bench.wait == .seconds(1))
  }

  @Test func reconnectRequestEndsEveryWait() {
    var bench = LinkBench().waiting()
    #expect(bench.reconnect() == [.connect])
    // It does not wait for the end of the back-off when it comes into range.
    bench = LinkBench().waiting()
    _ = bench.range(false)
    #expect(bench.reconnect() == [] && bench.state == .absent)
    #expect(bench.range(true) == [.connect])
    // The link is being ended for an hour.
    bench = live
    _ = bench.becameUnusable("HID")
    #expect(bench.reconnect() == [])
    expectConnectsAtOnce(&bench)
  }

  // MARK: Missing readings

  @Test func halfAMinuteWithoutReadingsEndsTheLink() {
    var bench = live
    bench.pass(10)
    bench.reading()
    // The timer was set when it went online; now it is set to the remaining time.
    #expect(bench.timer() == [] && bench.wait == .seconds(10))
    #expect(bench.timer() == [.log(.silent(.seconds(30))), .offline, .disconnect])
  }

  /// Such as the period of a sensor that the peripheral lacks.
  @Test func periodOfReadingsThatAreNotExpectedSetsNoTimeout() {
    var bench = live
    #expect(bench.take(.readingsExpected(false)) == [] && bench.wait == nil)
    #expect(bench.setPeriod(5000) == [] && bench.wait == nil)
    #expect(bench.take(.readingsExpected(true)) == [] && bench.wait == .seconds(30))
  }

  @Test func silentPeripheralIsRemovedOnceInARow() {
    var bench = connecting
    for (hasReading, last) in [
      (false, Machine.Action.forget), (false, .disconnect), (true, .disconnect), (false, .forget),
    ] {
      _ = bench.connected()
      // A link with a reading ends the row.
      if hasReading { bench.reading() }
      _ = bench.subscribed()
      #expect(bench.timer().last == last)
      _ = bench.disconnectCompleted()
      _ = bench.timer()
    }
  }

  @Test func readingTimeoutDependsOnThePeriod() {
    var bench = live
    // Until the next reading the longer of the old and the new period counts.
    #expect(bench.setPeriod(60_000) == [] && bench.wait == .seconds(180))
    bench.pass(1)
    bench.reading()
    #expect(bench.timer() == [] && bench.wait == .seconds(1))
    #expect(bench.setPeriod(20_000) == [] && bench.wait == .seconds(60))
    // However often the period is read, the timer runs on.
    bench.pass(1)
    #expect(bench.setPeriod(20_000) == [] && bench.wait == .seconds(59))
    bench.reading()
    #expect(bench.timer() == [] && bench.wait == .seconds(1))
    #expect(bench.timer().contains(.offline))
    bench = live
    #expect(bench.setPeriod(65_535) == [] && bench.wait == .milliseconds(196_605), "the longest period")
  }

  @Test func periodKnownBeforeLiveSetsTheTimeout() {
    var bench = LinkBench().subscribing()
    #expect(bench.setPeriod(20_000) == [])
    #expect(bench.subscribed() == [.online] && bench.wait == .seconds(60))
    #expect(LinkBench(interval: .seconds(60)).live().wait == .seconds(180), "that of the polls")
  }

  // MARK: The adapter

  @Test func adapterLossMakesThePeripheralAbsent() {
    for (before, actions) in [
      (live, [Machine.Action.offline]), (LinkBench().waiting(), []), (LinkBench().subscribing(), []),
    ] {
      var bench = before
      #expect(bench.adapterWentAway() == actions && bench.state == .absent && bench.wait == nil)
      #expect(bench.disconnected() == [] && bench.subscribed(.failed(.disconnected)) == [])
      #expect(bench.range(true) == [.connect])
    }
    // What bluetoothd reports while it ends is not the device's trouble.
    var bench = live
    _ = bench.take(.servicesLost)
    #expect(bench.machine.lastError == .servicesLost)
    _ = bench.adapterWentAway()
    #expect(bench.machine.lastError == nil)
  }

  @Test func operationInProgressEndsByItsResultAfterAdapterLoss() {
    var bench = connecting
    #expect(bench.adapterWentAway() == [])
    var other = bench
    #expect(bench.failed(.unavailable) == [] && bench.state == .absent)
    // The attempt fails with another error: it waits first, and is then absent.
    _ = other.failed(.disconnected)
    #expect(other.timer() == [] && other.state == .absent)

    bench = LinkBench().leaving()
    #expect(bench.adapterWentAway() == [])
    _ = bench.disconnectCompleted()
    #expect(bench.timer() == [] && bench.state == .absent)
  }

  // MARK: Turns

  @Test func aDeviceWhoseTurnHasEndedWantsALinkAgainAtOnce() {
    var bench = live
    #expect(bench.take(.turnEnded) == [.offline, .disconnect] && bench.state == .leaving)
    #expect(bench.take(.turnEnded) == [])
    expectConnectsAtOnce(&bench)
    #expect(bench.machine.lastError == nil)
    bench = LinkBench().subscribing()
    #expect(bench.take(.turnEnded) == [] && bench.state == .subscribing)
  }
}
