import Configuration
import Devices
import GATT
import Testing

@testable import Bridge

@Suite struct InfoRoutesTests {
  private static let this = GatewayID("this")!
  private static let address = BluetoothAddress(truncating: 1)
  private static let another = BluetoothAddress(truncating: 2)
  private static let id = try! DeviceID("kitchen")

  private static func notice(_ gateway: String, of address: BluetoothAddress? = address)
    -> OwnershipMachine.Notice
  {
    OwnershipMachine.Notice(gateway: GatewayID(gateway)!, id: id, address: address)
  }

  private struct Bench {
    var routes = InfoRoutes(InfoRoutesTests.this)

    mutating func received(
      _ notice: OwnershipMachine.Notice, named: BluetoothAddress? = nil, owner: Owner? = nil
    ) -> [BluetoothAddress] {
      routes.received(notice, named: named, isOrphan: false) { $0 == InfoRoutesTests.address ? owner : nil }
    }
  }

  @Test func infoIsForTheDeviceWithTheIDAndForTheOneWithTheAddress() {
    var bench = Bench()
    #expect(bench.received(Self.notice("other", of: nil), named: Self.another) == [Self.another])
    #expect(bench.received(Self.notice("other"), named: Self.address, owner: .this) == [Self.address])
    let both = bench.received(Self.notice("other"), named: Self.another, owner: .this)
    #expect(both == [Self.another, Self.address])
    #expect(bench.received(Self.notice("other"), owner: .unknown) == [Self.address])
  }

  @Test func ownInfoOfBeforeIsForTheDeviceUnlessAnotherGatewayOwnsIt() {
    var bench = Bench()
    #expect(bench.received(Self.notice("this"), owner: .unknown) == [Self.address])
    #expect(bench.received(Self.notice("this"), owner: .other(GatewayID("other")!)) == [])
    #expect(bench.received(Self.notice("this"), named: Self.another, owner: .this) == [Self.another])
    // Its new id and that of the other device were changed while the gateway was off.
    let both = bench.received(Self.notice("this"), named: Self.another, owner: .unknown)
    #expect(both == [Self.another, Self.address])
  }

  @Test func ownInfoWithoutADeviceIsReportedOnceOnEachConnection() {
    var bench = Bench()
    #expect(bench.received(Self.notice("this")) == [])
    #expect(bench.routes.takeLost().map(\.id) == [Self.id])
    _ = bench.received(Self.notice("this"))
    #expect(bench.routes.takeLost().isEmpty)
    // The broker may be killed, and go back to an older state.
    bench.routes.disconnected()
    _ = bench.received(Self.notice("this"))
    #expect(bench.routes.takeLost().map(\.id) == [Self.id])
  }

  @Test func deviceWhoseInfoIsClearedOrAnothersIsNotLost() {
    for forget in [
      { $0.routes.cleared(Self.id) }, { _ = $0.received(Self.notice("other", of: Self.another)) },
    ] as [(inout Bench) -> Void] {
      var bench = Bench()
      _ = bench.received(Self.notice("this"))
      forget(&bench)
      #expect(bench.routes.takeLost().isEmpty)
    }
  }

  @Test func idsOfADeviceThatIsAddedAreKnown() {
    var bench = Bench()
    #expect(bench.received(Self.notice("other")) == [])
    #expect(bench.routes.added(Self.another) == [] && bench.routes.added(Self.address) == [Self.id])
    #expect(bench.routes.added(Self.address) == [])
    for forget in [{ $0.cleared(Self.id) }, { $0.disconnected() }] as [(inout InfoRoutes) -> Void] {
      bench.routes.removed(Self.address, elsewhere: Self.id)
      forget(&bench.routes)
      #expect(bench.routes.added(Self.address) == [])
    }
  }
}
