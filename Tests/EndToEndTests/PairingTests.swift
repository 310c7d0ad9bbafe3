import TestSupport
import Testing

/// Micro:bits that require pairing.
@Suite("Pairing") struct PairingTests {
  /// One micro:bit that requires pairing; `members` are added to its entry.
  private static func plan(_ method: String, _ members: String = "") -> Plan {
    Plan(simulator: ["--pairing", method], entries: #"{"match":{"name_prefix":"BBC micro:bit"}\#(members)}"#)
  }

  @Test("A device that wants pairing is not paired with, and log, health and info say how to pair")
  func askedFor() async throws {
    try await withFixture(Self.plan("just_works")) { fixture in
      let device = try await fixture.simulator.device(0)
      let id = device.id
      let command = "sudo microbit-gateway pair \(id)"
      let info = "\(fixture.bridge)/info"
      try await fixture.message(info) { $0.text.contains(#""pairing":"\#(command)""#) }
      try await fixture.logged(command)
      try #require(try fixture.lines(with: command).count == 1)
      let health = try await fixture.perform("health")
      let finding = try #require(health["findings"]?.array?.first { $0["check"]?.string == "device" })
      try #require(finding["level"]?.string == "fault")
      try #require(finding["remedy"]?.string?.hasSuffix(command) == true)
      try #require(try await !fixture.simulator.device(0).isBonded)
      try #require(try fixture.lines(with: "pairing device").isEmpty)
      let mark = try fixture.observer.mark
      let request = #"{"id":"\#(id)"}"#
      try #require(try await fixture.perform("device/pair", request)["paired"]?.bool == true)
      try await fixture.online(id)
      try await fixture.message(info, after: mark) { !$0.text.contains("pairing") }
    }
  }

  @Test("A device that could not be used is paired with as soon as its entry has `pair`")
  func pairByReload() async throws {
    try await withFixture(Self.plan("just_works")) { fixture in
      try await fixture.logged("it probably requires pairing")
      let entries = #"{"match":{"name_prefix":"BBC micro:bit"},"pair":true}"#
      #expect(try await fixture.reload(entries: entries) == .array([]))
      let topic = "microbit/\(try await fixture.id())/availability"
      try await fixture.synchronizeGateway()
      // The next attempt would come after a minute.
      _ = try await fixture.observer.message(topic, after: 0, within: .seconds(40)) { $0.text == "online" }
    }
  }

  @Test("A device with \"pair\": false is not even paired with by request; the other one is served")
  func neverPaired() async throws {
    var plan = Plan(devices: 2)
    plan.absent = [.gateway]
    plan.entries = #"{"match":{"name_prefix":"BBC micro:bit"},"pair":false}"#
    try await withFixture(plan) { fixture in
      try await fixture.simulator.control("pairing", 0, #""on":true"#)
      try fixture.startGateway()
      let id = try await fixture.simulator.device(0).id
      try await fixture.waitForState("subscribing")
      let refusal = try await fixture.refusal("device/pair", #"{"id":"\#(id)"}"#)
      try #require(refusal == #"the entry of \#(id) in config.json has "pair": false"#)
      try await fixture.logged("it probably requires pairing")
      try #require(try await !fixture.simulator.device(0).isBonded)
      try await fixture.online(try await fixture.id(1))
    }
  }

  @Test("With a passkey in the entry, only a device that asks for it is paired with")
  func passkeyInTheEntry() async throws {
    try await withFixture(Self.plan("passkey", #","pair":true,"passkey":100000"#)) { fixture in
      let id = try await fixture.id()
      try await fixture.online(id)
      try #require(try await fixture.simulator.device(0).isBonded)
    }
    try await withFixture(Self.plan("just_works", #","passkey":100000"#)) { fixture in
      let id = try await fixture.simulator.device(0).id
      try await fixture.waitForState("subscribing")
      let refusal = try await fixture.refusal("device/pair", #"{"id":"\#(id)"}"#)
      try #require(refusal == "it does not ask for the passkey: it may be another device than expected")
      try #require(try await !fixture.simulator.device(0).isBonded)
    }
  }

  @Test("A device with `pair` is paired before it is used, and again when its bond is lost")
  func automaticPairing() async throws {
    try await withFixture(Self.plan("just_works", #","pair":true"#)) { fixture in
      let id = try await fixture.id()
      try await fixture.online(id)
      try await fixture.moreReadings(id, 3)
      try #require(try await fixture.listed(id)?["paired"]?.bool == true)
      let mark = try fixture.observer.mark
      try await fixture.simulator.control("forget", 0)
      try await fixture.simulator.control("disconnect", 0)
      let offline = try await fixture.offline(id, after: mark)
      try await fixture.online(id, after: offline.number)
      try await fixture.logged("it has lost its pairing")
      try await eventually("it is logged") { try fixture.lines(with: " paired ").count == 2 }
      try #require(try fixture.lines(with: "it has lost its pairing").count == 1)

      // The bond survives restarts of bluetoothd and of the gateway.
      var restart = try fixture.observer.mark
      try await fixture.simulator.control(#"{"op":"restart","how":"term","ms":50}"#)
      let gone = try await fixture.offline(id, after: restart)
      try await fixture.online(id, after: gone.number)
      try #require(try fixture.lines(with: " paired ").count == 2)
      restart = try fixture.observer.mark
      try await fixture.restartGateway()
      try await fixture.online(id, after: restart)
      try await fixture.moreReadings(id, 3)
      try #require(try fixture.lines(with: " paired ").isEmpty)
    }
  }

  /// bluetoothd tells the identity address with the bond, and its next start makes another object of it.
  @Test("A paired device with private addresses stays the same over restarts of bluetoothd and the gateway")
  func privateAddresses() async throws {
    var plan = Self.plan("just_works", #","pair":true"#)
    plan.absent = [.gateway]
    try await withFixture(plan) { fixture in
      let identity = "C0:FF:EE:00:00:01"
      let device = try await fixture.simulator.control("pairing", 0, #""identity":"\#(identity)""#)
      let id = device.id
      try fixture.startGateway()
      try await fixture.online(id)
      try await fixture.moreReadings(id, 3)
      try #require(try await fixture.simulator.device(0).address == identity)
      for isGateway in [false, true] {
        let mark = try fixture.observer.mark
        try await fixture.simulator.control(#"{"op":"restart","how":"term","ms":50}"#)
        let gone = try await fixture.offline(id, after: mark)
        if isGateway { try await fixture.restartGateway() }
        try await fixture.online(id, after: gone.number)
        try await fixture.moreReadings(id, 3)
      }
      let listed = try #require(try await fixture.listed(id))
      #expect(listed["identifier"]?.string == device.address)
      try #require(try await fixture.perform("devices").array?.count == 1)
      // Both addresses name it.
      for address in [identity, device.address] {
        let inspection = try await fixture.perform("device/inspect", #"{"identifier":"\#(address)"}"#)
        #expect(inspection["device"]?.string == id)
      }
      let unpaired = try await fixture.perform("device/unpair", #"{"identifier":"\#(identity)"}"#)
      try #require(unpaired["paired"]?.bool == false)
      // A command without a gateway knows it, too.
      _ = try await fixture.stopGateway()
      let scan = try await fixture.command(["scan", "--timeout", "1"]).text
      #expect(scan.contains(device.address), "\(scan)")
    }
  }

  @Test("The passkey is sent with a second request; a wrong one is refused")
  func passkey() async throws {
    try await withFixture(Self.plan("passkey")) { fixture in
      let id = try await fixture.id()
      try await fixture.waitForState("subscribing")
      for _ in 0..<3 {
        let answer = try await fixture.perform("device/pair", #"{"id":"\#(id)"}"#)
        try #require(answer["passkey_required"]?.bool == true)
        let refusal = try await fixture.refusal("device/pair", #"{"id":"\#(id)","passkey":99999}"#)
        try #require(refusal == "wrong passkey")
      }
      // The command asks again after a typo and after a wrong passkey.
      let pair = try TerminalProcess(
        try program("microbit-gateway"), ["pair", id, "--config", fixture.folder.path + "/config.json"],
        environment: fixture.environment)
      try await pair.answer("Enter its six digits within 30 s", "12345")
      try await pair.answer("A passkey has six digits. Enter it again", "099999")
      try await pair.shows("wrong passkey: once more")
      try await pair.answer("Enter its six digits within 30 s", "100000")
      #expect(try await pair.exitStatus() == 0 && pair.text.contains("\(id) is paired"), "\(pair.text)")
      try await fixture.online(id)
      try await fixture.moreReadings(id, 3)
    }
  }

  @Test("Failed attempts are refused with the reason; a later one succeeds, and unpairing removes the bond")
  func failedAttempts() async throws {
    try await withFixture(Self.plan("just_works")) { fixture in
      let device = try await fixture.simulator.device(0)
      let id = device.id
      try await fixture.waitForState("subscribing")
      let request = #"{"identifier":"\#(device.address)"}"#
      try await fixture.simulator.control("pairing", 0, #""pairs":false"#)
      try #require(try await fixture.refusal("device/pair", request).hasPrefix("it refuses to pair"))
      try await fixture.simulator.control("pairing", 0, #""fault":"drop""#)
      try #require(try await fixture.refusal("device/pair", request) == "the link ended while pairing")
      try #require(try await fixture.perform("device/pair", request)["paired"]?.bool == true)
      try await fixture.online(id)
      // It is paired already.
      try #require(try await fixture.perform("device/pair", request)["paired"]?.bool == true)
      let mark = try fixture.observer.mark
      try #require(try await fixture.perform("device/unpair", request)["paired"]?.bool == false)
      try await fixture.offline(id, after: mark)
      try await fixture.simulator.waitUntil(0, "the bond is gone") { !$0.isBonded }
      try #require(try await fixture.listed(id)?["paired"]?.bool == false)
    }
  }

  @Test("pair, bonds and unpair on the command line")
  func terminal() async throws {
    try await withFixture(Self.plan("passkey")) { fixture in
      let device = try await fixture.simulator.device(0)
      try await fixture.waitForState("subscribing")
      func run(_ words: String...) async throws -> (status: Int32, text: String) {
        try await fixture.command(words)
      }
      // Without a terminal the passkey cannot be entered.
      let withoutPasskey = try await run("pair", device.address)
      try #require(
        withoutPasskey.status == 1 && withoutPasskey.text.contains("--passkey"), "\(withoutPasskey)")
      let wrong = try await run("pair", device.address, "--passkey", "99999")
      try #require(wrong.status == 1 && wrong.text.contains("wrong passkey"), "\(wrong)")
      let paired = try await run("pair", device.address, "--passkey", "100000")
      try #require(paired.status == 0 && paired.text.hasSuffix("is paired"), "\(paired)")
      let bonds = try await run("bonds")
      try #require(bonds.status == 0 && bonds.text.contains(device.address), "\(bonds)")
      let unpaired = try await run("unpair", device.address)
      try #require(unpaired.status == 0 && unpaired.text.hasSuffix("is no longer paired"), "\(unpaired)")
      try #require(try await run("bonds").text == "no device is paired")
    }
  }
}

extension Fixture {
  /// Waits until a device is listed in this state.
  fileprivate func waitForState(_ state: String) async throws {
    _ = try await message("\(bridge)/devices") { $0.text.contains(#""session":"\#(state)""#) }
  }
}
