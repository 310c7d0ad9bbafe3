import Testing

@testable import BlueZ

@Suite struct AdvertisementMonitorTests {
  /// Wanted, asked for, and running.
  private var active: AdvertisementMonitor {
    var monitor = AdvertisementMonitor()
    _ = monitor.next(isWanted: true, isOffered: true, isOn: true)
    _ = monitor.answer("Activate")
    monitor.ended()
    return monitor
  }

  @Test func isRegisteredWhileItIsWanted() {
    var monitor = AdvertisementMonitor()
    #expect(monitor.next(isWanted: false, isOffered: true, isOn: true) == nil)
    #expect(monitor.next(isWanted: true, isOffered: false, isOn: true) == nil)
    #expect(monitor.next(isWanted: true, isOffered: true, isOn: false) == nil)
    #expect(monitor.next(isWanted: true, isOffered: true, isOn: true) == .register)
    #expect(monitor.next(isWanted: false, isOffered: true, isOn: true) == nil, "one call at a time")
    monitor.ended()
    #expect(monitor.next(isWanted: false, isOffered: true, isOn: true) == .unregister)
    monitor.ended()
    #expect(monitor.next(isWanted: false, isOffered: true, isOn: true) == nil)
  }

  @Test func bluetoothdSaysWhetherItIsActive() {
    var monitor = active
    #expect(monitor.isActive)
    #expect(monitor.answer("Release") == [])
    #expect(!monitor.isActive)
    // A refusal is not repeated.
    #expect(monitor.next(isWanted: true, isOffered: true, isOn: true) == nil)
    #expect(monitor.answer("Get") == nil)
  }

  @Test func isRegisteredAnewWhenTheAdapterIsOnAgain() {
    var monitor = active
    #expect(monitor.next(isWanted: true, isOffered: true, isOn: false) == nil)
    #expect(!monitor.isActive)
    for step in [AdvertisementMonitor.Step.unregister, .register] {
      #expect(monitor.next(isWanted: true, isOffered: true, isOn: true) == step)
      monitor.ended()
    }
    #expect(monitor.next(isWanted: true, isOffered: true, isOn: true) == nil)
  }

  @Test func anotherBluetoothdIsAskedAnew() {
    var monitor = active
    #expect(monitor.next(isWanted: true, isOffered: false, isOn: false) == nil)
    #expect(monitor.next(isWanted: true, isOffered: true, isOn: true) == .register)
  }
}
