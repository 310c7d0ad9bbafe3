import FoundationEssentials
import Glibc
import TestSupport
import Testing

/// The desired state of a device: the latest command or request overrides the configuration.
@Suite struct DesiredStateTests {
  private static func plan(_ keys: String = "") -> Plan {
    Plan(entries: entry(keys))
  }

  private static func entry(_ keys: String) -> String {
    #"{"match":{"identifier":"D0:5A:00:00:C0:DE"},"id":"kitchen"\#(keys)}"#
  }

  /// Requests a period, or null; returns when the micro:bit has the expected one.
  private static func request(_ fixture: Fixture, _ period: String, becomes value: Int) async throws {
    let mark = try fixture.observer.mark
    try await fixture.perform("device/options", #"{"id":"kitchen","options":{"period":\#(period)}}"#)
    try await fixture.message("kitchen/period", "\(value)", after: mark)
    #expect(try await fixture.simulator.device(0).period == value)
  }

  private static func command(_ fixture: Fixture, _ period: Int) async throws {
    #expect(try await fixture.setPeriod("kitchen", "\(period)")["actual"]?.int == period)
  }

  @Test("The latest command or request overrides the configuration; null restores the configured value")
  func latestOverrideWins() async throws {
    try await withFixture(Self.plan(#","period":80"#)) { fixture in
      try await fixture.online("kitchen")
      try await fixture.message("kitchen/period", "80")
      #expect(try await fixture.check().contains(/period +80 ms +config.json/))
      try await Self.command(fixture, 70)
      try await fixture.stored(#""desired":{"period":{"value":70}}"#)
      #expect(try await fixture.check().contains(/period +70 ms +command/))
      // The configured value has lower priority.
      try await fixture.reload(entries: Self.entry(#","period":90"#))
      try await Self.request(fixture, "60", becomes: 60)
      try await Self.command(fixture, 65)
      // A repeated request overrides the command in between.
      try await Self.request(fixture, "60", becomes: 60)
      try await fixture.stored(#""desired":{"period":{"value":60,"source":"request"}}"#)
      #expect(try await fixture.check().contains(/period +60 ms +request/))
      try await Self.command(fixture, 65)
      try await Self.request(fixture, "null", becomes: 90)
      try await fixture.message("kitchen/info") { (try? $0.json())?["desired"]?["period"]?.int == 90 }
      // Null after a command alone.
      try await Self.command(fixture, 65)
      try await Self.request(fixture, "null", becomes: 90)

      // A reset micro:bit gets the requested period again, and after a restart the commanded one.
      try await Self.request(fixture, "60", becomes: 60)
      let mark = try fixture.observer.mark
      #expect(try await fixture.simulator.control("reset", 0).period == 1000)
      let offline = try await fixture.offline("kitchen", after: mark)
      try await fixture.online("kitchen", after: offline.number)
      try await fixture.message("kitchen/period", "60", after: offline.number)
      try await Self.command(fixture, 65)
      _ = try await fixture.stopGateway()
      #expect(try await fixture.simulator.control("reset", 0).period == 1000)
      let restart = try fixture.observer.mark
      try fixture.startGateway()
      try await fixture.message("kitchen/period", "65", after: restart)
      #expect(try await fixture.simulator.device(0).period == 65)
    }
  }

  @Test("If the state database is lost, the device is offline until it returns, with the commanded value")
  func lostState() async throws {
    var plan = Plan()
    plan.entries = #"{"match":{"name_prefix":"BBC micro:bit"},"period":80}"#
    try await withFixture(plan) { fixture in
      let id = try await fixture.id()
      try await fixture.online(id)
      #expect(try await fixture.setPeriod(id, "65")["actual"]?.int == 65)
      try await fixture.message("\(id)/info") { (try? $0.json())?["desired"]?["period"]?.int == 65 }
      try await fixture.killGateway()
      // A new card, for example: the broker still has what was published.
      try FileManager.default.removeItem(atPath: fixture.folder.path + "/state")
      try await fixture.simulator.control("vanish", 0)
      #expect(try await fixture.simulator.control("reset", 0).period == 1000)
      var mark = try fixture.observer.mark
      try fixture.startGateway()
      try await fixture.offline(id, after: mark)
      try await fixture.simulator.control("return", 0)
      try await fixture.online(id, after: mark)
      try await fixture.message("\(id)/period", "65", after: mark)
      #expect(try await fixture.simulator.device(0).period == 65)
      try await fixture.stored(#""desired":{"period":{"value":65"#)
      // What is set from now on counts, not what the broker had.
      mark = try fixture.observer.mark
      try await fixture.perform("device/options", #"{"id":"\#(id)","options":{"period":null}}"#)
      try await fixture.message("\(id)/period", "80", after: mark)
      mark = try fixture.observer.mark
      try await fixture.restartGateway()
      try await fixture.online(id, after: mark)
      #expect(try await fixture.listed(id)?["desired"]?["period"]?.int == 80)
    }
  }

  private enum End: CaseIterable { case stopped, killed }

  @Test(
    "A pending command survives a restart, and is applied when the device is back", arguments: End.allCases
  )
  private func pendingThroughRestart(end: End) async throws {
    try await withFixture(Self.plan(#","period":80"#)) { fixture in
      try await fixture.online("kitchen")
      try await fixture.message("kitchen/period", "80")
      try await fixture.vanish(0, "kitchen")
      let command = Array(#"{"value":70,"transaction":"t"}"#.utf8)
      try await fixture.publish("microbit/kitchen/period/set", command, correlation: "c")
      #expect(try await fixture.reply(to: "c").json()["status"]?.string == "pending")
      try await fixture.stored(#""waiting":{"period":{"value":70,"sender":{"transaction":"t","#)
      switch end {
      case .stopped:
        #expect(try await fixture.stopGateway() == 0)
        try await fixture.message("kitchen/period/result") { $0.text.contains("deferred") }
      case .killed:
        try await fixture.killGateway()
      }
      #expect(try await fixture.check().contains(/period +70 ms +command/))
      let mark = try fixture.observer.mark
      try fixture.startGateway()
      try await fixture.simulator.control("return", 0)
      try await fixture.message("kitchen/period", "70", after: mark)
      #expect(try await fixture.simulator.device(0).period == 70)
      let result = try await fixture.reply(to: "c", after: mark).json()
      #expect(result["status"]?.string == "applied" && result["transaction"]?.string == "t")
      try await fixture.message("kitchen/period/result", after: mark) { $0.text.contains("applied") }
    }
  }

  @Test("A write in progress at shutdown is deferred, and applied after the next start")
  func writeInProgressAtShutdown() async throws {
    try await withFixture(Self.plan(#","period":80"#)) { fixture in
      try await fixture.online("kitchen")
      try await fixture.message("kitchen/period", "80")
      // The last operation on a new link: while it is unanswered, the command would wait.
      try await fixture.message("kitchen/info") { $0.text.contains("firmware") }
      let monitor = try await BusMonitor(fixture.bus)
      try fixture.simulator.process.signal(SIGSTOP)
      let mark = try fixture.observer.mark
      try await fixture.observer.publish("microbit/kitchen/period/set", "60")
      try await monitor.called("WriteValue")
      #expect(try await fixture.stopGateway() == 0)
      let result = try await fixture.message("kitchen/period/result", after: mark)
      #expect(try result.json()["status"]?.string == "deferred", "\(result.text)")
      try fixture.simulator.process.signal(SIGCONT)
      try fixture.startGateway()
      try await fixture.message("kitchen/period", "60", after: result.number)
      #expect(try await fixture.simulator.device(0).period == 60)
    }
  }

  @Test("A command that waits longer than its ttl times out, once, and is not applied later")
  func timeToLive() async throws {
    try await withFixture(Self.plan(#","period":80"#)) { fixture in
      try await fixture.online("kitchen")
      try await fixture.message("kitchen/period", "80")
      try await fixture.vanish(0, "kitchen")
      let set = "microbit/kitchen/period/set"
      try await fixture.publish(set, Array(#"{"value":70,"ttl":1,"transaction":"t"}"#.utf8), correlation: "c")
      let first = try await fixture.reply(to: "c")
      #expect(try first.json()["status"]?.string == "pending")
      let second = try await fixture.reply(to: "c", after: first.number)
      #expect(try second.json()["status"]?.string == "timeout")
      #expect(try second.json()["transaction"]?.string == "t")
      #expect(try second.json()["reason"]?.string == "not applied within 1 s")
      #expect(try await fixture.check().contains(/period +80 ms +config.json/))
      try await fixture.simulator.control("reset", 0)
      try await fixture.simulator.control("return", 0)
      try await fixture.online("kitchen", after: second.number)
      try await fixture.message("kitchen/period", "80", after: second.number)
      let mark = try fixture.observer.mark
      try await fixture.restartGateway()
      try await fixture.online("kitchen", after: mark)
      try await Self.command(fixture, 60)
      #expect(try fixture.observer.messages(on: "replies").count == 2)

      // Neither is one with more time applied after a restart, nor the one that it superseded.
      try await fixture.vanish(0, "kitchen")
      #expect(try await fixture.setPeriod("kitchen", "70")["status"]?.string == "pending")
      let later = try fixture.observer.mark
      try await fixture.observer.publish("microbit/kitchen/period/set", #"{"value":75,"ttl":600}"#)
      try await fixture.message("kitchen/period/result", after: later) {
        $0.text.contains(#""requested":75"#)
      }
      _ = try await fixture.stopGateway()
      #expect(try await fixture.check().contains(/period +60 ms +command/))
      try await fixture.simulator.control("reset", 0)
      try await fixture.simulator.control("return", 0)
      let restart = try fixture.observer.mark
      try fixture.startGateway()
      try await fixture.message("kitchen/period", "60", after: restart)
      let periods = try fixture.observer.messages(on: "microbit/kitchen/period").map(\.text)
      #expect(Set(periods).isDisjoint(with: ["70", "75"]))
    }
  }

  @Test("A retained command is executed once: neither after a restart nor over later commands and requests")
  func retained() async throws {
    try await withFixture(Self.plan()) { fixture in
      try await fixture.online("kitchen")
      let result = try fixture.observer.mark
      try await fixture.observer.publish("microbit/kitchen/period/set", "70", retain: true)
      try await fixture.message("kitchen/period/result", after: result) { $0.text.contains("applied") }
      for number in 0..<20 { try await Self.command(fixture, 100 + number) }
      // The broker sends it again on a new connection.
      let reconnect = try fixture.observer.mark
      try await fixture.restartSubscriptions()
      try await Self.command(fixture, 95)
      #expect(
        try fixture.observer.messages(on: "microbit/kitchen/period/result", after: reconnect).count == 1)
      try await Self.request(fixture, "60", becomes: 60)
      let mark = try fixture.observer.mark
      try await fixture.restartGateway()
      try await fixture.online("kitchen", after: mark)
      try await fixture.message("kitchen/period", "60", after: mark)
      // A repetition of the retained command would have been executed before this one.
      #expect(try await fixture.setPeriod("kitchen", "65")["actual"]?.int == 65)
      let results = try fixture.observer.messages(on: "microbit/kitchen/period/result", after: mark)
      #expect(results.count == 1, "\(results.map(\.text))")
      // A different retained command is executed.
      let other = try fixture.observer.mark
      _ = try await fixture.stopGateway()
      try await fixture.observer.publish("microbit/kitchen/period/set", "75", retain: true)
      try await fixture.observer.synchronize()
      try fixture.startGateway()
      try await fixture.message("kitchen/period", "75", after: other)
    }
  }
}
