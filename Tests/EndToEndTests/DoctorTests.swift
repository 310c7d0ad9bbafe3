import Glibc
import TestSupport
import Testing

/// `doctor` reports each fault with its remedy.
@Suite struct DoctorTests {
  private static func plan(_ absent: Set<Plan.Part> = [.gateway]) -> Plan {
    Plan(absent: absent)
  }

  /// Runs `doctor` to its end.
  private static func doctor(
    _ fixture: Fixture, _ options: [String] = [], configuration: String = "config.json"
  ) async throws -> (status: Int32, text: String) {
    let process = try ChildProcess(
      try program("microbit-gateway"),
      ["doctor", "--config", "\(fixture.folder.path)/\(configuration)"] + options,
      environment: fixture.environment)
    return (try await process.exitStatus(within: .seconds(120)), process.text)
  }

  /// Runs `doctor`, and expects a finding with the remedy on the next line.
  private static func runExpectingFinding(
    _ level: String, _ check: String, _ fault: String, _ remedy: String, in fixture: Fixture
  ) async throws {
    let (status, text) = try await doctor(fixture)
    try #require(status == (level == "fault" ? 1 : 0), "\(text)")
    try expectFinding(level, check, fault, remedy, in: text)
  }

  private static func expectFinding(
    _ level: String, _ check: String, _ fault: String, _ remedy: String, in text: String
  ) throws {
    let lines = text.split(separator: "\n")
    let index = try #require(
      lines.firstIndex { $0.hasPrefix(level) && $0.contains(" \(check) ") && $0.contains(fault) }, "\(text)")
    try #require(lines.count > index + 1 && lines[index + 1].contains("→"), "\(text)")
    try #require(lines[index + 1].contains(remedy), "\(text)")
  }

  private static func isFine(_ check: String, in text: String) -> Bool {
    text.split(separator: "\n").contains { $0.hasPrefix("ok ") && $0.contains(" \(check) ") }
  }

  // MARK: No faults

  @Test("Without a gateway, all checks pass; neither a link nor a retained message is left")
  func allChecksPass() async throws {
    try await withFixture(Self.plan()) { fixture in
      let (status, text) = try await Self.doctor(fixture)
      try #require(status == 0, "\(text)")
      for check in ["configuration", "state", "bus", "bluetoothd", "adapter", "broker", "topics", "retained"]
      {
        try #require(Self.isFine(check, in: text), "\(check): \(text)")
      }
      try #require(text.contains("not paired, offers temperature, period"), "\(text)")
      try await fixture.simulator.waitUntil(0, "its link is ended") { !$0.isConnected }
      try #require(try await fixture.retained().keys.allSatisfy { !$0.contains("doctor") })
    }
  }

  @Test("With a running gateway, its state is shown, and it is not disturbed")
  func gatewayRuns() async throws {
    try await withFixture { fixture in
      let id = try await fixture.id()
      try await fixture.online(id)
      let mark = try fixture.observer.mark
      let (status, text) = try await Self.doctor(fixture)
      try #require(status == 0, "\(text)")
      try #require(text.contains("\(id): live"), "\(text)")
      try #require(text.contains("the gateway fixture has been running"), "\(text)")
      try #require(!text.contains("is not running"), "\(text)")
      try await fixture.moreReadings(id, 3)
      try #require(try fixture.observer.messages(on: "microbit/\(id)/availability", after: mark).isEmpty)
      try #require(try fixture.observer.messages(on: "microbit/bridge/fixture/state", after: mark).isEmpty)
      try #require(try fixture.lines(with: "request refused").isEmpty)
      try #require(try await fixture.retained().keys.allSatisfy { !$0.contains("doctor") })
    }
  }

  @Test("--json is a list of findings")
  func json() async throws {
    try await withFixture(Self.plan([.gateway, .simulator])) { fixture in
      let (status, text) = try await Self.doctor(fixture, ["--json"])
      try #require(status == 1)
      let list = try JSON.parse(Array(text.utf8)).array ?? []
      let fault = try #require(list.first { $0["level"]?.string == "fault" })
      #expect(fault["check"]?.string == "bluetoothd")
      #expect(fault["text"]?.string == "bluetoothd is not running")
      #expect(fault["remedy"]?.string?.contains("systemctl enable --now bluetooth") == true)
    }
  }

  // MARK: Faults

  @Test("With an adapter that cannot scan, no device is reported as out of range")
  func cannotScan() async throws {
    try await withFixture(Self.plan()) { fixture in
      try await fixture.simulator.control(#"{"op":"scan","on":false}"#)
      let (status, text) = try await Self.doctor(fixture)
      try #require(status == 1, "\(text)")
      try Self.expectFinding("fault", "adapter", "hci0 cannot scan", "systemctl restart bluetooth", in: text)
      try #require(!text.contains("in range"), "\(text)")
    }
  }

  @Test("The D-Bus policy denies bluetoothd: one fault, with its remedy, until the policy allows it")
  func unauthorized() async throws {
    try await withFixture(Self.plan()) { fixture in
      try fixture.bus.setPolicy(
        #"<policy context="mandatory"><deny send_destination="org.bluez"/></policy>"#)
      try await eventually("the policy is in force") {
        let ping = try ChildProcess(
          "/usr/bin/dbus-send",
          [
            "--bus=" + fixture.bus.address, "--print-reply", "--dest=org.bluez", "/",
            "org.freedesktop.DBus.Peer.Ping",
          ])
        try await ping.exitStatus(within: Fixture.patience)
        return ping.text.contains("AccessDenied")
      }
      let gateway = try fixture.startGateway()
      try await fixture.message("bridge/fixture/info") { $0.text.contains(#""state":"unauthorized""#) }
      let (status, text) = try await Self.doctor(fixture)
      try #require(status == 1, "\(text)")
      try Self.expectFinding(
        "fault", "bluetoothd", "the D-Bus policy does not let the user", "sudo usermod -aG bluetooth",
        in: text)
      try #require(text.contains("1 fault, ") && !text.contains("apt install dbus"), "\(text)")
      try #require(!gateway.text.contains("apt install dbus"), "\(gateway.text)")
      try fixture.bus.setPolicy("")
      try await fixture.online(try await fixture.id())
    }
  }

  @Test("A fault that the running gateway also has is counted once")
  func faultsAreCountedOnce() async throws {
    try await withFixture { fixture in
      try await fixture.online(try await fixture.id())
      let mark = try fixture.observer.mark
      try await fixture.simulator.control(#"{"op":"power","on":false}"#)
      try await fixture.message("bridge/fixture/info", after: mark) { $0.text.contains(#""state":"off""#) }
      let (_, off) = try await Self.doctor(fixture)
      try Self.expectFinding("fault", "adapter", "the adapter hci0 is off", "bluetoothctl power on", in: off)
      try #require(off.contains("1 fault, "), "\(off)")
      try await fixture.simulator.control(#"{"op":"power","on":true}"#)
      try await fixture.broker.kill()
      try await fixture.logged("the broker cannot be reached")
      let (_, away) = try await Self.doctor(fixture)
      try #require(away.contains("1 fault, "), "\(away)")
    }
  }

  @Test("Another gateway uses the adapter")
  func adapterInUse() async throws {
    try await withFixture(Self.plan()) { fixture in
      let other = try fixture.startGateway(as: "second")
      try await fixture.online(try await fixture.id())
      let (status, text) = try await Self.doctor(fixture)
      try #require(status == 1, "\(text)")
      try Self.expectFinding(
        "fault", "adapter", "adapter hci0 is used by another gateway (process \(other.pid))",
        "sudo systemctl stop microbit-gateway", in: text)
    }
  }

  @Test("A running gateway is found even if the configuration cannot be parsed")
  func invalidSyntaxWhileGatewayRuns() async throws {
    try await withFixture { fixture in
      try await fixture.online(try await fixture.id())
      try fixture.folder.write("{", to: "bad.json")
      let (status, text) = try await Self.doctor(fixture, configuration: "bad.json")
      try #require(status == 1)
      try Self.expectFinding("fault", "configuration", "bad.json:1:2: ", "correct it", in: text)
      try #require(text.contains("the gateway fixture has been running"), "\(text)")
      try #require(!text.contains("is used by another gateway"), "\(text)")
      // It would not start again with that.
      try fixture.folder.write("{", to: "config.json")
      let (_, changed) = try await Self.doctor(fixture)
      try #require(changed.contains("correct its mistakes first"), "\(changed)")
    }
  }

  @Test("A micro:bit that requires pairing is reported, with and without a gateway")
  func pairing() async throws {
    var plan = Self.plan()
    plan.isLong = true
    plan.entries = #"{"match":{"name_prefix":"BBC micro:bit"},"id":"kitchen"}"#
    try await withFixture(plan) { fixture in
      try await fixture.simulator.control("pairing", 0, #""on":true"#)
      try await Self.runExpectingFinding(
        "fault", "device", "kitchen: no readings: it probably requires pairing",
        "microbit-gateway pair kitchen", in: fixture)
      try fixture.startGateway()
      try await fixture.logged("it probably requires pairing")
      try await Self.runExpectingFinding(
        "fault", "device", "kitchen: no readings: it probably requires pairing",
        "microbit-gateway pair kitchen", in: fixture)
      let health = try await fixture.perform("health")
      #expect(health["healthy"]?.bool == true)
      let finding = try #require(health["findings"]?.array?.first)
      #expect(finding["check"]?.string == "device")
      #expect(finding["level"]?.string == "fault")
      #expect(finding["text"]?.string == "kitchen: no readings: it probably requires pairing")
    }
  }

  @Test("A micro:bit that is not in range of a running gateway is a warning")
  func notInRange() async throws {
    var plan = Self.plan()
    plan.entries = #"{"match":{"identifier":"C5:A1:B2:C3:D4:FF"},"id":"attic"}"#
    try await withFixture(plan) { fixture in
      try fixture.startGateway()
      try await fixture.bridgeOnline()
      try await fixture.logged("scanning")
      try await Self.runExpectingFinding(
        "warning", "device", "attic: not in range", "microbit-gateway scan", in: fixture)
    }
  }

  @Test("With a gateway that cannot scan, no device is out of range; its links keep it from a reset")
  func cannotScanBesideALink() async throws {
    var plan = Self.plan([])
    plan.entries += #",{"match":{"identifier":"C5:A1:B2:C3:D4:FF"},"id":"attic"}"#
    try await withFixture(plan) { fixture in
      let device = try await fixture.simulator.device(0)
      try await fixture.online(device.id)
      // The discovery that runs goes on, until the next connect.
      try await fixture.simulator.control(#"{"op":"scan","on":false}"#)
      try await fixture.simulator.control("disconnect", 0)
      try await fixture.logged("cannot scan: trying again")
      try await fixture.moreReadings(device.id, 1)
      let (status, text) = try await Self.doctor(fixture)
      try #require(status == 1, "\(text)")
      try Self.expectFinding(
        "fault", "adapter", "hci0 cannot scan", "the gateway does not reset it", in: text)
      try #require(!text.contains("in range"), "\(text)")
    }
  }

  @Test("Notifications taken by another program are reported, with and without a gateway")
  func notificationsTaken() async throws {
    try await withFixture(Self.plan()) { fixture in
      try await fixture.leaveNotificationsStuck()
      let (_, text) = try await Self.doctor(fixture)
      try Self.expectFinding(
        "fault", "device", "another Bluetooth program receives the values of temperature",
        "sudo systemctl restart bluetooth", in: text)
      try fixture.startGateway()
      try await fixture.logged("receives the values of temperature: reading it instead")
      try await Self.runExpectingFinding(
        "fault", "device", "another Bluetooth program receives the values of temperature",
        "sudo systemctl restart bluetooth", in: fixture)
    }
  }

  @Test("Several faults at once are all reported")
  func severalFaults() async throws {
    var plan = Self.plan([.gateway, .simulator, .bus, .broker])
    plan.files = ["state": ""]
    plan.entries = #"{"period":0}"#
    try await withFixture(plan) { fixture in
      let (status, text) = try await Self.doctor(fixture)
      try #require(status == 1)
      try Self.expectFinding("fault", "configuration", "0 is below 20", "correct it", in: text)
      try Self.expectFinding("fault", "state", "/state is not a folder", "mv ", in: text)
      try Self.expectFinding("fault", "bus", "no D-Bus", "dbus", in: text)
      try Self.expectFinding(
        "fault", "broker", "the broker cannot be reached", "is a broker running here?", in: text)
      try #require(text.split(separator: "\n").last?.hasPrefix("4 faults, ") == true, "\(text)")
    }
  }
}
