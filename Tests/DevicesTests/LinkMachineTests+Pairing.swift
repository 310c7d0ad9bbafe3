import BlueZ
import Testing

@testable import Devices

/// Pairing, and bonds that are lost.
extension LinkMachineTests {
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
      let reports: [Machine.Action] = [.log(.pairingFailed(PairingError.refused.description))]
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
    #expect(bench.failed(.keyMissing) == [.log(.bondLost(pairsAgain: true)), .forget])
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
    #expect(bench.failed(.keyMissing) == [.log(.bondLost(pairsAgain: false))])
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
      let reports: [Machine.Action] = [.log(.connectFailed(cutShort.description))]
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
    let subscribeFailed = Machine.Action.log(.subscribeFailed(error.description))
    #expect(bench.subscribed(.unreadable(error)) == [subscribeFailed, .disconnect])
    #expect(bench.disconnectCompleted() == [] && bench.wait == .seconds(1))
    for minutes in [1, 2, 4] {
      _ = bench.timer()
      _ = bench.connected()
      #expect(
        bench.subscribed(.unreadable(error)) == (minutes == 1 ? [.log(.wantsPairing)] : []) + [.disconnect]
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
}
