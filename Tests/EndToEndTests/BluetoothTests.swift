import TestSupport
import Testing

/// Bus, bluetoothd and adapter go and come.
@Suite struct BluetoothTests {
  @Test("Without a bus the gateway says so once, and starts when there is one")
  func busAbsentAtStart() async throws {
    var plan = Plan(devices: 2)
    plan.absent = [.bus]
    try await withHouse(plan) { house in
      try await house.logged("no D-Bus")
      try await house.message("bridge/\(House.gatewayID)/info") {
        (try? $0.json())?["adapters"]?.array?.first?["state"]?.string == "absent"
      }
      try await house.bus.start()
      try await house.logged("bluetoothd is not running")
      try await house.startSimulator()
      for index in 0..<2 { try await house.online(try await house.id(index)) }
      try #require(try house.lines(with: "no D-Bus").count == 1)
      try #require(try house.lines(with: "bluetoothd is not running").count == 1)
    }
  }

  @Test("A bus that dies and returns")
  func busKilledAndBack() async throws {
    try await withHouse { house in
      let id = try await house.id()
      try await house.online(id)
      var mark = try house.observer.mark
      house.bus.kill()
      try await house.offline(id, after: mark)
      try await house.logged("no D-Bus")
      mark = try house.observer.mark
      try await house.bus.start()
      try await house.startSimulator()
      try await house.online(id, after: mark)
    }
  }

  @Test("bluetoothd is killed, or ends, and starts again", arguments: ["kill", "term"])
  func restart(how: String) async throws {
    try await withHouse(Plan(devices: 3)) { house in
      let ids = try await house.simulator.devices().map(\.id)
      for id in ids { try await house.online(id) }
      try #require(try await house.setPeriod(ids[0], "40")["status"]?.string == "applied")
      let mark = try house.observer.mark
      try await house.simulator.control(#"{"op":"restart","how":"\#(how)","ms":50}"#)
      for id in ids {
        let offline = try await house.offline(id, after: mark)
        let online = try await house.online(id, after: offline.number)
        try await house.reading(id, after: online.number) { _ in true }
      }
      try #require(try house.lines(with: "bluetoothd is not running").count == 1)
      // A command still reaches it.
      try #require(try await house.setPeriod(ids[1], "45")["status"]?.string == "applied")
      try await house.expectContiguousReadings(ids)
    }
  }

  @Test("Another bluetoothd, with micro:bits that know nothing any more")
  func simulatorKilledAndBack() async throws {
    try await withHouse(Plan(period: 1000)) { house in
      let id = try await house.id()
      try await house.online(id)
      try #require(try await house.setPeriod(id, "40")["status"]?.string == "applied")
      let mark = try house.observer.mark
      try await house.killSimulator()
      let offline = try await house.offline(id, after: mark)
      try await house.startSimulator()
      try await house.online(id, after: offline.number)
      try await house.message("\(id)/period", "40", after: offline.number)
      try #require(try await house.simulator.device(0).period == 40)
    }
  }

  @Test("The adapter is turned off and on", arguments: ["power", "plug"])
  func adapter(operation: String) async throws {
    try await withHouse(Plan(devices: 3)) { house in
      let ids = try await house.simulator.devices().map(\.id)
      for id in ids { try await house.online(id) }
      let mark = try house.observer.mark
      try await house.simulator.control(#"{"op":"\#(operation)","on":false}"#)
      for id in ids { try await house.offline(id, after: mark) }
      let state = operation == "power" ? "off" : "absent"
      let told = try await house.message("bridge/\(House.gatewayID)/info", after: mark) {
        (try? $0.json())?["adapters"]?.array?.first?["state"]?.string == state
      }
      try await house.simulator.control(#"{"op":"\#(operation)","on":true}"#)
      for id in ids {
        let online = try await house.online(id, after: told.number)
        try await house.reading(id, after: online.number) { _ in true }
      }
      try await house.message("bridge/\(House.gatewayID)/info", after: told.number) {
        (try? $0.json())?["adapters"]?.array?.first?["state"]?.string == "on"
      }
      try await house.expectContiguousReadings(ids)
    }
  }

  @Test("A micro:bit vanishes and returns; the others do not notice")
  func vanish() async throws {
    try await withHouse(Plan(devices: 2)) { house in
      let id = try await house.id(0)
      let other = try await house.id(1)
      try await house.online(id)
      try await house.online(other)
      let mark = try house.observer.mark
      try await house.simulator.control("vanish", 0)
      let offline = try await house.offline(id, after: mark)
      try await house.moreReadings(other, 10)
      try await house.simulator.control("return", 0)
      let online = try await house.online(id, after: offline.number)
      try await house.reading(id, after: online.number) { _ in true }
      try await house.expectContiguousReadings([id, other])
      let states = try house.observer.messages(on: "microbit/\(other)/availability", after: mark)
      try #require(states.isEmpty)
    }
  }

  @Test("A micro:bit that ends the link is connected again")
  func hangUp() async throws {
    try await withHouse { house in
      let id = try await house.id()
      try await house.online(id)
      let mark = try house.observer.mark
      try await house.simulator.control("disconnect", 0)
      let offline = try await house.offline(id, after: mark)
      let online = try await house.online(id, after: offline.number)
      try await house.reading(id, after: online.number) { _ in true }
    }
  }

  @Test("A micro:bit that is reset, all ten of them at once")
  func resetAll() async throws {
    try await withHouse(Plan(devices: 10, period: 200)) { house in
      let devices = try await house.simulator.devices()
      for device in devices { try await house.online(device.id) }
      let mark = try house.observer.mark
      for device in devices { try await house.simulator.control("reset", device.index) }
      for device in devices {
        let offline = try await house.offline(device.id, after: mark)
        try await house.online(device.id, after: offline.number)
      }
    }
  }
}

extension House {
  /// Fails if a reading so far is missing, or came twice.
  fileprivate func expectContiguousReadings(_ ids: [String]) async throws {
    for id in ids {
      let sequences = try readings(id).map(\.sequence)
      try #require(sequences == Array(1...sequences.count), "\(id)")
    }
  }
}
