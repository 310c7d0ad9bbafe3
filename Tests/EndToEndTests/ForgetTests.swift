import FoundationEssentials
import Glibc
import TestSupport
import Testing

/// The command `forget`, and the id that a gateway keeps.
@Suite struct ForgetTests {
  private static func plan() -> Plan {
    Plan(entries: #"{"match":{"identifier":"D0:5A:00:00:C0:DE"},"id":"kitchen"}"#)
  }

  @Test("forget clears everything that the gateway and its devices have published, and nothing else")
  func clears() async throws {
    try await withFixture(Self.plan()) { fixture in
      try await fixture.online("kitchen")
      try await fixture.message("kitchen/info") { $0.text.contains("firmware") }
      try await fixture.observer.publish("microbit/hall/info", #"{"owner":"other"}"#, retain: true)
      try await fixture.observer.publish("homeassistant/device/other/config", "{}", retain: true)
      #expect(try await fixture.stopGateway() == 0)
      let before = try await fixture.retained()
      #expect(before["kitchen/temperature"] != nil && before["bridge/fixture/state"] != nil)
      #expect(before.keys.contains { $0.hasPrefix("homeassistant/device/ble_") })
      // A gateway that is stopping has its database until the end.
      let lock = open(fixture.folder.path + "/state/fixture.db.lock", O_RDWR | O_CLOEXEC)
      #expect(lock >= 0 && flock(lock, LOCK_EX) == 0)
      let stopping = try await fixture.command(["forget", "--yes"])
      #expect(stopping.status == 69 && stopping.text.contains("still stopping"), "\(stopping.text)")
      close(lock)
      let (status, text) = try await fixture.command(["forget", "--yes"])
      #expect(status == 0, "\(text)")
      #expect(
        text.contains("cleared \(before.count - 2) retained messages of the gateway fixture and its 1 device")
      )
      #expect(
        Set(try await fixture.retained().keys) == ["hall/info", "homeassistant/device/other/config"])
      let again = try await fixture.command(["forget", "--yes"])
      #expect(again.status == 0 && again.text.contains("retains nothing of the gateway fixture"))
      try fixture.folder.write(
        #"{"gateway":{"id":"fixture"},"mqtt":{"host":"127.0.0.1","port":1}}"#, to: "config.json")
      let refused = try await fixture.command(["forget", "--yes"])
      #expect(refused.status == 69 && refused.text.contains("refused"), "\(refused.text)")
    }
  }

  @Test("forget refuses while the gateway runs, and without a terminal or --yes")
  func refuses() async throws {
    try await withFixture(Self.plan()) { fixture in
      try await fixture.online("kitchen")
      let running = try await fixture.command(["forget", "--yes"])
      #expect(
        running.status == 69 && running.text.contains("the gateway fixture is running"), "\(running.text)")
      // On another machine: no socket here.
      let elsewhere = try await fixture.command(
        ["forget", "--yes"], prefix: ["/usr/bin/env", "RUNTIME_DIRECTORY=\(fixture.folder.path)/none"])
      #expect(elsewhere.status == 69 && elsewhere.text.contains("is running"), "\(elsewhere.text)")
      let unasked = try await fixture.command(["forget"], prefix: ["/usr/bin/setsid", "-w"])
      #expect(unasked.status == 64 && unasked.text.contains("--yes"), "\(unasked.text)")
      #expect(try await fixture.retained()["kitchen/info"] != nil)
    }
  }

  @Test(
    "A gateway without an id in config.json keeps that of its first start when the host gets another name")
  func keepsItsID() async throws {
    var plan = Self.plan()
    plan.absent = [.gateway]
    try await withFixture(plan) { fixture in
      let text = fixture.configuration(Self.plan().entries).replacing(
        #""gateway": { "id": "fixture" },"#, with: "")
      try fixture.folder.write(text, to: "config.json")
      // Of an earlier start, when the host had this name.
      mkdir(fixture.folder.path + "/state", 0o700)
      try fixture.folder.write("old-name\n", to: "state/gateway-id")
      try fixture.startGateway()
      try await fixture.message("bridge/old-name/state", "online")
      #expect(try await fixture.check().contains(/id +old-name/))
      #expect(try await fixture.stopGateway() == 0)
      unlink(fixture.folder.path + "/state/gateway-id")
      try fixture.startGateway()
      try await fixture.logged("started")
      let id = try #require(try fixture.lines(with: "started").first?.firstMatch(of: /gateway=(\S+)/)?.1)
      try await fixture.message("bridge/\(id)/state", "online")
      let stored = try String(contentsOfFile: fixture.folder.path + "/state/gateway-id", encoding: .utf8)
      #expect(stored == "\(id)\n" && id != "old-name")
    }
  }
}
