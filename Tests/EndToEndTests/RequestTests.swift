import TestSupport
import Testing

/// Requests that concern no single device, and the protocol versions.
@Suite struct RequestTests {
  @Test("The requests devices and health report the present state")
  func devicesAndHealth() async throws {
    try await withFixture(Plan(devices: 2)) { fixture in
      let ids = [try await fixture.id(0), try await fixture.id(1)]
      for id in ids { try await fixture.online(id) }
      let listed = try await fixture.perform("devices").array ?? []
      #expect(listed.compactMap { $0["id"]?.string } == ids.sorted())
      #expect(
        listed.allSatisfy { $0["session"]?.string == "live" && $0["owner"]?.string == Fixture.gatewayID })
      let health = try await fixture.perform("health")
      #expect(health["healthy"]?.bool == true)
      #expect(health["problems"] == .array([]))
      #expect(health["devices"] == .object(["known": .int(2), "online": .int(2)]))
      #expect(health["adapters"]?.array?.first?["state"]?.string == "on")
      #expect((health["resident_kib"]?.int ?? 0) > 1000)
      try await fixture.simulator.control(#"{"op":"power","on":false}"#)
      try await fixture.logged("the adapter hci0 is off")
      let unhealthy = try await fixture.perform("health")
      #expect(unhealthy["healthy"]?.bool == false)
      #expect(unhealthy["problems"] == .array([.string("the adapter hci0 is off")]))
      #expect(try await fixture.refusal("scan", "").contains("the Bluetooth adapter is missing or off"))
    }
  }

  @Test("Readings, commands and requests work with MQTT 3.1.1")
  func mqtt311() async throws {
    try await withFixture(Plan(mqtt: #""protocol":"3.1.1""#, absent: [.simulator])) { fixture in
      try await fixture.startSimulatorLast()
      // mosquitto's name for 3.1.1 is p2, for 5 it is p5.
      try await fixture.broker.logLine { $0.contains(/as microbit-gateway-fixture-[a-z0-9]+ \(p2/) }
      let id = try await fixture.id()
      try await fixture.online(id)
      let readings = try await fixture.readings(id, upTo: 10)
      try #require(readings.map(\.sequence) == Array(1...10))
      let answer = try await fixture.request("devices", #"{"transaction":"t"}"#)
      #expect(answer["transaction"]?.string == "t")
      #expect(answer["data"]?.array?.count == 1)
      let mark = try fixture.observer.mark
      try await fixture.perform("device/rename", #"{"id":"\#(id)","to":"kitchen"}"#)
      try await fixture.online("kitchen", after: mark)
      let result = try await fixture.setPeriod("kitchen", #"{"value":60,"transaction":"old"}"#)
      #expect(result["status"]?.string == "applied")
      #expect(result["transaction"]?.string == "old")
      try await fixture.perform("device/remove", #"{"id":"kitchen"}"#)
      #expect(try await fixture.retained(of: "kitchen").isEmpty)
      #expect(try await fixture.retained(of: id).isEmpty)
    }
  }

  @Test("A reconnect renews one link; the request adapter/reset powers the adapter off and on, and all links")
  func renewedLinks() async throws {
    try await withFixture(Plan(devices: 2)) { fixture in
      let ids = [try await fixture.id(0), try await fixture.id(1)]
      for id in ids { try await fixture.online(id) }
      let monitor = try await BusMonitor(fixture.bus)
      func expectNewLink(_ id: String, after mark: Int) async throws {
        let offline = try await fixture.offline(id, after: mark)
        let online = try await fixture.online(id, after: offline.number)
        try await fixture.reading(id, after: online.number) { _ in true }
      }
      var mark = try fixture.observer.mark
      try await fixture.perform("device/reconnect", #"{"id":"\#(ids[0])"}"#)
      try await expectNewLink(ids[0], after: mark)
      #expect(try await monitor.calls(of: "Connect") == 1)
      #expect(try await monitor.calls(of: "Disconnect") == 1)
      #expect(try fixture.stayedOnline(ids[1], after: mark))

      mark = try fixture.observer.mark
      #expect(try await fixture.perform("adapter/reset")["adapter"]?.string == "hci0")
      for id in ids { try await expectNewLink(id, after: mark) }
      // Nobody is asked to power it on.
      #expect(try fixture.lines(with: "is off").isEmpty)
      let infos = try fixture.observer.messages(on: "microbit/bridge/\(Fixture.gatewayID)/info", after: mark)
      #expect(infos.allSatisfy { $0.text.contains(#""state":"on""#) })
      #expect(
        try await fixture.refusal("adapter/reset", #"{"adapter":"hci7"}"#).contains("uses hci0, not \"hci7\"")
      )
    }
  }

  @Test(
    "A request or command of 1 MB is refused with either protocol version, and the next one is carried out",
    arguments: ["5", "3.1.1"])
  func megabyte(version: String) async throws {
    try await withFixture(Plan(mqtt: #""protocol":"\#(version)""#)) { fixture in
      let id = try await fixture.id()
      try await fixture.online(id)
      let payload = Array(#"{"transaction":""#.utf8) + Array(repeating: UInt8(ascii: "x"), count: 1 << 20)
      let answer = try await fixture.request("device/add", bytes: payload)
      #expect(answer["status"]?.string == "error")
      #expect(answer["error"]?.string?.contains("more than 65536 bytes") == true)
      #expect(try await fixture.perform("health")["healthy"]?.bool == true)
      let result = try await fixture.setPeriod(id, String(repeating: "7", count: 1_000_000))
      #expect(result["status"]?.string == "rejected")
      #expect(result["reason"]?.string?.contains("more than 4096 bytes") == true)
      #expect(try await fixture.setPeriod(id, "60")["status"]?.string == "applied")
    }
  }
}
