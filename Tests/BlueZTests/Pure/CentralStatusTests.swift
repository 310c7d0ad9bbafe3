import EventLoop
import TestSupport
import Testing

@testable import BlueZ

@LoopActor @Suite final class CentralStatusTests: Sendable {
  private static let on = ObjectTree.Adapter(address: "02:00:5E:00:53:01", isPowered: true)
  private static let off = ObjectTree.Adapter(address: "02:00:5E:00:53:01", powerState: "off-blocked")

  private func started() async -> CentralStatus {
    await loop.task {
      var status = CentralStatus()
      status.set(.listing, startup: loop.timer(after: .seconds(3600)) {})
      return status
    }.value
  }

  @Test func nothingIsKnownBeforeTheObjectsAreListed() async {
    var status = CentralStatus()
    #expect(status.next(nil, name: "hci0") == nil)
    status.set(.absent)
    #expect(status.next(nil, name: "hci0") == .noBluetoothd)
    status.set(.silent)
    #expect(status.next(nil, name: "hci0") == .noAnswer)
    status = await started()
    #expect(status.next(Self.on, name: "hci0") == nil)
    status.set(.listed)
    #expect(status.next(Self.on, name: "hci0") == .on(adapter: "hci0", address: "02:00:5E:00:53:01"))
    await loop.task { [status] in
      var status = status
      status.set(.unknown)
      #expect(status.next(Self.on, name: "hci0") == nil)
    }.value
  }

  @Test func anAdapterHasTimeToAppearAfterTheStart() async {
    var status = await started()
    status.set(.listed)
    #expect(status.next(nil, name: "hci0") == nil)
    #expect(status.next(Self.off, name: "hci0") == nil)
    await loop.task { [status] in
      var status = status
      status.startupEnded()
      #expect(status.next(nil, name: "hci0") == .adapterAbsent)
      #expect(status.next(Self.off, name: "hci0") == .adapterBlocked)
    }.value
  }

  @Test func aStateIsReportedOnce() {
    var status = CentralStatus()
    let states: [CentralState] = [
      .noBus("refused"), .noBus("no such file"), .noBluetoothd, .noBluetoothd, .noBus("refused"),
    ]
    let reports = states.map { status.set($0) }
    #expect(reports == [true, false, true, false, true])
    #expect(status.state == .noBus("refused"))
  }
}
