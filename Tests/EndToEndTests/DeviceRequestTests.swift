import TestSupport
import Testing

/// Requests that add, remove, rename, change and reconnect devices.
@Suite struct DeviceRequestTests {
  private static let first = "D0:5A:00:00:C0:DE"
  private static let kitchen = #"{"match":{"identifier":"\#(first)"},"id":"kitchen"}"#

  private static func plan(devices: Int = 1, entries: String = kitchen) -> Plan {
    Plan(devices: devices, entries: entries)
  }

  private static func discovery(_ id: String) -> String { "homeassistant/device/ble_\(id)/config" }

  // MARK: Add

  @Test("A micro:bit without an entry is used when it is added, in range or not, and known after a restart")
  func add() async throws {
    try await withFixture(Self.plan(devices: 2)) { fixture in
      try await fixture.online("kitchen")
      try await fixture.simulator.control("vanish", 1)
      let other = try await fixture.simulator.device(1)
      // Its letters, if the gateway has seen it before.
      let first = try #require(
        try await fixture.perform("device/add", #"{"identifier":"\#(other.address)"}"#)["id"]?.string)
      #expect(try await fixture.listed(first)?["session"]?.string == "absent")
      try await fixture.offline(first)
      // Again, with options.
      let data = try await fixture.perform(
        "device/add",
        #"{"identifier":"\#(other.address.lowercased())","id":"cellar","area":"Home","period":70}"#)
      #expect(data["id"]?.string == "cellar")
      #expect(data["identifier"]?.string == other.address)
      try await fixture.simulator.control("return", 1)
      try await fixture.online("cellar")
      try await fixture.message("cellar/period", "70")
      #expect(try await fixture.simulator.device(1).period == 70)
      #expect(try await fixture.retained(of: first).isEmpty)
      let mark = try fixture.observer.mark
      try await fixture.restartGateway()
      try await fixture.online("cellar", after: mark)
      let info = try await fixture.message("cellar/info", after: mark) { $0.text.contains("connected_since") }
      #expect(try info.json()["area"]?.string == "Home")
      let check = try await fixture.check()
      #expect(check.contains("added by a request"))
      #expect(check.contains(/id +cellar +request/))
      #expect(check.contains(/area +Home +request/))
      #expect(check.contains(/period +70 ms +request/))
    }
  }

  @Test("A property that is taken out while the gateway runs is unsubscribed from")
  func propertyTakenOut() async throws {
    func entry(_ properties: String) -> String {
      #"{"match":{"identifier":"\#(Self.first)"},"id":"kitchen","properties":\#(properties)}"#
    }
    let (one, both) = (#"["button_a"]"#, #"["temperature","button_a"]"#)
    let reloaded = entry(one)
    var plan = Self.plan(entries: entry(both))
    plan.simulator = ["--services", "temperature,buttons"]
    try await withFixture(plan) { fixture in
      try await fixture.online("kitchen")
      let monitor = try await BusMonitor(fixture.bus)
      var mark = try fixture.observer.mark
      try await fixture.perform("device/options", #"{"id":"kitchen","options":{"properties":\#(one)}}"#)
      try await fixture.message("kitchen/temperature", "", after: mark)
      try await fixture.online("kitchen", after: mark)
      try await Self.expect(stops: 2, starts: 1, monitor)
      mark = try fixture.observer.mark
      try await fixture.perform("device/options", #"{"id":"kitchen","options":{"properties":null}}"#)
      try await fixture.message("kitchen/temperature", after: mark) { !$0.text.isEmpty }
      try await fixture.online("kitchen", after: mark)
      try await Self.expect(stops: 3, starts: 3, monitor)
      // By a reload as well.
      mark = try fixture.observer.mark
      _ = try await fixture.reload(entries: reloaded)
      try await fixture.online("kitchen", after: mark)
      try await Self.expect(stops: 5, starts: 4, monitor)
    }
  }

  /// `online` may be published again before the link is made anew.
  private static func expect(stops: Int, starts: Int, _ monitor: BusMonitor) async throws {
    @Sendable func counts() async throws -> [Int] {
      let calls = try await monitor.calls(of: ["StopNotify", "StartNotify"])
      return ["StopNotify", "StartNotify"].map { member in calls.count { $0 == member } }
    }
    try await eventually("\(stops) calls of StopNotify and \(starts) of StartNotify") {
      let now = try await counts()
      return now[0] >= stops && now[1] >= starts
    }
    try #require(try await counts() == [stops, starts])
  }

  // MARK: Remove

  @Test("A removed device has no topics, stays removed despite a matching entry, and can be added again")
  func remove() async throws {
    var plan = Self.plan(entries: #"{"match":{"name_prefix":"BBC micro:bit"}}"#)
    // So that notifications are always in flight, and a slow machine can keep up.
    plan.period = 10
    plan.simulator = ["--disconnect-ms", "300"]
    try await withFixture(plan) { fixture in
      let device = try await fixture.simulator.device(0)
      try await fixture.online(device.id)
      try await fixture.message("\(device.id)/period")
      _ = try await fixture.observer.message(Self.discovery(device.id), within: Fixture.patience) {
        !$0.payload.isEmpty
      }
      try await fixture.perform(
        "device/options", #"{"id":"\#(device.id)","options":{"name":"K","area":"A","period":70}}"#)
      try await fixture.perform("device/remove", #"{"id":"\#(device.id)"}"#)
      _ = try await fixture.observer.message(
        Self.discovery(device.id), within: Fixture.patience, where: \.payload.isEmpty)
      try await fixture.simulator.waitUntil(0, "it is disconnected") { !$0.isConnected }
      #expect(try await fixture.retained(of: device.id).isEmpty)
      #expect(try await fixture.retained()[Self.discovery(device.id)] == nil)
      #expect(try await fixture.perform("devices").array?.isEmpty == true)

      try await fixture.restartGateway()
      try await fixture.logged("scanning adapter=")
      let found = try await fixture.perform("scan", #"{"timeout":4}"#).array ?? []
      #expect(found.map { $0["identifier"]?.string } == [device.address])
      #expect(try await fixture.perform("devices").array?.isEmpty == true)
      #expect(try await fixture.retained(of: device.id).isEmpty)
      #expect(try await fixture.check().contains("removed by a request"))

      let mark = try fixture.observer.mark
      try await fixture.perform("device/add", #"{"identifier":"\#(device.address)"}"#)
      try await fixture.online(device.id, after: mark)
      try await fixture.message("\(device.id)/temperature", after: mark)
      // Its settings from requests are gone.
      let listed = try await fixture.listed(device.id)
      #expect(listed?["name"]?.string == device.name)
      #expect(listed?["area"] == nil && listed?["desired"] == nil)
      _ = try await fixture.observer.message(Self.discovery(device.id), after: mark, within: Fixture.patience)
      {
        !$0.payload.isEmpty
      }
      // While notifications arrive.
      for _ in 0..<10 {
        let mark = try fixture.observer.mark
        try await fixture.perform("device/remove", #"{"id":"\#(device.id)"}"#)
        try await fixture.perform("device/add", #"{"identifier":"\#(device.address)"}"#)
        try await fixture.message("\(device.id)/readings", after: mark)
      }
    }
  }

  // MARK: Rename

  @Test("A renamed device moves its topics, keeps its link, and has its new id after a restart")
  func rename() async throws {
    try await withFixture(Self.plan(devices: 2, entries: #"{"match":{"name_prefix":"BBC micro:bit"}}"#)) {
      fixture in
      let device = try await fixture.simulator.device(0)
      for index in 0..<2 { try await fixture.online(try await fixture.id(index)) }
      for topic in ["period", "temperature"] { try await fixture.message("\(device.id)/\(topic)") }
      try await fixture.message("\(device.id)/info") { $0.text.contains("firmware") }
      let old = Set(try await fixture.retained(of: device.id).keys)
      #expect(old.count == 4)
      let monitor = try await BusMonitor(fixture.bus)
      let mark = try fixture.observer.mark
      let data = try await fixture.perform("device/rename", #"{"id":"\#(device.id)","to":"kitchen"}"#)
      #expect(data == .object(["from": .string(device.id), "to": .string("kitchen")]))
      try await fixture.online("kitchen", after: mark)
      try await fixture.moreReadings("kitchen", 3)
      let kept = try await fixture.retained()
      #expect(kept.keys.filter { $0.hasPrefix("\(device.id)/") }.isEmpty)
      #expect(
        Set(kept.keys.filter { $0.hasPrefix("kitchen/") }.map { $0.dropFirst("kitchen/".count) })
          == Set(old.map { $0.dropFirst(device.id.count + 1) }))
      // It stays the same device in Home Assistant, with other topics.
      let announced = try await fixture.observer.message(
        Self.discovery(device.id), after: mark, within: Fixture.patience
      ) { $0.text.contains("microbit/kitchen/") }
      #expect(!announced.text.contains("microbit/\(device.id)/"))
      // The link was kept.
      #expect(try fixture.observer.messages(on: "microbit/kitchen/availability").map(\.text) == ["online"])
      #expect(try await monitor.calls(of: "Connect") == 0)
      #expect(try await monitor.calls(of: "Disconnect") == 0)
      #expect(try await fixture.setPeriod("kitchen", "60")["status"]?.string == "applied")

      let restart = try fixture.observer.mark
      try await fixture.restartGateway()
      try await fixture.online("kitchen", after: restart)
      #expect(try await fixture.retained(of: device.id).isEmpty)
      #expect(try await fixture.check().contains(/id +kitchen +request/))

      // Several renames, online and offline.
      for (from, to) in [("kitchen", "a"), ("a", "kitchen"), ("kitchen", "a"), ("a", "b"), ("b", "kitchen")] {
        try await fixture.perform("device/rename", #"{"id":"\#(from)","to":"\#(to)"}"#)
      }
      try await fixture.moreReadings("kitchen", 2)
      let last = try await fixture.retained()
      #expect(last["kitchen/availability"]?.text == "online")
      #expect(last["kitchen/info"] != nil && last["kitchen/period"] != nil)
      #expect(last.keys.allSatisfy { !$0.hasPrefix("a/") && !$0.hasPrefix("b/") })
      try await fixture.vanish(0, "kitchen")
      try await fixture.perform("device/rename", #"{"id":"kitchen","to":"cellar"}"#)
      try await fixture.offline("cellar")
      #expect(try await fixture.retained(of: "kitchen").isEmpty)
      try await fixture.simulator.control("return", 0)
      try await fixture.online("cellar")
    }
  }

  // MARK: Options

  @Test("A new name and area are published at once and stored; null restores the configured ones")
  func nameAndArea() async throws {
    let entries = """
      {"match":{"identifier":"\(Self.first)"},"id":"kitchen","name":"Küche","area":"Home"}
      """
    try await withFixture(Self.plan(entries: entries)) { fixture in
      try await fixture.online("kitchen")
      let mark = try fixture.observer.mark
      let data = try await fixture.perform(
        "device/options", #"{"id":"kitchen","options":{"name":"Kitchen","area":"Attic"}}"#)
      #expect(data["name"]?.string == "Kitchen")
      try await fixture.message("kitchen/info", after: mark) { message in
        let info = try? message.json()
        return info?["name"]?.string == "Kitchen" && info?["area"]?.string == "Attic"
      }
      let id = String(Self.first.lowercased().filter { $0 != ":" })
      _ = try await fixture.observer.message(Self.discovery(id), after: mark, within: Fixture.patience) {
        $0.text.contains(#""Kitchen""#) && $0.text.contains(#""Attic""#)
      }
      #expect(try fixture.stayedOnline("kitchen", after: mark))
      try await fixture.restartGateway()
      #expect(try await fixture.listed("kitchen")?["name"]?.string == "Kitchen")
      #expect(try await fixture.check().contains(/name +Kitchen +request/))
      try await fixture.perform("device/options", #"{"id":"kitchen","options":{"name":null}}"#)
      let listed = try await fixture.listed("kitchen")
      #expect(listed?["name"]?.string == "Küche")
      #expect(listed?["area"]?.string == "Attic")
      try await fixture.stored(#""changes":{"area":"Attic"}"#)
      let check = try await fixture.check()
      #expect(check.contains(/name +Küche +config.json/))
      #expect(check.contains(/area +Attic +request/))
    }
  }

  @Test("A disabled device is disconnected, also after a restart, and reconnects when it is enabled")
  func enabled() async throws {
    try await withFixture(Self.plan(devices: 2, entries: #"{"match":{"name_prefix":"BBC micro:bit"}}"#)) {
      fixture in
      let id = try await fixture.id(0)
      let other = try await fixture.id(1)
      for id in [id, other] { try await fixture.online(id) }
      let mark = try fixture.observer.mark
      try await fixture.perform("device/options", #"{"id":"\#(id)","options":{"enabled":false}}"#)
      try await fixture.offline(id, after: mark)
      try await fixture.simulator.waitUntil(0, "it is disconnected") { !$0.isConnected }
      #expect(try await fixture.listed(id)?["session"]?.string == "disabled")
      let result = try await fixture.setPeriod(id, "60")
      #expect(result["status"]?.string == "failed")
      #expect(result["reason"]?.string?.contains("disabled") == true)
      #expect(try await fixture.refusal("device/reconnect", #"{"id":"\#(id)"}"#).contains("is disabled"))

      let restart = try fixture.observer.mark
      try await fixture.restartGateway()
      try await fixture.online(other, after: restart)
      // A scan finds it, but does not connect it.
      let found = try await fixture.perform("scan", #"{"timeout":4}"#).array ?? []
      #expect(found.contains { $0["device"]?.string == id && $0["connected"]?.bool == false })
      #expect(try await fixture.simulator.devices().map(\.isConnected) == [false, true])
      #expect(try await fixture.listed(id)?["session"]?.string == "disabled")
      #expect(try await fixture.check().contains(/enabled +false +request/))

      let enable = try fixture.observer.mark
      try await fixture.perform("device/options", #"{"id":"\#(id)","options":{"enabled":null}}"#)
      try await fixture.online(id, after: enable)
      #expect(try await fixture.setPeriod(id, "60")["status"]?.string == "applied")
    }
  }

  // MARK: Reconnect
}
