import BlueZ
import Configuration
import GATT
import Testing

@testable import Devices

@Suite struct LinkMachineTests {
  private typealias Machine = LinkMachine

  private let connecting = LinkBench().connecting()
  private let live = LinkBench().live()

  private static let aborted = CentralError.transient("le-connection-abort-by-local")

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
          == (seconds == 1 ? [.report(.connectFailed("le-connection-abort-by-local"))] : []))
      #expect(bench.state == .waiting && bench.wait == .seconds(seconds))
      #expect(bench.timer() == [.connect])
    }
    let timeout = CentralError.timedOut("Connect: no answer in time")
    #expect(bench.failed(timeout) == [.report(.connectFailed(timeout.description))], "another trouble")
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
    #expect(bench.failed(.disconnected) == [.report(.connectFailed("the link is gone"))])
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
        #expect(bench.connected(result) == (minutes == 1 ? [.report(.unusable("HID"))] : []))
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
      #expect(bench.disconnected() == (number == 5 ? [.report(.wantsPairing)] : []))
      _ = bench.timer()
    }
  }

  // MARK: Services

  @Test func unsuitablePeripheralIsRetriedLessAndLessOften() {
    var bench = connecting
    #expect(bench.connected(.unsuitable(lacks: [])) == [] && bench.wait == .seconds(3))
    // bluetoothd may have cached the services of an earlier program.
    #expect(bench.timer() == [.forget])
    expectConnectsAtOnce(&bench)
    for minutes in [1, 2, 4, 8, 16, 32, 60, 60] {
      _ = bench.connected(.unsuitable(lacks: []))
      #expect(bench.timer() == (minutes == 1 ? [.report(.unsuitable(lacks: []))] : []) + [.disconnect])
      _ = bench.disconnectCompleted()
      // Coming into range does not shorten the back-off.
      #expect(bench.range(true) == [] && bench.wait == .seconds(60 * minutes))
      #expect(bench.timer() == [.connect])
    }
    // It has another program now.
    #expect(bench.connected() == [.subscribe])
    _ = bench.subscribed()
    bench.pass(100)
    _ = bench.disconnected()
    _ = bench.timer()
    _ = bench.connected(.unsuitable(lacks: []))
    #expect(bench.timer() == [.forget])
    expectConnectsAtOnce(&bench)
    _ = bench.connected(.unsuitable(lacks: []))
    #expect(bench.timer().first == .report(.unsuitable(lacks: [])))
    #expect(bench.disconnectCompleted() == [] && bench.wait == .seconds(60))
  }

  /// bluetoothd's cache is deleted once for each reason, in whichever order they come.
  @Test func linksThatAreOfNoUseInTwoWaysAreCountedApart() {
    var bench = connecting
    for (isRefused, last) in [
      (true, Machine.Action.disconnect), (false, .forget), (false, .disconnect), (true, .forget),
      (true, .disconnect),
    ] {
      if isRefused {
        _ = bench.connected()
        #expect(bench.subscribed(.failed(.refused("NotPermitted"))).last == last)
      } else {
        _ = bench.connected(.unsuitable(lacks: []))
        #expect(bench.timer().last == last)
      }
      _ = bench.disconnectCompleted()
      _ = bench.timer()
    }
  }

  /// Services appear one by one: what is lacking at last is told, and nothing prolongs the wait.
  @Test func servicesThatAreLackingAtLastAreTold() {
    let (first, second) = (BluetoothUUID(short: 0x180D), BluetoothUUID(short: 0x180F))
    var bench = LinkBench(isPaired: true)
    _ = bench.range(true)
    _ = bench.connected(.unsuitable(lacks: [first, second]))
    bench.pass(1)
    #expect(bench.connected(.unsuitable(lacks: [second])) == [] && bench.wait == .seconds(2))
    #expect(bench.timer() == [.report(.unsuitable(lacks: [second])), .disconnect])
  }

  @Test func servicesAddedAMomentLaterAreUsedAtOnce() {
    var bench = LinkBench().awaitingServices()
    #expect(bench.connected() == [.subscribe] && bench.wait == nil)
  }

  @Test func linkThatEndsBeforeTheServicesAppearIsRetriedLater() {
    var bench = LinkBench().awaitingServices()
    #expect(bench.disconnected() == [.report(.unsuitable(lacks: []))] && bench.wait == .seconds(60))
    #expect(bench.timer() == [.connect])
    // The new attempt ends only with its result.
    #expect(bench.disconnected() == [] && bench.wait == nil)
  }

  @Test func pairedPeripheralIsNotRemovedForItsServices() {
    var bench = LinkBench(isPaired: true).awaitingServices()
    #expect(bench.timer() == [.report(.unsuitable(lacks: [])), .disconnect])
    // The discovery of its services may have failed.
    #expect(bench.disconnectCompleted() == [] && bench.wait == .seconds(1))
    #expect(bench.timer() == [.connect])
    _ = bench.connected(.unsuitable(lacks: []))
    #expect(bench.timer() == [.disconnect])
    #expect(bench.disconnectCompleted() == [] && bench.wait == .seconds(60))
  }

  @Test func linkWithoutServicesIsEndedLikeAnyOther() {
    var bench = LinkBench().awaitingServices()
    #expect(bench.adapterWentAway() == [] && bench.state == .absent && bench.wait == nil)
    bench = LinkBench().awaitingServices()
    #expect(bench.reconnect() == [.disconnect])
    expectConnectsAtOnce(&bench)
    bench = LinkBench().awaitingServices()
    #expect(bench.becameUnusable("HID") == [.report(.unusable("HID")), .disconnect])
    bench = LinkBench().awaitingServices()
    #expect(bench.take(.unpair) == [.forget])
  }

  @Test func bondOfAPeripheralThatBecomesUnusableIsDeleted() {
    for isPaired in [true, false] {
      var bench = LinkBench(isPaired: isPaired).live()
      #expect(
        bench.becameUnusable("HID") == [
          .report(.unusable("HID")), .offline, isPaired ? .forget : .disconnect,
        ])
      // It is told again before the link has ended.
      #expect(bench.becameUnusable("HID") == [])
      #expect(bench.disconnectCompleted() == [] && bench.wait == .seconds(60))
    }
  }

  // MARK: Pairing

  private func expectConnectsAtOnce(
    _ bench: inout LinkBench, _ location: SourceLocation = #_sourceLocation
  ) {
    #expect(bench.disconnectCompleted() == [] && bench.wait == .zero, sourceLocation: location)
    #expect(bench.timer() == [.connect], sourceLocation: location)
  }

  @Test func configuredPairingPrecedesUse() {
    var bench = LinkBench(.always).connecting()
    #expect(bench.pairsFirst)
    bench.seen.isPaired = true
    #expect(!bench.pairsFirst)
    #expect(bench.connected() == [.subscribe])
    #expect(!LinkBench(.never).pairsFirst && !LinkBench(.ask).pairsFirst)
  }

  @Test func failedPairingIsRetriedWithBackOff() {
    var bench = LinkBench(.always).connecting()
    for seconds in [1, 2, 4] {
      let reports: [Machine.Action] = [.report(.pairingFailed(PairingError.refused.description))]
      #expect(bench.connected(.notPaired(.refused)) == (seconds == 1 ? reports : []))
      #expect(bench.wait == .seconds(seconds))
      #expect(bench.timer() == [.connect] && bench.pairsFirst)
    }
  }

  @Test func aFailedRequestToPairIsNotRepeated() {
    var bench = LinkBench().waiting()
    #expect(bench.pair() == [.connect] && bench.pairsFirst)
    // It may do without, as before.
    #expect(bench.connected(.notPaired(.passkeyNotUsed)) == [])
    #expect(bench.wait == .seconds(1))
    #expect(bench.timer() == [.connect] && !bench.pairsFirst)
    for _ in 0..<2 {
      _ = bench.connected()
      _ = bench.subscribed(.unreadable(.unlikely("")))
      _ = bench.disconnectCompleted()
      _ = bench.timer()
    }
    #expect(bench.machine.lastError == .wantsPairing)
    _ = bench.pair()
    #expect(bench.connected(.notPaired(.refused)) == [] && bench.wait == .seconds(60))
  }

  /// The end of the link before may have removed it from bluetoothd.
  @Test func aRequestToPairOutlastsARemoval() {
    var bench = LinkBench().waiting()
    #expect(bench.pair() == [.connect])
    bench.seen.isInRange = false
    #expect(bench.connected(.notPaired(.failed(.gone))) == [])
    #expect(bench.machine.state == .absent && bench.pairsFirst)
  }

  @Test func lostBondIsReplacedIfPairingIsOn() {
    var bench = LinkBench(.always, isPaired: true).connecting()
    for _ in 0..<2 {
      #expect(bench.failed(.keyMissing).last != .forget)
      _ = bench.timer()
    }
    #expect(bench.failed(.keyMissing) == [.report(.bondLost(pairsAgain: true)), .forget])
    bench.seen.isPaired = false
    expectConnectsAtOnce(&bench)
    #expect(bench.pairsFirst)
    // The new bond is of no use either: it counts from the beginning.
    bench.seen.isPaired = true
    bench.machine.pairing.isDue = false
    #expect(bench.failed(.keyMissing).last != .forget && bench.wait! > .seconds(1))
    _ = bench.timer()
    #expect(bench.connected() == [.subscribe])
  }

  @Test func lostBondIsReplacedOnlyByRequestOtherwise() {
    var bench = LinkBench(isPaired: true).connecting()
    for _ in 0..<2 {
      _ = bench.failed(.keyMissing)
      _ = bench.timer()
    }
    #expect(bench.failed(.keyMissing) == [.report(.bondLost(pairsAgain: false))])
    #expect(bench.wait == .seconds(60))
    // However often it happens.
    for minutes in [2, 4, 8] {
      #expect(bench.timer() == [.connect])
      #expect(bench.failed(.keyMissing) == [] && bench.wait == .seconds(60 * minutes))
    }
    // Until a user wants to pair.
    #expect(bench.pair() == [.forget])
    bench.seen.isPaired = false
    expectConnectsAtOnce(&bench)
    #expect(bench.pairsFirst)
  }

  /// As on a Raspberry Pi whose WLAN disturbs Bluetooth.
  @Test func otherFailuresKeepTheBond() {
    var bench = LinkBench(.always, isPaired: true).connecting()
    for _ in 0..<10 {
      for error in [CentralError.keyMissing, .keyMissing, .disconnected] {
        #expect(bench.failed(error).last != .forget)
        _ = bench.timer()
      }
    }
    // These say nothing about the bond.
    for error in [CentralError.keyMissing, Self.aborted, .timedOut("Connect"), .keyMissing, Self.aborted] {
      #expect(bench.failed(error).last != .forget)
      _ = bench.timer()
    }
    #expect(bench.failed(.keyMissing).last == .forget)
  }

  /// bluetoothd 5.66 with kernel 7.2 answers so if the bond is lost, and if the signal is weak.
  @Test func aBondThatMayBeLostIsReplacedOnlyByRequest() {
    let cutShort = CentralError.cutShort("br-connection-canceled")
    var bench = LinkBench(.always, isPaired: true).connecting()
    for attempt in 0..<10 {
      let reports: [Machine.Action] = [.report(.connectFailed(cutShort.description))]
      #expect(bench.failed(cutShort) == (attempt == 0 ? reports : []))
      _ = bench.timer()
    }
    _ = bench.failed(cutShort)
    #expect(bench.pair() == [.forget])
    // Requested while it is being connected.
    bench = LinkBench(isPaired: true).connecting()
    _ = bench.failed(cutShort)
    _ = bench.timer()
    #expect(bench.pair() == [])
    #expect(bench.failed(cutShort) == [.forget])
    // A link that lasts shows that the bond is a good one.
    bench = LinkBench(isPaired: true).connecting()
    _ = bench.failed(cutShort)
    _ = bench.timer()
    _ = bench.connected()
    #expect(!bench.machine.pairing.mayBeLost)
  }

  @Test func pairRequestUsesANewLink() {
    var bench = live
    #expect(bench.pair() == [.offline, .disconnect])
    expectConnectsAtOnce(&bench)
    #expect(bench.pairsFirst)
    // While connecting: the link is ended as soon as it is up.
    for connection in [Machine.Connection.connected, .unsuitable(lacks: [])] {
      bench = connecting
      #expect(bench.pair() == [])
      #expect(bench.connected(connection) == [.disconnect])
      expectConnectsAtOnce(&bench)
      #expect(bench.pairsFirst)
    }
  }

  @Test func unpairRequestRemovesThePeripheral() {
    var bench = LinkBench(isPaired: true).live()
    #expect(bench.take(.unpair) == [.offline, .forget])
    #expect(bench.disconnectCompleted() == [] && bench.wait == .seconds(1))
    bench = LinkBench(.always).connecting()
    #expect(bench.take(.unpair) == [.unpair])
    _ = bench.failed(.disconnected)
    #expect(bench.wait == .seconds(1) && !bench.pairsFirst)
    // The link that is being ended is awaited nevertheless.
    bench = LinkBench().leaving()
    #expect(bench.take(.unpair) == [.unpair] && bench.state == .leaving)
  }

  /// If a peripheral requires pairing, bluetoothd 5.66 never answers a read, and 5.82 fails it at once.
  @Test(arguments: [CentralError.timedOut("ReadValue: no answer in time"), .unlikely("Failed: 0x0e")])
  func unreadableOnTwoLinksWantsPairing(error: CentralError) {
    var bench = connecting
    _ = bench.connected()
    let subscribeFailed = Machine.Action.report(.subscribeFailed(error.description))
    #expect(bench.subscribed(.unreadable(error)) == [subscribeFailed, .disconnect])
    #expect(bench.disconnectCompleted() == [] && bench.wait == .seconds(1))
    for minutes in [1, 2, 4] {
      _ = bench.timer()
      _ = bench.connected()
      #expect(
        bench.subscribed(.unreadable(error)) == (minutes == 1 ? [.report(.wantsPairing)] : []) + [.disconnect]
      )
      #expect(bench.disconnectCompleted() == [] && bench.wait == .seconds(60 * minutes))
      #expect(!bench.pairsFirst)
    }
    // It has another program now, which can be read.
    _ = bench.timer()
    _ = bench.connected()
    _ = bench.subscribed()
    bench.pass(100)
    _ = bench.disconnected()
    _ = bench.timer()
    _ = bench.connected()
    #expect(bench.subscribed(.unreadable(error)).first == subscribeFailed)
    #expect(bench.subscribed(.unreadable(error)) == [], "on the same link")
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
    #expect(bench.timer() == [.report(.silent(.seconds(30))), .offline, .disconnect])
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
    #expect(bench.take(.unresponsive) == [.report(.unresponsive), .offline, .disconnect])
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
    #expect(bench.timer() == [.report(.silent(.seconds(30))), .offline, .disconnect])
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

  // MARK: On demand

  private static let onDemand = LinkBench(isOnDemand: true)
  private let idle = onDemand.idle()

  @Test func sessionIsIdleAfterTheVisit() {
    var bench = Self.onDemand.live()
    #expect(bench.wait == nil)
    #expect(bench.take(.visitEnded) == [.offline, .disconnect])
    #expect(bench.disconnectCompleted() == [] && bench.state == .idle)
    #expect(bench.range(false) == [] && bench.range(true) == [])
    #expect(bench.take(.handedOver) == [] && bench.state == .idle)
    bench = live
    #expect(bench.take(.visitEnded) == [] && bench.state == .live, "a permanent link is not ended")
  }

  @Test func isConnectedOnDemand() {
    var bench = idle
    #expect(bench.demanded() == [.connect])
    #expect(bench.demanded() == [])
    #expect(bench.failed(Self.aborted).count == 1 && bench.timer() == [.connect], "a failed visit")
    bench = idle
    #expect(bench.reconnect() == [.connect])
    bench = idle
    _ = bench.range(false)
    #expect(bench.demanded() == [] && bench.state == .absent)
    #expect(bench.range(true) == [.connect])
  }

  @Test func demandDuringDisconnectIsMetAfterwards() {
    var bench = Self.onDemand.live()
    _ = bench.take(.visitEnded)
    #expect(bench.demanded() == [] && bench.state == .leaving)
    expectConnectsAtOnce(&bench)
    // The visit that failed is repeated, and meets the demand too.
    bench = Self.onDemand.leaving()
    #expect(bench.demanded() == [])
    #expect(bench.disconnectCompleted() == [] && bench.wait == .seconds(1))
  }

  @Test func visitThatAnotherGatewayHasMadeFirstIsGivenUp() {
    for before in [Self.onDemand, Self.onDemand.waiting()] {
      var bench = before
      #expect(bench.take(.handedOver) == [] && bench.state == .idle && bench.wait == nil)
    }
    for before in [Self.onDemand.awaitingServices(), Self.onDemand.subscribing(), Self.onDemand.live()] {
      var bench = before
      #expect(bench.take(.handedOver).last == .disconnect)
      #expect(bench.disconnectCompleted() == [] && bench.state == .idle)
    }
    var bench = Self.onDemand.leaving()
    #expect(bench.take(.handedOver) == [])
    #expect(bench.disconnectCompleted() == [] && bench.state == .idle, "it is not tried again")
  }

  @Test func attemptThatIsGivenUpGoesOn() {
    var withdrawn = Self.onDemand.connecting()
    #expect(withdrawn.take(.handedOver) == [] && withdrawn.state == .connecting)
    // What it makes is ended, or is nothing.
    for result in [Machine.Connection.connected, .unsuitable(lacks: [])] {
      var bench = withdrawn
      #expect(bench.connected(result) == [.disconnect])
      #expect(bench.disconnectCompleted() == [] && bench.state == .idle)
      #expect(bench.demanded() == [.connect])
      #expect(bench.connected() == [.subscribe])
    }
    var bench = withdrawn
    #expect(bench.failed(Self.aborted) == [] && bench.state == .idle)
    // A visit is overdue, or a user wants a link.
    bench = withdrawn
    #expect(bench.demanded() == [] && bench.connected() == [.subscribe])
    bench = withdrawn
    #expect(bench.reconnect() == [] && bench.connected() == [.subscribe])
  }
}
