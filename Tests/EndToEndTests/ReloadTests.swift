import Glibc
import TestSupport
import Testing

/// config.json is reloaded while the gateway runs.
@Suite struct ReloadTests {
  private static func entry(_ index: Int, _ keys: String = "") -> String {
    #"{"match":{"identifier":"D\#(index):5A:00:0\#(index):C0:DE"},"id":"room-\#(index)"\#(keys)}"#
  }

  /// Three micro:bits, the first two of which are configured.
  private static var plan: Plan {
    return Plan(devices: 3, entries: "\(entry(0)),\(entry(1))")
  }

  @Test("check, doctor and watch say that config.json has changed since the gateway read it")
  func changedWithoutAReload() async throws {
    try await withFixture(Self.plan) { fixture in
      try await fixture.online("room-0")
      let text = "config.json has changed since the running gateway read it"
      func isSaid() async throws -> [Bool] {
        let watch = try fixture.start(["watch"])
        _ = try await watch.line(within: Fixture.patience) { $0.contains("temperature") }
        watch.signal(SIGINT)
        _ = try await watch.exitStatus(within: Fixture.patience)
        var said = [watch.text.contains(text)]
        for command in [["check"], ["doctor"], ["read", "room-2", "temperature"]] {
          said.append(try await fixture.command(command).text.contains(text))
        }
        return said
      }
      #expect(try await isSaid() == [false, false, false, false])
      try fixture.configure(entries: "\(Self.entry(0)),\(Self.entry(1)),\(Self.entry(2))")
      #expect(try await isSaid() == [true, true, true, true])
      #expect(try await fixture.command(["doctor"]).text.contains("kill -HUP \(fixture.gateway.pid)\n"))
      #expect(
        try await fixture.reload(entries: "\(Self.entry(0)),\(Self.entry(1)),\(Self.entry(2))") == .array([]))
      #expect(try await isSaid() == [false, false, false, false])
    }
  }

  @Test("Of many reloads that are asked for at once few are carried out, and each has an answer")
  func burst() async throws {
    try await withFixture(Plan(devices: 0)) { fixture in
      try await fixture.bridgeOnline()
      let (observer, mark) = (try fixture.observer, try fixture.observer.mark)
      try await fixture.freezingGateway {
        for number in 0..<200 {
          try await observer.publish(
            "microbit/\(fixture.bridge)/request/reload", #"{"transaction":"\#(number)"}"#)
        }
        try await observer.synchronize()
      }
      @Sendable func answers() -> [Observer.Message] {
        observer.messages(on: "microbit/\(fixture.bridge)/response/reload", after: mark)
      }
      try await eventually("an answer to each") { answers().count == 200 }
      #expect(try Set(answers().map { try $0.json()["transaction"]?.string }).count == 200)
      #expect(try fixture.lines(with: "configuration reloaded").count < 100)
    }
  }

  @Test("A reload affects only what has changed")
  func changes() async throws {
    try await withFixture(Self.plan) { fixture in
      for id in ["room-0", "room-1"] {
        try await fixture.online(id)
        try await fixture.message("\(id)/info") { $0.text.contains("firmware") }
      }
      let monitor = try await BusMonitor(fixture.bus)
      let mark = try fixture.observer.mark
      let changed = "\(Self.entry(0, #","name":"Hall","period":70"#)),\(Self.entry(1))"
      #expect(try await fixture.reload(entries: changed) == .array([]))
      try await fixture.message("room-0/period", "70", after: mark)
      try await fixture.message("room-0/info", after: mark) { $0.text.contains(#""name":"Hall""#) }
      try await fixture.moreReadings("room-1", 3)
      for id in ["room-0", "room-1"] {
        #expect(try fixture.stayedOnline(id, after: mark))
      }
      #expect(try fixture.observer.messages(on: "microbit/room-1/info", after: mark).isEmpty)
      #expect(try await monitor.calls(of: "Connect") == 0)
      #expect(try await monitor.calls(of: "Disconnect") == 0)
    }
  }

  @Test("Entries can be removed, added and given other ids; the devices that stay are not disconnected")
  func entries() async throws {
    try await withFixture(Self.plan) { fixture in
      for id in ["room-0", "room-1"] { try await fixture.online(id) }
      let monitor = try await BusMonitor(fixture.bus)
      var mark = try fixture.observer.mark
      try await fixture.reload(entries: "\(Self.entry(0)),\(Self.entry(2))")
      try await fixture.online("room-2")
      try await fixture.simulator.waitUntil(1, "it is disconnected") { !$0.isConnected }
      #expect(try await fixture.retained(of: "room-1").isEmpty)
      #expect(try await monitor.calls(of: "Connect") == 1)
      #expect(try await monitor.calls(of: "Disconnect") == 1)
      #expect(try fixture.stayedOnline("room-0", after: mark))
      // And back.
      try await fixture.reload(entries: "\(Self.entry(0)),\(Self.entry(1))")
      try await fixture.message("room-1/availability", "online", after: mark)
      #expect(try await fixture.retained(of: "room-2").isEmpty)
      let disconnects = try await monitor.calls(of: "Disconnect")

      try await fixture.reload(
        entries: #"{"match":{"identifier":"D0:5A:00:00:C0:DE"},"id":"hall"},\#(Self.entry(1))"#)
      try await fixture.online("hall")
      #expect(try await fixture.retained(of: "room-0").isEmpty)
      // Swapped.
      mark = try fixture.observer.mark
      try await fixture.reload(
        entries: """
          {"match":{"identifier":"D0:5A:00:00:C0:DE"},"id":"room-1"},
          {"match":{"identifier":"D1:5A:00:01:C0:DE"},"id":"hall"}
          """)
      for (id, address) in [("room-1", "D0:5A:00:00:C0:DE"), ("hall", "D1:5A:00:01:C0:DE")] {
        try await fixture.message("\(id)/info", after: mark) { message in
          let info = try? message.json()
          return info?["identifier"]?.string == address && info?["connected_since"] != nil
        }
        try await fixture.moreReadings(id, 3)
        #expect(try await fixture.retained(of: id)["\(id)/availability"]?.text == "online")
      }
      #expect(try await monitor.calls(of: "Disconnect") == disconnects)
      // No device was removed from Home Assistant.
      for address in ["d05a0000c0de", "d15a0001c0de"] {
        let topic = "homeassistant/device/ble_\(address)/config"
        #expect(try fixture.observer.messages(on: topic, after: mark).allSatisfy { !$0.payload.isEmpty })
      }
    }
  }

  @Test(
    "Ids that are exchanged while the gateway is off: one that is out of range has neither topics nor values of the other",
    arguments: [("spare", "room-0"), ("room-1", "room-0")])
  func exchangedBetweenRuns(ids: (String, String)) async throws {
    var plan = Self.plan
    plan.devices = 2
    try await withFixture(plan) { fixture in
      for id in ["room-0", "room-1"] {
        try await fixture.online(id)
        _ = try await fixture.readings(id, upTo: 1)
      }
      #expect(try await fixture.stopGateway() == 0)
      try await fixture.simulator.control("vanish", 0)
      let entries = [ids.0, ids.1].enumerated().map {
        ##"{"match":{"identifier":"D\##($0):5A:00:0\##($0):C0:DE"},"id":"\##($1)"}"##
      }
      try fixture.configure(entries: entries.joined(separator: ","))
      let mark = try fixture.observer.mark
      try fixture.startGateway()
      try await fixture.online(ids.1, after: mark)
      try await fixture.message("\(ids.0)/info", after: mark) { $0.text.contains("D0:5A:00:00:C0:DE") }
      try await fixture.synchronizeGateway()
      let kept = try await fixture.retained()
      #expect(kept["\(ids.0)/availability"]?.text == "offline")
      #expect(kept["\(ids.0)/temperature"] == nil)
      #expect(kept["\(ids.1)/temperature"] != nil)
      let announced = try #require(kept["homeassistant/device/ble_d05a0000c0de/config"]?.text)
      #expect(announced.contains("\(ids.0)/temperature") && !announced.contains("\(ids.1)/"), "\(announced)")
    }
  }

  @Test(
    "A device that a reload pins to another gateway is removed where this one no longer announces devices",
    arguments: [#""prefix": "ha""#, #""discovery": false"#])
  func pinnedAndNoLongerAnnounced(settings: String) async throws {
    try await withFixture(Self.plan) { fixture in
      let discovery = "homeassistant/device/ble_d05a0000c0de/config"
      _ = try await fixture.observer.message(discovery, within: Fixture.patience) { !$0.payload.isEmpty }
      let text = fixture.configuration(Self.entry(0, #","gateway":"attic""#))
        .replacing(#""devices":"#, with: #""home_assistant": { \#(settings) }, "devices":"#)
      try fixture.folder.write(text, to: "config.json")
      try await fixture.perform("reload")
      try await fixture.synchronizeGateway()
      let kept = try await fixture.retained()
      #expect(kept.keys.filter { $0.hasPrefix("homeassistant/") || $0.hasPrefix("ha/device/ble_d05a") } == [])
    }
  }

  @Test("A missing or invalid file is refused with the error's position, and changes nothing")
  func invalidFile() async throws {
    try await withFixture(Self.plan) { fixture in
      for id in ["room-0", "room-1"] { try await fixture.online(id) }
      let mark = try fixture.observer.mark
      unlink(fixture.folder.path + "/config.json")
      #expect(try await fixture.refusal("reload").contains("config.json"))
      for (entries, position) in [
        (#"{"match":{"identifier":"C5:A1:B2:C3:D4:E5"},"perod":7}"#, "devices[0].perod: unknown key"),
        (#"{"match":"#, "config.json:5:24: expected a value"),
      ] {
        try fixture.configure(entries: entries)
        func expectLine() async throws {
          _ = try await fixture.gateway.line {
            $0.contains("configuration not reloaded") && $0.contains(position)
          }
        }
        #expect(try await fixture.refusal("reload").contains(position))
        try await expectLine()
        try fixture.gateway.signal(SIGHUP)
        try await expectLine()
      }
      for id in ["room-0", "room-1"] {
        try await fixture.moreReadings(id, 2)
        #expect(try fixture.stayedOnline(id, after: mark))
      }
      // A valid file is applied again.
      try await fixture.reload(entries: Self.entry(0))
      try await fixture.simulator.waitUntil(1, "it is disconnected") { !$0.isConnected }
    }
  }

  @Test("A reload applies the gateway's area, the switch for readings, and the discovery prefix")
  func gatewaySettings() async throws {
    var plan = Self.plan
    plan.gateway = #""area":"Ground floor""#
    try await withFixture(plan) { fixture in
      try await fixture.online("room-0")
      try await fixture.message("room-0/info") { $0.text.contains(#""area":"Ground floor""#) }
      let discovery = "homeassistant/device/ble_d05a0000c0de/config"
      _ = try await fixture.observer.message(discovery, within: Fixture.patience) { !$0.payload.isEmpty }
      let mark = try fixture.observer.mark
      let text = fixture.configuration(fixture.plan.entries)
        .replacing("Ground floor", with: "Attic")
        .replacing(#""mqtt": {"#, with: #""mqtt": { "readings": false,"#)
        .replacing(#""devices":"#, with: #""home_assistant": { "prefix": "ha" }, "devices":"#)
      try fixture.folder.write(text, to: "config.json")
      #expect(try await fixture.perform("reload")["restart_required"] == .array([]))
      let answer = try fixture.observer.mark
      try await fixture.message("room-0/info", after: mark) { $0.text.contains(#""area":"Attic""#) }
      _ = try await fixture.observer.message(
        discovery, after: mark, within: Fixture.patience, where: \.payload.isEmpty)
      _ = try await fixture.observer.message(
        "ha/device/ble_d05a0000c0de/config", after: mark, within: Fixture.patience
      ) { $0.text.contains("Attic") }
      #expect(try await fixture.retained()[discovery] == nil)
      // Two values, so that one of them is new.
      try await fixture.simulator.control("temp", 0, #""v":41"#)
      try await fixture.message("room-0/temperature", "41", after: answer)
      #expect(try fixture.readings("room-0", after: answer).isEmpty)

      // Keys that require a restart are named; the other changes are applied.
      let others = text.replacing(
        #""host": "127.0.0.1""#, with: #""host": "nowhere.invalid", "base_topic": "other""#
      ).replacing(#""id": "fixture""#, with: #""id": "shed""#)
        .replacing(#""id":"room-0""#, with: #""id":"room-0","name":"Hall""#)
      try fixture.folder.write(others, to: "config.json")
      let keys = try await fixture.perform("reload")["restart_required"]
      #expect(keys == .array(["gateway.id", "mqtt.host", "mqtt.base_topic"].map(JSON.string)))
      try await fixture.logged("need a restart keys=\"gateway.id, mqtt.host, mqtt.base_topic\"")
      try await fixture.logged(
        "put mqtt.base_topic back, stop the gateway, run: sudo microbit-gateway forget")
      try await fixture.message("room-0/info") { $0.text.contains(#""name":"Hall""#) }
    }
  }
}
