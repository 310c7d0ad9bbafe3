import GATT
import Testing

@testable import Devices

/// Peripherals that lack services, or that are of no use otherwise.
extension LinkMachineTests {
  @Test func unsuitablePeripheralIsRetriedLessAndLessOften() {
    var bench = connecting
    #expect(bench.connected(.unsuitable(lacks: [])) == [] && bench.wait == .seconds(3))
    // bluetoothd may have cached the services of an earlier program.
    #expect(bench.timer() == [.forget])
    expectConnectsAtOnce(&bench)
    for minutes in [1, 2, 4, 8, 16, 32, 60, 60] {
      _ = bench.connected(.unsuitable(lacks: []))
      #expect(bench.timer() == (minutes == 1 ? [.log(.unsuitable(lacks: []))] : []) + [.disconnect])
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
    #expect(bench.timer().first == .log(.unsuitable(lacks: [])))
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
    #expect(bench.timer() == [.log(.unsuitable(lacks: [second])), .disconnect])
  }

  @Test func servicesAddedAMomentLaterAreUsedAtOnce() {
    var bench = LinkBench().awaitingServices()
    #expect(bench.connected() == [.subscribe] && bench.wait == nil)
  }

  @Test func linkThatEndsBeforeTheServicesAppearIsRetriedLater() {
    var bench = LinkBench().awaitingServices()
    #expect(bench.disconnected() == [.log(.unsuitable(lacks: []))] && bench.wait == .seconds(60))
    #expect(bench.timer() == [.connect])
    // The new attempt ends only with its result.
    #expect(bench.disconnected() == [] && bench.wait == nil)
  }

  @Test func pairedPeripheralIsNotRemovedForItsServices() {
    var bench = LinkBench(isPaired: true).awaitingServices()
    #expect(bench.timer() == [.log(.unsuitable(lacks: [])), .disconnect])
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
    #expect(bench.becameUnusable("HID") == [.log(.unusable("HID")), .disconnect])
    bench = LinkBench().awaitingServices()
    #expect(bench.take(.unpair) == [.forget])
  }

  @Test func bondOfAPeripheralThatBecomesUnusableIsDeleted() {
    for isPaired in [true, false] {
      var bench = LinkBench(isPaired: isPaired).live()
      #expect(
        bench.becameUnusable("HID") == [
          .log(.unusable("HID")), .offline, isPaired ? .forget : .disconnect,
        ])
      // It is told again before the link has ended.
      #expect(bench.becameUnusable("HID") == [])
      #expect(bench.disconnectCompleted() == [] && bench.wait == .seconds(60))
    }
  }
}
