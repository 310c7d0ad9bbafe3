import TestSupport
import Testing

/// What the gateway publishes about itself and its devices.
@Suite struct BridgeTests {
  private static let bridge = "bridge/\(Fixture.gatewayID)"

  @Test("State, info and device list of the bridge are retained, with the documented keys")
  func bridgeTopics() async throws {
    var plan = Plan(devices: 2)
    plan.entries = """
      {"match":{"identifier":"D0:5A:00:00:C0:DE"},"id":"kitchen","name":"Kitchen","area":"Ground floor"},
      {"match":{"name_prefix":"BBC micro:bit"}}
      """
    try await withFixture(plan) { fixture in
      let other = try await fixture.id(1)
      try await fixture.bridgeOnline()
      let devices = try await fixture.message("\(Self.bridge)/devices") { message in
        (try? message.json())?.array?.filter { $0["session"]?.string == "live" && $0["serial"] != nil }.count
          == 2
      }.json()
      let kitchen = try #require(devices.array?.first { $0["id"]?.string == "kitchen" })
      #expect(
        kitchen.keys == [
          "id", "session", "adapter", "paired", "name", "bluetooth_name", "area", "identifier", "owner",
          "profile", "properties", "enabled", "rssi", "last_connected", "connected_since", "model",
          "firmware", "serial",
        ])
      try #require(devices.array?.contains { $0["id"]?.string == other } == true)

      let info = try await fixture.message("\(Self.bridge)/info") { message in
        (try? message.json())?["broker"]?["connected"]?.bool == true
          && (try? message.json())?["adapters"]?.array?.first?["state"]?.string == "on"
      }.json()
      #expect(
        info.keys == [
          "version", "started", "run", "adapters", "broker", "devices", "permit_join", "counters", "spool",
        ])
      let version = try ChildProcess(try program("microbit-gateway"), ["version"])
      _ = try await version.exitStatus(within: Fixture.patience)
      #expect(version.text == "microbit-gateway \(info["version"]?.string ?? "")")
      #expect(isTimestamp(info["started"]?.string))
      let reading = try await fixture.reading("kitchen") { _ in true }
      #expect(info["run"]?.string == reading.run)
      let adapter = try #require(info["adapters"]?.array?.first)
      #expect(adapter["name"]?.string == "hci0")
      #expect(adapter["address"]?.string?.wholeMatch(of: /([0-9A-F]{2}:){5}[0-9A-F]{2}/) != nil)
      let broker = try #require(info["broker"])
      #expect(broker["host"]?.string == "127.0.0.1")
      #expect(broker["port"]?.int == Int(fixture.broker.port))
      #expect(broker["protocol"]?.string == "5")
      #expect(isTimestamp(broker["connected_since"]?.string))
      #expect(broker["connects"]?.int == 1)
      #expect(info["spool"]?.keys == ["messages", "bytes", "lost"])
      #expect(
        info["counters"]?.keys == [
          "readings", "malformed", "commands", "over_limit", "sent", "queued", "lost", "rejected_by_broker",
        ])

      let device = try await fixture.simulator.device(0)
      let described = try await fixture.message("kitchen/info") { $0.text.contains("serial") }.json()
      #expect(
        described.keys == [
          "name", "bluetooth_name", "area", "identifier", "owner", "profile", "properties", "enabled", "rssi",
          "last_connected", "connected_since", "model", "firmware", "serial",
        ])
      #expect(described["name"]?.string == "Kitchen")
      #expect(described["bluetooth_name"]?.string == device.name)
      #expect(described["identifier"]?.string == device.address)
      #expect(described["owner"]?.string == Fixture.gatewayID)
      #expect(described["profile"]?.string == "microbit")
      #expect((-100 ... -20).contains(described["rssi"]?.int ?? 0))
      #expect(isTimestamp(described["connected_since"]?.string))

      for object in ["gateway_fixture", "d05a0000c0de", other] {
        _ = try await fixture.observer.message(
          "homeassistant/device/ble_\(object)/config", within: Fixture.patience
        ) { !$0.payload.isEmpty }
      }
      let kept = try await fixture.retained()
      #expect(kept["\(Self.bridge)/state"]?.text == "online")
      #expect(kept["\(Self.bridge)/info"] != nil)
      #expect(kept["\(Self.bridge)/devices"] != nil)
      for id in ["kitchen", other] {
        let properties = ["temperature", "period", "availability", "info"]
        #expect(properties.allSatisfy { kept["\(id)/\($0)"] != nil })
      }
      #expect(kept.count == 11 + 3, "11 topics and three announcements to Home Assistant")
      let mark = try fixture.observer.mark
      try await fixture.vanish(0, "kitchen")
      // The list says why it has no link.
      try await fixture.message("\(Self.bridge)/devices", after: mark) { message in
        (try? message.json())?.array?.contains {
          $0["id"]?.string == "kitchen" && $0["last_error"]?.string?.contains("the link ended") == true
        } == true
      }
      try await fixture.message("kitchen/info", after: mark) {
        (try? $0.json())?["connected_since"] == nil
      }
    }
  }

  @Test("While many micro:bits connect, the device list is published at 32 KiB/s at most")
  func manyDevices() async throws {
    try await withFixture(Plan(devices: 100, period: 1000, simulator: ["--connect-ms", "1"])) { fixture in
      for device in try await fixture.simulator.devices() { try await fixture.online(device.id) }
      try await fixture.message("\(Self.bridge)/devices") { message in
        message.text.ranges(of: #""session":"live""#).count == 100
      }
      let lists = try fixture.observer.messages(on: "microbit/\(Self.bridge)/devices")
      let first = try #require(lists.first)
      let last = try #require(lists.last)
      let bytes = lists.dropLast().reduce(0) { $0 + $1.payload.count }
      let seconds = first.arrived.duration(to: last.arrived) / .seconds(1)
      // Measured on arrival, and the first may have been late. A list for each change would be some 0.8 MiB.
      #expect(Double(bytes) < (seconds + 2) * 32 * 1024, "\(lists.count) lists in \(seconds) s")
      for (first, second) in zip(lists, lists.dropFirst()) { #expect(first.payload != second.payload) }
    }
  }
}
