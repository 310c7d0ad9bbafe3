import TestSupport
import Testing

/// Requests that add, remove, rename, change and reconnect devices.
@Suite struct DeviceRequestTests {
  private static let first = "D0:5A:00:00:C0:DE"
  private static let kitchen = #"{"match":{"identifier":"\#(first)"},"id":"kitchen"}"#

  private static func plan(devices: Int = 1, entries: String = kitchen) -> Plan {
    var plan = Plan(devices: devices)
    plan.entries = entries
    return plan
  }

  private static func discovery(_ id: String) -> String { "homeassistant/device/ble_\(id)/config" }

  // MARK: Add

  @Test("A micro:bit without an entry comes online when it is added, and is still known after a restart")
  func add() async throws {
    try await withFixture(Self.plan(devices: 2)) { fixture in
      try await fixture.online("kitchen")
      let other = try await fixture.simulator.device(1)
      let data = try await fixture.perform(
        "device/add",
        #"{"identifier":"\#(other.address.lowercased())","id":"cellar","area":"Home","period":70}"#)
      #expect(data["id"]?.string == "cellar")
      #expect(data["identifier"]?.string == other.address)
      try await fixture.online("cellar")
      try await fixture.message("cellar/period", "70")
      #expect(try await fixture.simulator.device(1).period == 70)
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
    let (one, both) = (#"["temperature"]"#, #"["temperature","button_a"]"#)
    let reloaded = entry(one)
    var plan = Self.plan(entries: entry(both))
    plan.simulator = ["--services", "temperature,buttons"]
    try await withFixture(plan) { fixture in
      try await fixture.online("kitchen")
      let monitor = try await BusMonitor(fixture.bus)
      var mark = try fixture.observer.mark
      try await fixture.perform("device/options", #"{"id":"kitchen","options":{"properties":\#(one)}}"#)
      try await fixture.online("kitchen", after: mark)
      try await Self.expectStops(2, monitor)
      try #require(try await monitor.calls(of: "StartNotify") == 1)
      mark = try fixture.observer.mark
      try await fixture.perform("device/options", #"{"id":"kitchen","options":{"properties":null}}"#)
      try await fixture.online("kitchen", after: mark)
      // By a reload as well.
      mark = try fixture.observer.mark
      _ = try await fixture.reload(entries: reloaded)
      try await fixture.online("kitchen", after: mark)
      try await Self.expectStops(5, monitor)
    }
  }

  /// `online` may be published again before the link is made anew.
  private static func expectStops(_ count: Int, _ monitor: BusMonitor) async throws {
    try await deadline(Fixture.patience, "\(count) calls of StopNotify") {
      while try await monitor.calls(of: "StopNotify") < count { await Task.yield() }
    }
    try #require(try await monitor.calls(of: "StopNotify") == count)
  }

  private static let button = #"""
    "button":{"properties":{"button":{"service":"e95d9882-251d-470a-a062-fa1922dfa9a8",
      "characteristic":"e95dda90-251d-470a-a062-fa1922dfa9a8","access":["read","notify"],"type":"uint8"}}}
    """#

  @Test("If a reload removes the profile that a request has set, the entry's is used, and this is logged")
  func reloadRemovesRequestedProfile() async throws {
    var plan = Self.plan(devices: 2)
    plan.profiles = Self.button
    plan.simulator = ["--services", "temperature,buttons"]
    try await withFixture(plan) { fixture in
      try await fixture.online("kitchen")
      let other = try await fixture.simulator.device(1)
      try await fixture.perform("device/add", #"{"identifier":"\#(other.address)","profile":"button"}"#)
      try await fixture.online(other.id)
      let text = fixture.configuration(fixture.plan.entries).replacing(Self.button, with: "")
      try fixture.folder.write(text, to: "config.json")
      let mark = try fixture.observer.mark
      try await fixture.perform("reload")
      try await fixture.reading(other.id, after: mark) { _ in true }
      try #require(
        try fixture.lines(with: "the profile that a request named is gone: using microbit").count == 1)
    }
  }

  @Test("An absent device can be added, and added again with other options")
  func addAbsent() async throws {
    try await withFixture(Self.plan(devices: 2)) { fixture in
      try await fixture.online("kitchen")
      try await fixture.simulator.control("vanish", 1)
      let other = try await fixture.simulator.device(1)
      try await fixture.perform("device/add", #"{"identifier":"\#(other.address)"}"#)
      #expect(try await fixture.listed(other.id)?["session"]?.string == "absent")
      try await fixture.offline(other.id)
      try await fixture.perform(
        "device/add", #"{"identifier":"\#(other.address)","name":"Keller","period":70}"#)
      let mark = try fixture.observer.mark
      try await fixture.simulator.control("return", 1)
      try await fixture.online(other.id, after: mark)
      try await fixture.message("\(other.id)/period", "70")
      #expect(try await fixture.listed(other.id)?["name"]?.string == "Keller")
    }
  }

  @Test("A device pinned to another gateway cannot be added, and the attempt stores nothing")
  func addPinned() async throws {
    let attic = #"{"match":{"identifier":"D1:5A:00:01:C0:DE"},"id":"attic","gateway":"attic"}"#
    try await withFixture(Self.plan(devices: 2, entries: "\(Self.kitchen),\(attic)")) { fixture in
      try await fixture.online("kitchen")
      let error = try await fixture.refusal(
        "device/add", #"{"identifier":"D1:5A:00:01:C0:DE","name":"Mine"}"#)
      #expect(error.contains("pinned to another gateway"))
      try await fixture.reload(
        entries: "\(Self.kitchen),\(attic.replacing(#","gateway":"attic""#, with: ""))")
      try await fixture.online("attic")
      #expect(try await fixture.listed("attic")?["label"] == nil)
    }
  }

  // MARK: Remove

  @Test("A removed device has no topics, stays removed despite a matching entry, and can be added again")
  func remove() async throws {
    var plan = Self.plan(entries: #"{"match":{"name_prefix":"BBC micro:bit"}}"#)
    plan.period = 5
    plan.simulator = ["--disconnect-ms", "300"]
    try await withFixture(plan) { fixture in
      let device = try await fixture.simulator.device(0)
      try await fixture.online(device.id)
      try await fixture.message("\(device.id)/period")
      _ = try await fixture.observer.message(Self.discovery(device.id), within: Fixture.patience) {
        !$0.payload.isEmpty
      }
      try await fixture.perform("device/remove", #"{"id":"\#(device.id)"}"#)
      _ = try await fixture.observer.message(
        Self.discovery(device.id), within: Fixture.patience, where: \.payload.isEmpty)
      try await fixture.simulator.waitUntil(0, "it is disconnected") { !$0.isConnected }
      #expect(try await fixture.retained(of: device.id).isEmpty)
      #expect(try await fixture.retainedMessage(on: Self.discovery(device.id)) == nil)
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
      _ = try await fixture.observer.message(Self.discovery(device.id), after: mark, within: Fixture.patience)
      {
        !$0.payload.isEmpty
      }
    }
  }

  @Test("Removing a device discards its settings from requests and commands")
  func removeDiscardsSettings() async throws {
    try await withFixture(Self.plan()) { fixture in
      try await fixture.online("kitchen")
      try await fixture.perform(
        "device/options", #"{"id":"kitchen","options":{"name":"K","area":"A","period":70}}"#)
      try await fixture.message("kitchen/period", "70")
      try await fixture.perform("device/remove", #"{"id":"kitchen"}"#)
      let mark = try fixture.observer.mark
      try await fixture.perform("device/add", #"{"identifier":"\#(Self.first)"}"#)
      try await fixture.online("kitchen", after: mark)
      let listed = try await fixture.listed("kitchen")
      #expect(listed?["label"] == nil)
      #expect(listed?["area"] == nil)
      #expect(listed?["desired"] == nil)
    }
  }

  @Test("A device can be removed while notifications arrive")
  func removeDuringNotifications() async throws {
    var plan = Self.plan()
    // So that notifications are always in flight.
    plan.period = 1
    try await withFixture(plan) { fixture in
      try await fixture.bridgeOnline()
      for _ in 0..<20 {
        let mark = try fixture.observer.mark
        try await fixture.perform("device/add", #"{"identifier":"\#(Self.first)"}"#)
        try await fixture.message("kitchen/readings", after: mark)
        try await fixture.perform("device/remove", #"{"id":"kitchen"}"#)
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
    }
  }

  @Test("Retained topics are right after several renames, online and offline")
  func severalRenames() async throws {
    try await withFixture(Self.plan()) { fixture in
      try await fixture.online("kitchen")
      try await fixture.message("kitchen/period")
      for (from, to) in [("kitchen", "a"), ("a", "kitchen"), ("kitchen", "a"), ("a", "b"), ("b", "kitchen")] {
        try await fixture.perform("device/rename", #"{"id":"\#(from)","to":"\#(to)"}"#)
      }
      try await fixture.moreReadings("kitchen", 2)
      let kept = try await fixture.retained()
      #expect(kept["kitchen/availability"]?.text == "online")
      #expect(kept["kitchen/info"] != nil && kept["kitchen/period"] != nil)
      #expect(kept.keys.allSatisfy { !$0.hasPrefix("a/") && !$0.hasPrefix("b/") })
      let mark = try fixture.observer.mark
      try await fixture.simulator.control("vanish", 0)
      try await fixture.offline("kitchen", after: mark)
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

  @Test("A requested period is written, confirmed and stored; null restores the configured one")
  func period() async throws {
    let entries = #"{"match":{"identifier":"\#(Self.first)"},"id":"kitchen","period":80}"#
    try await withFixture(Self.plan(entries: entries)) { fixture in
      try await fixture.online("kitchen")
      try await fixture.message("kitchen/period", "80")
      try await fixture.perform("device/options", #"{"id":"kitchen","options":{"period":70}}"#)
      try await fixture.message("kitchen/period", "70")
      #expect(try await fixture.simulator.device(0).period == 70)
      try await fixture.message("kitchen/info") { (try? $0.json())?["desired"]?["period"]?.int == 70 }
      try await fixture.stored(#""desired":{"period":{"value":70,"source":"request"}}"#)
      #expect(try await fixture.check().contains(/period +70 ms +request/))
      let mark = try fixture.observer.mark
      try await fixture.perform("device/options", #"{"id":"kitchen","options":{"period":null}}"#)
      try await fixture.message("kitchen/period", "80", after: mark)
      #expect(try await fixture.simulator.device(0).period == 80)
      // There was no command, so there is no result.
      #expect(try fixture.observer.messages(on: "microbit/kitchen/period/result").isEmpty)
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

  // MARK: Errors

  @Test("The list of devices says why a device has no link")
  func lastError() async throws {
    var plan = Self.plan()
    plan.simulator = ["--timeout-ms", "100"]
    try await withFixture(plan) { fixture in
      try await fixture.online("kitchen")
      try await fixture.simulator.control("vanish", 0)
      try await fixture.offline("kitchen")
      func list(_ error: String) async throws {
        try await fixture.message("bridge/\(Fixture.gatewayID)/devices") { message in
          (try? message.json())?.array?.first?["last_error"]?.string?.contains(error) == true
        }
      }
      try await list("the link ended")
      try #require(
        try fixture.observer.messages.last { $0.topic.hasSuffix("kitchen/info") }?.text.contains("last_error")
          == false)
      try await fixture.simulator.control("return", 0)
      try await fixture.message("bridge/\(Fixture.gatewayID)/devices", after: try fixture.observer.mark) {
        message in
        let device = (try? message.json())?.array?.first
        return device?["session"]?.string == "live" && device?["last_error"] == nil
      }
    }
  }

  // MARK: Reconnect

  @Test("A reconnect ends the link and makes another; the other device is unaffected")
  func reconnect() async throws {
    try await withFixture(Self.plan(devices: 2, entries: #"{"match":{"name_prefix":"BBC micro:bit"}}"#)) {
      fixture in
      let id = try await fixture.id(0)
      let other = try await fixture.id(1)
      for id in [id, other] { try await fixture.online(id) }
      let monitor = try await BusMonitor(fixture.bus)
      let mark = try fixture.observer.mark
      try await fixture.perform("device/reconnect", #"{"id":"\#(id)"}"#)
      let offline = try await fixture.offline(id, after: mark)
      let online = try await fixture.online(id, after: offline.number)
      try await fixture.reading(id, after: online.number) { _ in true }
      #expect(try await monitor.calls(of: "Connect") == 1)
      #expect(try await monitor.calls(of: "Disconnect") == 1)
      #expect(try fixture.stayedOnline(other, after: mark))
    }
  }
}
