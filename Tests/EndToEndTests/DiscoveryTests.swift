import Testing

/// Which peripherals become devices, and with which ids.
@Suite struct DiscoveryTests {
  private static let kitchen = "C5:A1:B2:C3:D4:E5"

  @Test(
    "An entry with an identifier matches one micro:bit, which gets the configured id; no other is connected")
  func byIdentifier() async throws {
    var plan = Plan(devices: 3, decoys: 5)
    plan.absent = [.gateway]
    plan.simulator = ["--address", "1=\(Self.kitchen)"]
    plan.entries = """
      {"match":{"identifier":"\(Self.kitchen.lowercased())"},"id":"kitchen","name":"Küche","area":"Home"}
      """
    try await withFixture(plan) { fixture in
      let monitor = try await BusMonitor(fixture.bus)
      try fixture.startGateway()
      try await fixture.online("kitchen")
      let info = try await fixture.message("kitchen/info") { $0.text.contains("connected_since") }.json()
      #expect(info["identifier"]?.string == Self.kitchen)
      #expect(info["name"]?.string == "Küche")
      #expect(info["area"]?.string == "Home")
      try #require(try await fixture.readings("kitchen", upTo: 10).count == 10)
      let devices = try await fixture.simulator.devices()
      try #require(devices.count == 8)
      try #require(devices.filter(\.isConnected).map(\.address) == [Self.kitchen])
      try #require(try await monitor.calls(of: "Connect") == 1)
      try #require(try fixture.deviceIDs == ["kitchen"])
    }
  }

  @Test("The id of a prefix goes to the first micro:bit that matches, which keeps it after a restart")
  func idOfPrefix() async throws {
    var plan = Plan(devices: 3)
    // It is sorted after the ids made from addresses.
    plan.entries = #"{"match":{"name_prefix":"BBC micro:bit"},"id":"zoo"}"#
    try await withFixture(plan) { fixture in
      try await fixture.online("zoo")
      let owner = try await fixture.message("zoo/info").json()["identifier"]?.string
      let others = try await fixture.simulator.devices().filter { $0.address != owner }
      try #require(others.count == 2)
      // The others have their addresses as ids.
      for device in others { try await fixture.online(device.id) }
      try #require(try fixture.deviceIDs == Set(others.map(\.id) + ["zoo"]))
      try #require(try await fixture.stopGateway() == 0)
      let mark = try fixture.observer.mark
      try fixture.startGateway()
      let info = try await fixture.message("zoo/info", after: mark) { $0.text.contains("connected_since") }
      try #require(try info.json()["identifier"]?.string == owner)
    }
  }

  @Test("A device without any of the services is reported once, and disconnected")
  func missingService() async throws {
    var plan = Plan(devices: 1, decoys: 1)
    plan.absent = [.gateway]
    plan.entries = """
      {"match":{"name_prefix":"BBC micro:bit"}}, {"match":{"name_prefix":"Polar"},"id":"odd"}
      """
    try await withFixture(plan) { fixture in
      let monitor = try await BusMonitor(fixture.bus)
      try fixture.startGateway()
      try await fixture.logged("no Bluetooth service")
      try await monitor.called("Disconnect")
      try await fixture.simulator.waitUntil(1, "it is disconnected") { !$0.isConnected }
      let good = try await fixture.id(0)
      // The other device is unaffected.
      _ = try await fixture.readings(good, upTo: 20)
      let devices = try await fixture.simulator.devices()
      try #require(devices.map(\.isConnected) == [true, false])
      // It is connected twice: bluetoothd may have cached the services of an earlier program the first time.
      try #require(try await monitor.calls(of: "Connect") == 3)
      try #require(try await monitor.calls(of: "RemoveDevice") == 1)
      try #require(try fixture.lines(with: "no Bluetooth service").count == 1)
      // A device that was never online has no topics.
      try #require(try fixture.observer.messages.allSatisfy { !$0.topic.hasPrefix("microbit/odd/") })
    }
  }
}
