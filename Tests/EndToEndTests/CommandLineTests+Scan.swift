import TestSupport
import Testing

/// `scan` without a gateway.
extension CommandLineTests {
  private static func plan(_ absent: Set<Plan.Part> = []) -> Plan {
    Plan(devices: 3, decoys: 2, absent: absent.union([.gateway]))
  }

  @Test("scan lists the peripherals in range, as text and as JSON, whatever their names are")
  func scan() async throws {
    var plan = Self.plan()
    plan.simulator = ["--name", "0=\u{1B}[2J\n\u{202E}\"forged\"\\"]
    try await withFixture(plan) { fixture in
      let devices = try await fixture.simulator.devices()
      let (status, text) = try await Self.run(["scan", "--timeout", "4"], bus: fixture.bus.address)
      try #require(status == 0 && text.contains("forged"), "\(text)")
      for device in devices {
        try #require(text.contains(device.address) && (device.index == 0 || text.contains(device.name)))
      }
      try #require(!text.contains("\u{1B}") && !text.unicodeScalars.contains("\u{202E}"))
      let json = try await Self.run(["scan", "--json", "--timeout", "4"], bus: fixture.bus.address)
      try #require(json.status == 0)
      let list = try #require(try JSON.parse(json.text).array)
      try #require(Set(list.map { $0["identifier"]?.string }) == Set(devices.map(\.address)))
      try #require(Set(list.map { $0["name"]?.string }) == Set(devices.map(\.name)))
      for entry in list {
        try #require((-120...0).contains(entry["rssi"]?.int ?? 1) && entry["connected"]?.bool == false)
        try #require(entry["use"]?.string == "connect" || entry["use"]?.string == "ignored", "\(entry)")
      }
      // Nothing is left running.
      try #require(try await fixture.simulator.devices().allSatisfy { !$0.isConnected })
    }
  }

  @Test("scan without a bus: status 69")
  func scanWithoutBus() async throws {
    let (status, text) = try await Self.run(["scan", "--timeout", "1"])
    #expect(status == 69)
    #expect(text.split(separator: "\n").count == 1)
  }

  @Test(
    "scan without an adapter that is on: status 69",
    arguments: [("plug", "no Bluetooth adapter"), ("power", "off")])
  func scanWithoutAdapter(operation: String, reason: String) async throws {
    try await withFixture(Self.plan()) { fixture in
      try await fixture.simulator.control(#"{"op":"\#(operation)","on":false}"#)
      let (status, text) = try await Self.run(["scan", "--timeout", "1"], bus: fixture.bus.address)
      try #require(status == 69)
      try #require(text.contains(reason))
    }
  }

  @Test("scan with an adapter that is turned off meanwhile: what was found, the reason, and status 1")
  func scanIsCutShort() async throws {
    try await withFixture(Self.plan()) { fixture in
      let scan = try ChildProcess(
        try program("microbit-gateway"), ["scan", "--live", "--timeout", "20"],
        environment: ["DBUS_SYSTEM_BUS_ADDRESS": fixture.bus.address])
      let address = try await fixture.simulator.device(0).address
      _ = try await scan.line { $0.contains(address) }
      try await fixture.simulator.control(#"{"op":"power","on":false}"#)
      #expect(try await scan.exitStatus(within: Fixture.patience) == 1)
      #expect(scan.text.contains("the adapter hci0 is off"), "\(scan.text)")
    }
  }

  @Test("scan with an adapter that cannot scan: status 69, with the reason")
  func scanIsRefused() async throws {
    try await withFixture(Self.plan()) { fixture in
      try await fixture.simulator.control(#"{"op":"scan","on":false}"#)
      let (status, text) = try await Self.run(["scan"], bus: fixture.bus.address)
      try #require(status == 69)
      try #require(text.contains("hci0 cannot scan: InProgress"), "\(text)")
    }
  }
}
