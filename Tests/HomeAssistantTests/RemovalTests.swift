import EventLoop
import GATT
import MQTT
import TestSupport
import Testing

@testable import HomeAssistant

@Suite struct RemovalTests {
  let announced = Announced(
    prefix: "home/assistant",
    components: Platform.allCases.map { Announced.Component(key: $0.rawValue, platform: $0) })
  var removal: Removal { Removal(object: "ble_c5a1b2c3d4e5", announced: announced) }

  @Test func isWrittenAndReadBack() {
    let key = removal.topic.string
    #expect(key == "home/assistant/device/ble_c5a1b2c3d4e5/config")
    #expect(Removal(key: key, announced.json) == removal)
    // The longest id of a gateway.
    let gateway = Removal(object: "ble_gateway_" + String(repeating: "x", count: 64), announced: announced)
    #expect(Removal(key: gateway.topic.string, announced.json) == gateway)
  }

  @Test(arguments: [
    "", "gateway", "C5:A1:B2:C3:D4:E5", "home/assistant/device//config", "home/assistant/device/a+b/config",
    "homeassistant/device/ble_c5a1b2c3d4e5/config", "home/assistant/device/ble_c5a1b2c3d4e5/state",
    "home/assistant/device/microbit/c5a1b2c3d4e5/config", "home/assistant/device/config",
    "home/assistant/device/é/config",
  ])
  func otherKeysAreRejected(key: String) {
    #expect(Removal(key: key, announced.json) == nil)
  }

  @Test func recordWithoutAnnouncementIsRejected() {
    #expect(Removal(key: removal.topic.string, [:]) == nil)
  }

  /// Entities with the same platforms and unique ids, which publish and receive nothing.
  @Test func reannouncementContainsTheRemovedEntities() throws {
    let document = removal.reannouncement(qos: .atMostOnce)
    #expect(document.topic == removal.topic)
    let silent = "home/assistant/device/ble_c5a1b2c3d4e5/removed"
    let availability = #""avty": [{ "t": "\#(silent)" }]"#
    func entity(_ platform: String, _ topic: String, _ more: String = "") -> String {
      """
      "\(platform)": { "p": "\(platform)", "uniq_id": "ble_c5a1b2c3d4e5_\(platform)", \
      "\(topic)": "\(silent)", \(more)\(availability) }
      """
    }
    let state = #""stat_t": "\#(silent)", "#
    let trigger =
      #""atype": "trigger", "type": "device_automation", "stype": "device_automation", "#
    try expect(
      document,
      """
      { "dev": { "ids": ["ble_c5a1b2c3d4e5"] },
        "o": { "name": "microbit-gateway", "sw": "\(Version.current)" },
        \(availability), "avty_mode": "all",
        "cmps": { \(entity("binary_sensor", "stat_t")), \(entity("button", "cmd_t")),
          \(entity("device_automation", "t", trigger)), \(entity("event", "stat_t", #""evt_typ": [], "#)),
          \(entity("image", "img_t")), \(entity("notify", "cmd_t")),
          \(entity("number", "cmd_t", state + #""min": -2147483648, "max": 2147483647, "#)),
          \(entity("select", "cmd_t", state + #""ops": [], "#)), \(entity("sensor", "stat_t")),
          \(entity("switch", "cmd_t", state)), \(entity("text", "cmd_t", state)) } }
      """)
  }

  /// Whatever platforms a key has had: Home Assistant goes by platform and unique id.
  @Test func everyPlatformOfAKeyIsReannounced() throws {
    let period = [Platform.number, .select].map { Announced.Component(key: "period", platform: $0) }
    let removal = Removal(object: "ble_c5a1b2c3d4e5", announced: Announced(prefix: "ha", components: period))
    let components = try object(removal.reannouncement(qos: .atLeastOnce), "cmps")
    #expect(components.names == ["period", "period-select"])
    #expect(components.members.map { $0.value["p"] } == ["number", "select"])
    #expect(components.members.allSatisfy { $0.value["uniq_id"] == "ble_c5a1b2c3d4e5_period" })
  }
}

@Suite struct AnnouncementQueueTests {
  let address = BluetoothAddress("C5:A1:B2:C3:D4:E5")

  @Test func keepsTheOrderWithoutDuplicates() throws {
    let address = try #require(address)
    var queue = AnnouncementQueue()
    #expect(queue.isEmpty)
    #expect(queue.next(10).isEmpty)
    queue.append(.document(.gateway, .plain))
    queue.append(.document(.device(address), .plain))
    queue.append(.document(.device(address), .reannounce))
    queue.append(.document(.device(address), .plain))
    queue.append(.removal("a/device/b/config", .reannounce))
    #expect(Array(queue.next(2)) == [.document(.gateway, .plain), .document(.device(address), .plain)])
    // An announcement that was taken out can be added again.
    queue.append(.document(.gateway, .plain))
    #expect(!queue.isEmpty)
    #expect(
      Array(queue.next(10)) == [
        .document(.device(address), .reannounce), .removal("a/device/b/config", .reannounce),
        .document(.gateway, .plain),
      ])
    #expect(queue.isEmpty)
    queue.append(.document(.device(address), .remove))
    queue.append(.document(.device(address), .plain))
    #expect(Array(queue.next(1)) == [.document(.device(address), .remove)])
    queue.prepend(.document(.gateway, .remove))
    queue.prepend(.document(.device(address), .plain))
    #expect(Array(queue.next(3)) == [.document(.gateway, .remove), .document(.device(address), .plain)])
    #expect(queue.isEmpty)
  }

  /// Home Assistant has gone, and would not see what a document removes, or is to be removed later.
  @Test func whatWaitsRemovesNothing() throws {
    let address = try #require(address)
    var queue = AnnouncementQueue()
    queue.append(.document(.gateway, .remove))
    queue.append(.document(.device(address), .reannounce))
    queue.append(.removal("a", .reannounce))
    queue.append(.document(.device(address), .remove))
    queue.append(.removal("b", .remove))
    queue.append(.document(.device(address), .plain))
    queue.cancel { $0 != .removal("b", .remove) }
    let waiting = Array(queue.next(10))
    #expect(
      waiting == [
        .document(.gateway, .plain), .document(.device(address), .plain), .removal("b", .remove),
      ])
    #expect(queue.isEmpty)
  }
}

@LoopActor @Suite struct AnnouncementScheduleTests {
  @Test func announcementsWaitForASlowBroker() async throws {
    let schedule = AnnouncementSchedule()
    let made = Record<Announcement>()
    var questions = 0
    schedule.perform = {
      made.append($0)
      return true
    }
    schedule.hasBacklog = {
      questions += 1
      return questions < 4
    }
    schedule.append(.document(.gateway, .plain))
    _ = try await made.first(within: patience, "the announcement") { _ in true }
    #expect(questions == 4 && made.count == 1)
  }

  /// Home Assistant has gone: what waits is announced, and nothing follows.
  @Test(arguments: [Announcement.Stage.reannounce, .remove])
  func whatWaitsWhenFollowUpsAreCancelledRemovesNothing(_ stage: Announcement.Stage) async throws {
    let schedule = AnnouncementSchedule()
    let made = Record<Announcement>()
    schedule.perform = {
      made.append($0)
      return true
    }
    schedule.append(.removal("a", stage))
    schedule.append(.document(.gateway, stage))
    schedule.cancelFollowUps { _ in true }
    schedule.append(.removal("b", .plain))
    let all = try await made.first(2)
    #expect(all == [.document(.gateway, .plain), .removal("b", .plain)])
  }

  @Test func whatIsTooEarlyIsMadeLaterAndOnce() async throws {
    let schedule = AnnouncementSchedule()
    let made = Record<Announcement>()
    var refused = 0
    schedule.perform = {
      if $0 == .document(.gateway, .plain), refused < 3 {
        refused += 1
        return false
      }
      made.append($0)
      return true
    }
    schedule.append(.document(.gateway, .plain))
    schedule.append(.removal("a", .plain))
    schedule.append(.document(.gateway, .plain))
    let all = try await made.first(2)
    #expect(all == [.removal("a", .plain), .document(.gateway, .plain)] && refused == 3)
  }

  /// With 20 ms between them.
  @Test func aHundredAnnouncementsAreTenBatches() async throws {
    let schedule = AnnouncementSchedule()
    let made = Record<Announcement>()
    var batches: [Int] = []
    schedule.perform = {
      made.append($0)
      return true
    }
    schedule.hasBacklog = {
      batches.append(made.count)
      return false
    }
    schedule.change { queue in
      for number in 0..<100 { queue.append(.removal("\(number)", .plain)) }
    }
    let all = try await made.first(100)
    #expect(all == (0..<100).map { Announcement.removal("\($0)", .plain) })
    #expect(batches == Array(stride(from: 0, to: 100, by: 10)))
  }
}
