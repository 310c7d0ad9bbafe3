import DBus
import TestSupport
import Testing

/// Subscriptions that fail as on a real bluetoothd: every micro:bit must be served.
@Suite struct SubscriptionTests {
  @Test("A property whose notifications bluetoothd refuses is polled until bluetoothd restarts")
  func stuck() async throws {
    try await withFixture(Plan(absent: [.gateway])) { fixture in
      try await fixture.leaveNotificationsStuck()
      let monitor = try await BusMonitor(fixture.bus)
      try fixture.startGateway()
      let id = try await fixture.id()
      try await fixture.online(id)
      // Once a second.
      try await fixture.moreReadings(id, 3)
      try #require(try await fixture.setPeriod(id, "70")["status"]?.string == "applied")
      try #require(try fixture.lines(with: "sudo systemctl restart bluetooth").count == 1)
      // Either would make bluetoothd crash.
      try #require(try await monitor.calls(of: "StopNotify") == 0)
      try #require(try await monitor.calls(of: "RemoveDevice") == 0)
      let reads = try await monitor.calls(of: "ReadValue")
      try #require(reads >= 3)

      let mark = try fixture.observer.mark
      try await fixture.simulator.control(#"{"op":"restart","how":"term","ms":50}"#)
      let offline = try await fixture.offline(id, after: mark)
      try await fixture.online(id, after: offline.number)
      try await fixture.moreReadings(id, 5)
      try #require(try await fixture.simulator.device(0).isNotifying)
    }
  }
}

extension Fixture {
  /// Leaves the state after another program has failed to acquire the notifications by a socket.
  func leaveNotificationsStuck() async throws {
    let connection = try await DBusConnection.open(bus.address) { _ in }
    let address = try await simulator.device(0).address.replacing(":", with: "_")
    let device = "/org/bluez/hci0/dev_\(address)"
    @Sendable func call(
      _ method: String, _ interface: String, _ path: String, _ arguments: [DBusValue] = [],
      within limit: Duration = Fixture.patience
    ) async throws {
      _ = try await connection.call(
        DBusCall(method, on: "org.bluez.\(interface)", of: path, at: "org.bluez", arguments), timeout: limit)
    }
    try await call("StartDiscovery", "Adapter1", "/org/bluez/hci0")
    // The device exists once its advertisement was received.
    try await deadline(Fixture.patience, "a link") {
      while (try? await call("Connect", "Device1", device)) == nil {
        try await Task.sleep(for: .milliseconds(20))
      }
    }
    try await simulator.control("subscription", 0, #""fault":"error","code":14"#)
    let acquire = Task {
      try await call(
        "AcquireNotify", "GattCharacteristic1", "\(device)/service0015/char0016", [.properties([:])],
        within: .seconds(5))
    }
    try await simulator.waitUntil(0, "its notifications are stuck") { $0.isStuck }
    await connection.close()
    _ = try? await acquire.value
  }
}
