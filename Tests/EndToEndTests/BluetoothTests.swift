import TestSupport
import Testing

/// The bus, bluetoothd, the adapter or a micro:bit disappears and returns.
@Suite struct BluetoothTests {
  @Test("A missing bus is reported once, and devices come online when the bus appears")
  func busAbsentAtStart() async throws {
    var plan = Plan(devices: 2)
    plan.absent = [.bus]
    try await withFixture(plan) { fixture in
      try await fixture.logged("no D-Bus")
      try await fixture.message("bridge/\(Fixture.gatewayID)/info") {
        (try? $0.json())?["adapters"]?.array?.first?["state"]?.string == "absent"
      }
      try await fixture.bus.start()
      try await fixture.logged("bluetoothd is not running")
      try await fixture.startSimulator()
      for index in 0..<2 { try await fixture.online(try await fixture.id(index)) }
      try #require(try fixture.lines(with: "no D-Bus").count == 1)
      try #require(try fixture.lines(with: "bluetoothd is not running").count == 1)
    }
  }

  @Test("A micro:bit reconnects after the bus was killed and restarted")
  func busKilledAndBack() async throws {
    try await withFixture { fixture in
      let id = try await fixture.id()
      try await fixture.online(id)
      var mark = try fixture.observer.mark
      fixture.bus.kill()
      try await fixture.offline(id, after: mark)
      try await fixture.logged("no D-Bus")
      mark = try fixture.observer.mark
      try await fixture.bus.start()
      try await fixture.startSimulator()
      try await fixture.online(id, after: mark)
    }
  }

  @Test(
    "Micro:bits reconnect after bluetoothd was killed or terminated and restarted",
    arguments: ["kill", "term"])
  func bluetoothdRestarts(how: String) async throws {
    try await withFixture(Plan(devices: 3)) { fixture in
      let ids = try await fixture.simulator.devices().map(\.id)
      for id in ids { try await fixture.online(id) }
      try #require(try await fixture.setPeriod(ids[0], "40")["status"]?.string == "applied")
      let mark = try fixture.observer.mark
      try await fixture.simulator.control(#"{"op":"restart","how":"\#(how)","ms":50}"#)
      for id in ids {
        let offline = try await fixture.offline(id, after: mark)
        let online = try await fixture.online(id, after: offline.number)
        try await fixture.reading(id, after: online.number) { _ in true }
      }
      try #require(try fixture.lines(with: "bluetoothd is not running").count == 1)
      // Commands still reach the micro:bits.
      try #require(try await fixture.setPeriod(ids[1], "45")["status"]?.string == "applied")
      try await fixture.expectContiguousReadings(ids)
    }
  }

  @Test("After a restart of bluetoothd with reset micro:bits, the period is written again")
  func simulatorKilledAndBack() async throws {
    try await withFixture(Plan(period: 1000)) { fixture in
      let id = try await fixture.id()
      try await fixture.online(id)
      try #require(try await fixture.setPeriod(id, "40")["status"]?.string == "applied")
      let mark = try fixture.observer.mark
      try await fixture.killSimulator()
      let offline = try await fixture.offline(id, after: mark)
      try await fixture.startSimulator()
      try await fixture.online(id, after: offline.number)
      try await fixture.message("\(id)/period", "40", after: offline.number)
      try #require(try await fixture.simulator.device(0).period == 40)
    }
  }

  @Test("Micro:bits reconnect after the adapter was off or unplugged", arguments: ["power", "plug"])
  func adapterReturns(operation: String) async throws {
    try await withFixture(Plan(devices: 3)) { fixture in
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

  @Test("A micro:bit leaves the range and returns; the other one is unaffected")
  func vanish() async throws {
    try await withFixture(Plan(devices: 2)) { fixture in
      let id = try await fixture.id(0)
      let other = try await fixture.id(1)
      try await fixture.online(id)
      try await fixture.online(other)
      let mark = try fixture.observer.mark
      try await fixture.simulator.control("vanish", 0)
      let offline = try await fixture.offline(id, after: mark)
      try await fixture.moreReadings(other, 10)
      try await fixture.simulator.control("return", 0)
      let online = try await fixture.online(id, after: offline.number)
      try await fixture.reading(id, after: online.number) { _ in true }
      try await fixture.expectContiguousReadings([id, other])
      let states = try fixture.observer.messages(on: "microbit/\(other)/availability", after: mark)
      try #require(states.isEmpty)
    }
  }

  @Test("A micro:bit that disconnects is connected again")
  func microbitDisconnects() async throws {
    try await withFixture { fixture in
      let id = try await fixture.id()
      try await fixture.online(id)
      let mark = try fixture.observer.mark
      try await fixture.simulator.control("disconnect", 0)
      let offline = try await fixture.offline(id, after: mark)
      let online = try await fixture.online(id, after: offline.number)
      try await fixture.reading(id, after: online.number) { _ in true }
    }
  }

  @Test("Ten micro:bits that are reset at once are all connected again")
  func resetAll() async throws {
    try await withFixture(Plan(devices: 10, period: 200)) { fixture in
      let devices = try await fixture.simulator.devices()
      for device in devices { try await fixture.online(device.id) }
      let mark = try fixture.observer.mark
      for device in devices { try await fixture.simulator.control("reset", device.index) }
      for device in devices {
        let offline = try await fixture.offline(device.id, after: mark)
        try await fixture.online(device.id, after: offline.number)
      }
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
