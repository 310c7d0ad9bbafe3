import Configuration
import GATT
import Testing

@testable import Bridge

@Suite struct OrphansTests {
  private static let this = GatewayID("this")!
  private static let address = BluetoothAddress(truncating: 1)
  private static let id = DeviceID(address)

  /// What is to be done, in words.
  private struct Bench {
    var orphans = Orphans(OrphansTests.this)

    init() {
      orphans.add(OrphansTests.id, of: OrphansTests.address, offered: [], barrier: 1)
    }

    mutating func received(_ gateway: String, of address: BluetoothAddress? = address) {
      orphans.received(
        OwnershipMachine.Notice(gateway: GatewayID(gateway)!, id: OrphansTests.id, address: address))
    }

    mutating func cleared() -> [String] { words(orphans.cleared(OrphansTests.id)) }
    mutating func barrierArrived(_ number: UInt64) -> [String] { words(orphans.barrierArrived(number)) }
    mutating func settle() -> [String] { words(orphans.settle(OrphansTests.id)) }

    private func words(_ actions: [Orphans.Action]) -> [String] {
      actions.map {
        switch $0 {
        case .clear: "clear"
        case .confirm: "confirm"
        case .cleared: "cleared"
        case .leave(_, let isSameDevice): "leave, same device: \(isSameDevice)"
        }
      }
    }
  }

  @Test func orphanIsClearedUnlessAnotherGatewayHasIt() {
    for (address, isSame) in [(Self.address, true), (nil, true), (BluetoothAddress(truncating: 2), false)] {
      var bench = Bench()
      bench.received("this")
      #expect(bench.cleared() == [])
      var other = bench
      #expect(bench.settle() == ["clear"])
      #expect(bench.cleared() == ["confirm"])
      #expect(bench.settle() == ["cleared"])
      #expect(bench.orphans.all == [])
      other.received("other", of: address)
      #expect(other.settle() == ["leave, same device: \(isSame)"])
      #expect(other.orphans.all == [])
    }
  }

  /// They are cleared at once, though another gateway may just have taken the device over: that one publishes it again.
  @Test func topicsOfARemovedDeviceAreForgottenOnlyWhenNothingIsOnItsWay() {
    var bench = Bench()
    #expect(bench.settle() == ["clear"])
    bench.received("other")
    #expect(bench.cleared() == ["confirm"])
    var other = bench
    bench.received("this")
    #expect(bench.settle() == [], "it was sent before the topics were cleared")
    #expect(bench.cleared() == ["confirm"])
    #expect(bench.settle() == ["cleared"])
    other.received("other")
    #expect(other.settle() == ["leave, same device: true"])
  }

  @Test func eachConnectionBeginsAgain() {
    var bench = Bench()
    #expect(bench.barrierArrived(0) == [])
    #expect(bench.barrierArrived(1) == ["clear"])
    #expect(bench.barrierArrived(2) == [], "it was settled")
    bench.received("other")
    bench.orphans.setBarrier(.max)
    #expect(bench.barrierArrived(2) == [] && bench.cleared() == [])
    bench.orphans.setBarrier(3)
    #expect(bench.barrierArrived(3) == ["clear"])
    #expect(bench.cleared() == ["confirm"])
    bench.orphans.setBarrier(4, of: Self.id)
    #expect(bench.barrierArrived(4) == ["cleared"])
  }
}
