import TestSupport
import Testing

/// The bus, bluetoothd, the adapter or a micro:bit disappears and returns.
@Suite struct BluetoothTests {
  @Test("A missing bus is reported once, also when it was killed; devices come online when it appears")
  func bus() async throws {
    try await withThreeAttempts(Plan(devices: 2, absent: [.bus])) { fixture in
      func expectDevices(after mark: Int) async throws -> [String] {
        try await fixture.startSimulator()
        let ids = try await fixture.simulator.devices().map(\.id)
        for id in ids { try await fixture.online(id, after: mark) }
        return ids
      }
      try await fixture.logged("no D-Bus")
      try await fixture.message("bridge/\(Fixture.gatewayID)/info") {
        (try? $0.json())?["adapters"]?.array?.first?["state"]?.string == "absent"
      }
      try await fixture.bus.start()
      try await fixture.logged("bluetoothd is not running")
      let ids = try await expectDevices(after: 0)
      try #require(try fixture.lines(with: "no D-Bus").count == 1)
      try #require(try fixture.lines(with: "bluetoothd is not running").count == 1)

      let mark = try fixture.observer.mark
      fixture.bus.kill()
      var offline = 0
      for id in ids { offline = max(offline, try await fixture.offline(id, after: mark).number) }
      try await fixture.bus.start()
      _ = try await expectDevices(after: offline)
      try #require(try fixture.lines(with: "no D-Bus").count == 2)

      // Without bus and broker it ends as quickly.
      fixture.bus.kill()
      try await fixture.broker.kill()
      try await fixture.logged("Connection refused")
      let start = ContinuousClock.now
      try #require(try await fixture.stopGateway() == 0)
      return start.duration(to: .now) < .seconds(5)
    }
  }

  @Test(
    "Micro:bits reconnect after bluetoothd was killed or terminated and restarted",
    arguments: ["kill", "term"])
  func bluetoothdRestarts(how: String) async throws {
    try await withFixture(Plan(devices: 3, absent: [.simulator])) { fixture in
      try await fixture.startSimulatorLast()
      let ids = try await fixture.simulator.devices().map(\.id)
      for id in ids { try await fixture.online(id) }
      try #require(try await fixture.setPeriod(ids[0], "40")["status"]?.string == "applied")
      let mark = try fixture.observer.mark
      let outages = try fixture.lines(with: "bluetoothd is not running").count
      try await fixture.simulator.control(#"{"op":"restart","how":"\#(how)","ms":50}"#)
      for id in ids {
        let offline = try await fixture.offline(id, after: mark)
        let online = try await fixture.online(id, after: offline.number)
        try await fixture.reading(id, after: online.number) { _ in true }
      }
      try #require(try fixture.lines(with: "bluetoothd is not running").count == outages + 1)
      // Commands still reach the micro:bits.
      try #require(try await fixture.setPeriod(ids[1], "45")["status"]?.string == "applied")
      try await fixture.expectContiguousReadings(ids)
    }
  }

  @Test("Micro:bits reconnect after the adapter was off or unplugged", arguments: ["power", "plug"])
  func adapterReturns(operation: String) async throws {
    try await withFixture(Plan(devices: 3, absent: [.simulator])) { fixture in
      try await fixture.startSimulatorLast()
      let ids = try await fixture.simulator.devices().map(\.id)
      for id in ids { try await fixture.online(id) }
      let mark = try fixture.observer.mark
      try await fixture.simulator.control(#"{"op":"\#(operation)","on":false}"#)
      for id in ids { try await fixture.offline(id, after: mark) }
      let state = operation == "power" ? "off" : "absent"
      let info = try await fixture.message("bridge/\(Fixture.gatewayID)/info", after: mark) {
        (try? $0.json())?["adapters"]?.array?.first?["state"]?.string == state
      }
      try await fixture.simulator.control(#"{"op":"\#(operation)","on":true}"#)
      for id in ids {
        let online = try await fixture.online(id, after: info.number)
        try await fixture.reading(id, after: online.number) { _ in true }
      }
      try await fixture.message("bridge/\(Fixture.gatewayID)/info", after: info.number) {
        (try? $0.json())?["adapters"]?.array?.first?["state"]?.string == "on"
      }
      try await fixture.expectContiguousReadings(ids)
    }
  }

  @Test("A micro:bit that disconnects or was out of range is connected again; the others are unaffected")
  func lostLinks() async throws {
    try await withFixture(Plan(devices: 10, period: 200, absent: [.simulator])) { fixture in
      try await fixture.startSimulatorLast()
      let ids = try await fixture.simulator.devices().map(\.id)
      for id in ids { try await fixture.online(id) }
      var mark = try fixture.observer.mark
      try await fixture.simulator.control("vanish", 0)
      try await fixture.simulator.control("disconnect", 1)
      let offline = try await fixture.offline(ids[0], after: mark)
      try await fixture.moreReadings(ids[2], 2)
      try await fixture.simulator.control("return", 0)
      let online = try await fixture.online(ids[0], after: offline.number)
      try await fixture.reading(ids[0], after: online.number) { _ in true }
      let disconnected = try await fixture.offline(ids[1], after: mark)
      try await fixture.online(ids[1], after: disconnected.number)
      for id in ids.dropFirst(2) {
        try #require(
          try fixture.observer.messages(on: "microbit/\(id)/availability", after: mark).isEmpty)
      }
      // All of them at once.
      mark = try fixture.observer.mark
      for index in ids.indices { try await fixture.simulator.control("reset", index) }
      for id in ids {
        let offline = try await fixture.offline(id, after: mark)
        let online = try await fixture.online(id, after: offline.number)
        try await fixture.reading(id, after: online.number) { _ in true }
      }
      try await fixture.expectContiguousReadings(ids)
    }
  }
}

extension Fixture {
  /// Fails if a reading so far is missing or duplicate.
  fileprivate func expectContiguousReadings(_ ids: [String]) async throws {
    for id in ids {
      let sequences = try readings(id).map(\.sequence)
      try #require(sequences == Array(1...sequences.count), "\(id)")
    }
  }
}
