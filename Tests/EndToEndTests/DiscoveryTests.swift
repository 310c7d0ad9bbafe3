import Testing

/// Which peripherals become devices, and under which names.
@Suite struct DiscoveryTests {
  @Test("Every micro:bit with the prefix comes online and tells its temperature", arguments: [1, 3, 10])
  func byPrefix(count: Int) async throws {
    try await withHouse(Plan(devices: count, period: 200)) { house in
      let devices = try await house.simulator.devices()
      #expect(devices.count == count)
      for device in devices {
        try await house.online(device.id)
        let temperature = try await house.message("\(device.id)/temperature")
        #expect(Int(temperature.text) != nil)
        try await house.message("\(device.id)/period", "200")
      }
      let now = try await house.simulator.devices()
      try #require(now.allSatisfy { $0.isConnected && $0.isNotifying })
    }
  }
}
