import TestSupport
import Testing

/// Which peripherals become devices, and with which ids.
@Suite struct DiscoveryTests {
  private static let kitchen = "C5:A1:B2:C3:D4:E5"

  @Test("Every micro:bit with the prefix comes online and publishes its temperature", arguments: [1, 3, 10])
  func byPrefix(count: Int) async throws {
    try await withFixture(Plan(devices: count, period: 200)) { fixture in
      let devices = try await fixture.simulator.devices()
      try #require(devices.count == count)
      for device in devices {
        try await fixture.online(device.id)
        let temperature = try await fixture.message("\(device.id)/temperature")
        try #require(Int(temperature.text) != nil)
        try await fixture.message("\(device.id)/period", "200")
      }
      let now = try await fixture.simulator.devices()
      try #require(now.allSatisfy { $0.isConnected && $0.isNotifying })
    }
  }

  @Test("An entry with an identifier matches one micro:bit, which gets the configured id")
  func byIdentifier() async throws {
    var plan = Plan(devices: 3)
    plan.simulator = ["--address", "1=\(Self.kitchen)"]
    plan.entries = """
      {"match":{"identifier":"\(Self.kitchen.lowercased())"},"id":"kitchen","name":"Küche","area":"Home"}
      """
    try await withFixture(plan) { fixture in
      try await fixture.online("kitchen")
      let info = try await fixture.message("kitchen/info") { $0.text.contains("connected_since") }.json()
      #expect(info["identifier"]?.string == Self.kitchen)
      #expect(info["name"]?.string == "Küche")
      #expect(info["area"]?.string == "Home")
      try #require(try await fixture.readings("kitchen", upTo: 5).count == 5)
      let connected = try await fixture.simulator.devices().filter(\.isConnected)
      try #require(connected.map(\.address) == [Self.kitchen])
      try #require(try fixture.deviceIDs == ["kitchen"])
    }
  }

  @Test("The first matching entry wins")
  func firstEntryWins() async throws {
    var plan = Plan(devices: 3)
    plan.simulator = ["--address", "0=\(Self.kitchen)", "--address", "1=C5:00:00:00:00:01"]
    plan.entries = """
      {"match":{"identifier":"\(Self.kitchen)"},"id":"kitchen"},
      {"match":{"name_prefix":"BBC micro:bit"},"period":70},
      {"match":{"identifier":"C5:00:00:00:00:01"},"id":"late","period":90}
      """
    try await withFixture(plan) { fixture in
      try await fixture.online("kitchen")
      try await fixture.message("kitchen/period", "50")
      // The prefix comes before the identifier, so this one gets neither the id nor the period of the last entry.
      try await fixture.online("c50000000001")
      try await fixture.message("c50000000001/period", "70")
      try await fixture.online(try await fixture.id(2))
      try #require(try fixture.deviceIDs == ["kitchen", "c50000000001", try await fixture.id(2)])
    }
  }

  @Test("The id of a prefix goes to the first micro:bit that matches; the others have their addresses as ids")
  func idOfPrefix() async throws {
    var plan = Plan(devices: 3)
    plan.entries = #"{"match":{"name_prefix":"BBC micro:bit"},"id":"classroom"}"#
    try await withFixture(plan) { fixture in
      try await fixture.online("classroom")
      let info = try await fixture.message("classroom/info").json()
      let devices = try await fixture.simulator.devices()
      let others = devices.filter { $0.address != info["identifier"]?.string }
      try #require(others.count == 2)
      for device in others { try await fixture.online(device.id) }
      try #require(try fixture.deviceIDs == Set(others.map(\.id) + ["classroom"]))
    }
  }

  @Test("Peripherals without a matching entry are not connected")
  func unmatchedPeripherals() async throws {
    var plan = Plan(devices: 2, decoys: 5)
    plan.absent = [.gateway]
    try await withFixture(plan) { fixture in
      let monitor = try await BusMonitor(fixture.bus)
      try fixture.startGateway()
      let devices = try await fixture.simulator.devices()
      for device in devices.prefix(2) {
        try await fixture.online(device.id)
        _ = try await fixture.readings(device.id, upTo: 10)
      }
      let now = try await fixture.simulator.devices()
      try #require(now.count == 7)
      try #require(now.map(\.isConnected) == [true, true, false, false, false, false, false])
      try #require(try await monitor.calls(of: "Connect") == 2)
      try #require(try fixture.deviceIDs == Set(devices.prefix(2).map(\.id)))
    }
  }

  @Test("A device without the temperature service is reported once, and disconnected")
  func missingService() async throws {
    var plan = Plan(devices: 1, decoys: 1)
    plan.absent = [.gateway]
    plan.entries = """
      {"match":{"name_prefix":"BBC micro:bit"}}, {"match":{"name_prefix":"Polar"},"id":"odd"}
      """
    try await withFixture(plan) { fixture in
      let monitor = try await BusMonitor(fixture.bus)
      try fixture.startGateway()
      try await fixture.logged("no Bluetooth temperature service")
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
      try #require(try fixture.lines(with: "no Bluetooth temperature service").count == 1)
      // A device that was never online has no topics.
      try #require(try fixture.observer.messages.allSatisfy { !$0.topic.hasPrefix("microbit/odd/") })
    }
  }
}
