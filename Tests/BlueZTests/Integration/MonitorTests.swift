import DBus
import TestSupport
import Testing

@testable import BlueZ

/// A bluetoothd that can monitor advertisements.
@Suite struct MonitorTests {
  private static let offered = BlueZEvent.added(
    path: Recorded.adapter, interfaces: ["org.bluez.AdvertisementMonitorManager1": [:]])

  @Test func devicesThatAreOnlyHeardAreMonitored() async throws {
    let clients = Record<String>()
    let faults = try await Faults(answers: [
      "RegisterMonitor": { fake, call in
        #expect(call.arguments == [.objectPath("/microbit_gateway/monitors")])
        clients.append(call.sender ?? "")
        fake.reply(call)
      },
      "UnregisterMonitor": FakeBlueZ.ok,
    ])
    await faults.fake.signal(Self.offered)
    await faults.central.scan(true)
    try await faults.fake.called("StartDiscovery")
    #expect(faults.fake.count("RegisterMonitor") == 0)

    await faults.central.scan(true, forEach: true)
    let client = try await clients.next("a monitor") { $0 }
    let bluetoothd = try #require(await faults.fake.connection)
    func call(_ member: String, _ interface: String, of path: String) async throws -> [DBusValue] {
      try await bluetoothd.call(DBusCall(member, on: interface, of: path, at: client), timeout: patience)
    }
    let listed = try await call(
      "GetManagedObjects", DBusName.objectManager, of: "/microbit_gateway/monitors")
    let path = try #require(listed.first?.map?.keys.first)
    let monitor = listed.first?.map?[path]?.map?["org.bluez.AdvertisementMonitor1"]?.map
    #expect(monitor?["Type"]?.text == "or_patterns")
    #expect(monitor?["RSSISamplingPeriod"] == .uint16(0))
    #expect(monitor?["Patterns"]?.signature == "a(yyay)")
    #expect(await !faults.central.isMonitoring)
    _ = try await call("Activate", "org.bluez.AdvertisementMonitor1", of: path)
    #expect(await faults.central.isMonitoring)

    await faults.central.scan(true)
    try await faults.fake.called("UnregisterMonitor")
    #expect(await !faults.central.isMonitoring)
    try await faults.tested.end()
  }

  /// Discovery goes on, and later calls follow.
  @Test func anUnansweredRegistrationEnds() async throws {
    let faults = try await Faults(answers: ["RegisterMonitor": FakeBlueZ.never]) {
      $0.local = .seconds(1)
    }
    await faults.fake.signal(Self.offered)
    await faults.central.scan(true, forEach: true)
    try await faults.fake.called("RegisterMonitor")
    try await faults.fake.called("StartDiscovery")
    await faults.central.scan(true)
    try await faults.fake.called("UnregisterMonitor")
    #expect(faults.fake.count("RegisterMonitor") == 1)
    #expect(await !faults.central.isMonitoring)
    try await faults.tested.end()
  }
}
