import TestSupport
import Testing

/// Valid period commands.
@Suite struct PeriodTests {
  @Test("A plain number is applied, and the interval of readings changes")
  func plainNumber() async throws {
    try await withFixture(Plan(period: 1000)) { fixture in
      let id = try await fixture.id()
      try await fixture.online(id)
      let json = try await fixture.setPeriod(id, "40")
      #expect(json.keys == ["status", "requested", "actual", "time"])
      #expect(json["status"]?.string == "applied")
      #expect(json["requested"]?.int == 40)
      #expect(json["actual"]?.int == 40)
      #expect(isTimestamp(json["time"]?.string))
      let state = try await fixture.message("\(id)/period", "40")
      try #require(state.qos == .atLeastOnce)
      try #require(try await fixture.simulator.device(0).period == 40)
      try await fixture.expectInterval(id, milliseconds: 40)
      let kept = try await fixture.retained()
      try #require(kept["\(id)/period"]?.text == "40")
      try #require(kept["\(id)/period/result"] == nil)
    }
  }

  @Test("The result includes the transaction", arguments: ["a1", "", "Grüße \"\\ \n/+#"])
  func transaction(text: String) async throws {
    try await withFixture { fixture in
      let id = try await fixture.id()
      try await fixture.online(id)
      let quoted = text.map { $0 == "\n" ? "\\n" : $0 == "\"" || $0 == "\\" ? "\\\($0)" : "\($0)" }.joined()
      let json = try await fixture.setPeriod(id, #"{"value":60,"transaction":"\#(quoted)"}"#)
      try #require(json["status"]?.string == "applied")
      try #require(json["transaction"]?.string == text)
    }
  }

  @Test(
    "The result is also published on the response topic, with the correlation data", arguments: [20, 65535])
  func responseTopic(period: Int) async throws {
    try await withFixture { fixture in
      let id = try await fixture.id()
      try await fixture.online(id)
      try await fixture.publish("microbit/\(id)/period/set", Array("\(period)".utf8), correlation: "\0\u{1}ü")
      let reply = try await fixture.reply(to: "\0\u{1}ü")
      try #require(try reply.json()["actual"]?.int == period)
      let result = try await fixture.message("\(id)/period/result")
      try #require(result.payload == reply.payload)
    }
  }

  @Test("The last command of a burst wins, and each is answered once")
  func superseded() async throws {
    var plan = Plan(devices: 2)
    plan.simulator = ["--attribute-ms", "200"]
    try await withFixture(plan) { fixture in
      let id = try await fixture.id()
      try await fixture.online(id)
      let commands = Array(1...30)
      for number in commands {
        try await fixture.observer.publish(
          "microbit/\(id)/period/set", #"{"value":\#(100 + number),"transaction":"t\#(number)"}"#)
      }
      let last = try await fixture.message("\(id)/period/result") { $0.text.contains(#""t30""#) }
      try #require(try last.json()["status"]?.string == "applied")
      // A separate command: when it is answered, no answer to the burst is outstanding.
      try await fixture.observer.publish("microbit/\(id)/period/set", #"{"value":99,"transaction":"end"}"#)
      try await fixture.message("\(id)/period/result") { $0.text.contains(#""end""#) }
      let results = try fixture.observer.messages(on: "microbit/\(id)/period/result").map { try $0.json() }
      var answers: [String: [String]] = [:]
      for result in results {
        answers[result["transaction"]?.string ?? "", default: []].append(result["status"]?.string ?? "")
      }
      try #require(answers.count == commands.count + 1)
      try #require(answers.values.allSatisfy { $0 == ["applied"] || $0 == ["superseded"] })
      try #require(answers.values.contains(["superseded"]))
      for result in results where result["status"]?.string == "applied" {
        try #require(result["requested"] == result["actual"])
      }
      try #require(try await fixture.simulator.device(0).period == 99)
      // The other micro:bit is unaffected.
      try #require(try await fixture.simulator.device(1).period == 50)
    }
  }

  @Test("The latest command for an absent micro:bit is pending, and applied when the micro:bit returns")
  func pending() async throws {
    var plan = Plan()
    plan.absent = [.gateway]
    plan.entries = #"{"match":{"identifier":"D0:5A:00:00:C0:DE"},"id":"kitchen"}"#
    try await withFixture(plan) { fixture in
      try await fixture.simulator.control("vanish", 0)
      try fixture.startGateway()
      try await fixture.offline("kitchen")
      try await fixture.bridgeOnline()
      let set = "microbit/kitchen/period/set"
      try await fixture.publish(set, Array("70".utf8), correlation: "first")
      let first = try await fixture.reply(to: "first")
      try #require(try first.json()["status"]?.string == "pending")
      try await fixture.publish(set, Array("80".utf8), correlation: "second")
      let superseded = try await fixture.reply(to: "first", after: first.number)
      try #require(try superseded.json()["status"]?.string == "superseded")
      let second = try await fixture.reply(to: "second")
      try #require(try second.json()["status"]?.string == "pending")
      try #require(try second.json()["actual"] == nil)
      try await fixture.simulator.control("return", 0)
      try await fixture.online("kitchen")
      let applied = try await fixture.reply(to: "second", after: second.number)
      try #require(try applied.json()["status"]?.string == "applied")
      try #require(try applied.json()["actual"]?.int == 80)
      try #require(try await fixture.simulator.device(0).period == 80)
      try await fixture.message("kitchen/period", "80")
      try #require(try fixture.observer.messages(on: "replies").count == 4)
    }
  }

  @Test("A command whose link is lost is pending, and applied when the micro:bit returns")
  func linkLost() async throws {
    var plan = Plan()
    plan.simulator = ["--attribute-ms", "1000"]
    try await withFixture(plan) { fixture in
      let id = try await fixture.id()
      try await fixture.online(id)
      try await fixture.message("\(id)/period")
      let monitor = try await BusMonitor(fixture.bus)
      try await fixture.publish("microbit/\(id)/period/set", Array("70".utf8), correlation: "c")
      try await monitor.called("WriteValue")
      try await fixture.simulator.control("vanish", 0)
      let first = try await fixture.reply(to: "c")
      try #require(try first.json()["status"]?.string == "pending")
      try await fixture.simulator.control("return", 0)
      let second = try await fixture.reply(to: "c", after: first.number)
      try #require(try second.json()["status"]?.string == "applied")
      try #require(try await fixture.simulator.device(0).period == 70)
      try #require(try fixture.observer.messages(on: "replies").count == 2)
    }
  }

  @Test("A command retained before the gateway's start is applied")
  func retainedCommand() async throws {
    var plan = Plan()
    plan.absent = [.gateway]
    try await withFixture(plan) { fixture in
      let id = try await fixture.id()
      try await fixture.observer.publish("microbit/\(id)/period/set", "70", retain: true)
      try await fixture.observer.synchronize()
      try fixture.startGateway()
      let applied = try await fixture.message("\(id)/period/result") { $0.text.contains("applied") }
      try #require(try applied.json()["actual"]?.int == 70)
      try #require(try await fixture.simulator.device(0).period == 70)
    }
  }

  @Test("A retained command is executed once, even if the broker sends it again")
  func retainedCommandRepeated() async throws {
    try await withFixture { fixture in
      let id = try await fixture.id()
      try await fixture.online(id)
      try await fixture.observer.publish("microbit/\(id)/period/set", "70", retain: true)
      try await fixture.message("\(id)/period", "70")
      try await fixture.restartSubscriptions()
      let mark = try fixture.observer.mark
      try #require(try await fixture.setPeriod(id, "90")["status"]?.string == "applied")
      try await fixture.restartSubscriptions()
      try #require(try await fixture.setPeriod(id, "95")["actual"]?.int == 95)
      let results = try fixture.observer.messages(on: "microbit/\(id)/period/result", after: mark)
      try #require(try results.map { try $0.json()["requested"]?.int } == [90, 95])
    }
  }

  @Test("The period is written again after the micro:bit was reset")
  func resetMicrobit() async throws {
    try await withFixture { fixture in
      let id = try await fixture.id()
      try await fixture.online(id)
      try #require(try await fixture.setPeriod(id, "40")["status"]?.string == "applied")
      let mark = try fixture.observer.mark
      let device = try await fixture.simulator.control("reset", 0)
      try #require(device.period == 1000)
      let offline = try await fixture.offline(id, after: mark)
      try await fixture.online(id, after: offline.number)
      try await fixture.message("\(id)/period", "40", after: offline.number)
      try #require(try await fixture.simulator.device(0).period == 40)
      try await fixture.expectInterval(id, milliseconds: 40)
      // There was no new command, so there is no new result.
      try #require(try fixture.observer.messages(on: "microbit/\(id)/period/result").count == 1)
    }
  }

  @Test("The configured period is applied on connect")
  func configured() async throws {
    var plan = Plan(devices: 2, period: 1000)
    plan.entries = """
      {"match":{"identifier":"D0:5A:00:00:C0:DE"},"period":40}, {"match":{"name_prefix":"BBC micro:bit"}}
      """
    try await withFixture(plan) { fixture in
      let id = try await fixture.id()
      try await fixture.message("\(id)/period", "40")
      try #require(try await fixture.simulator.device(0).period == 40)
      try await fixture.expectInterval(id, milliseconds: 40)
      try await fixture.message("\(try await fixture.id(1))/period", "1000")
      try #require(try await fixture.simulator.device(1).period == 1000)
    }
  }

  @Test("A command to a micro:bit that does not answer times out, and the link is made again")
  func timeout() async throws {
    var plan = Plan()
    // Out of range, with a link that does not time out: there is no answer.
    plan.simulator = ["--attribute-ms", "1", "--supervision-ms", "60000"]
    try await withFixture(plan) { fixture in
      let id = try await fixture.id()
      let online = try await fixture.online(id)
      try await fixture.message("\(id)/period")
      try await fixture.message("\(id)/info") { (try? $0.json())?["firmware"] != nil }
      try await fixture.simulator.control("vanish", 0)
      let result = try await fixture.setPeriod(id, #"{"value":60,"transaction":"t"}"#)
      try #require(result["status"]?.string == "timeout")
      try #require(result["reason"]?.string?.isEmpty == false)
      try #require(result["transaction"]?.string == "t")
      let offline = try await fixture.offline(id, after: online.number)
      try await fixture.simulator.control("return", 0)
      try await fixture.online(id, after: offline.number)
      try #require(try await fixture.setPeriod(id, "70")["status"]?.string == "applied")
    }
  }
}

extension Fixture {
  /// Fails unless the median interval of readings is about this, after the sample that was already due.
  fileprivate func expectInterval(_ id: String, milliseconds: Int) async throws {
    try await moreReadings(id, 2)
    let mark = try observer.mark
    try await moreReadings(id, 10)
    let times = try readings(id, after: mark).map(\.time)
    let gaps = zip(times.dropFirst(), times).map { $0.timeIntervalSince($1) * 1000 }.sorted()
    // At the default of 1000 ms it would be far longer.
    try #require(gaps[gaps.count / 2] < Double(10 * milliseconds), "\(gaps)")
  }
}
