import Glibc
import TestSupport
import Testing

/// Retained commands that are rejected, and crashes of the gateway before a retained command is carried out.
@Suite struct RetainedCommandTests {
  private static func plan(_ version: String) -> Plan {
    var plan = Plan()
    plan.mqtt = #""protocol":"\#(version)""#
    plan.simulator = ["--services", "temperature,led"]
    plan.entries =
      #"{"match":{"identifier":"D0:5A:00:00:C0:DE"},"id":"kitchen","properties":["temperature","period","led_text"]}"#
    plan.absent = [.gateway]
    return plan
  }

  @Test("With MQTT 3.1.1, retained commands are rejected once per run of the gateway, and never written")
  func rejected() async throws {
    try await withFixture(Self.plan("3.1.1")) { fixture in
      let payload = #"{"value":70,"transaction":"kept"}"#
      try await fixture.observer.publish("microbit/kitchen/period/set", payload, retain: true)
      try await fixture.observer.publish("microbit/kitchen/led_text/set", "kept", retain: true)
      try await fixture.observer.synchronize()
      try fixture.startGateway()
      func expectRejection(after mark: Int = 0) async throws {
        let result = try await fixture.message("kitchen/period/result", after: mark).json()
        #expect(result["status"]?.string == "rejected" && result["transaction"]?.string == "kept")
        #expect(
          result["reason"]?.string
            == "retained commands require MQTT 5: publish it without the retain flag")
        // A state and an event alike.
        let event = try await fixture.message("kitchen/led_text/result", after: mark).json()
        #expect(event["status"]?.string == "rejected")
        #expect(event["reason"]?.string?.contains("retained") == true)
      }
      try await expectRejection()
      try await fixture.online("kitchen")
      try await fixture.restartSubscriptions()
      #expect(try await fixture.setPeriod("kitchen", "60")["status"]?.string == "applied")
      #expect(try fixture.observer.messages(on: "microbit/kitchen/period/result").count == 2)
      #expect(try await fixture.simulator.device(0).period == 60)
      try await fixture.observer.publish("microbit/kitchen/led_text/set", "live")
      try await fixture.message("kitchen/led_text/result") { $0.text.contains("accepted") }
      #expect(try fixture.observer.messages(on: "microbit/kitchen/led_text/result").count == 2)
      let writes = try await fixture.simulator.control(
        #"{"op":"writes","i":0,"characteristic":"e95d93ee-251d-470a-a062-fa1922dfa9a8"}"#)
      #expect(writes["writes"]?.array?.compactMap(\.string) == ["6c697665"])
      let mark = try fixture.observer.mark
      try await fixture.restartGateway()
      try await expectRejection(after: mark)
    }
  }

  /// Kills the gateway once what has changed so far is in its state database.
  private static func crash(_ fixture: Fixture, after change: String) async throws {
    // Stored after all earlier changes.
    try await fixture.perform("device/options", #"{"id":"kitchen","options":{"name":"\#(change)"}}"#)
    try await fixture.stored(change)
    try await fixture.killGateway()
  }

  @Test("A retained command that is being written or waits survives a crash, and is carried out once")
  func crash() async throws {
    try await withThreeAttempts(Self.plan("5")) { fixture in
      try fixture.startGateway()
      try await fixture.online("kitchen")
      try await fixture.message("kitchen/period", "50")
      // The last operation on a new link: while it is unanswered, the command would wait.
      try await fixture.message("kitchen/info") { $0.text.contains("firmware") }
      let monitor = try await BusMonitor(fixture.bus)
      try fixture.simulator.process.signal(SIGSTOP)
      let payload = #"{"value":70,"transaction":"kept"}"#
      let start = ContinuousClock.now
      try await fixture.observer.publish("microbit/kitchen/period/set", payload, retain: true)
      try await monitor.called("WriteValue")
      try await Self.crash(fixture, after: "first change")
      // After 10 s the write has failed, and the command with it.
      guard start.duration(to: .now) < .seconds(9) else { return false }
      // The micro:bit has not received the write.
      try await fixture.killSimulator()
      try await fixture.startSimulator()
      #expect(try fixture.observer.messages(on: "microbit/kitchen/period/result").isEmpty)
      try fixture.startGateway()
      let applied = try await fixture.message("kitchen/period/result") { $0.text.contains("applied") }
      #expect(try applied.json()["transaction"]?.string == "kept")
      #expect(try await fixture.simulator.device(0).period == 70)
      try await fixture.restartGateway()
      try await fixture.online("kitchen", after: applied.number)
      #expect(try await fixture.setPeriod("kitchen", "60")["status"]?.string == "applied")
      let later = try fixture.observer.messages(on: "microbit/kitchen/period/result", after: applied.number)
      #expect(later.count == 1, "\(later.map(\.text))")

      // One that waits for its device.
      try await fixture.vanish(0, "kitchen")
      let mark = try fixture.observer.mark
      try await fixture.observer.publish("microbit/kitchen/period/set", "80", retain: true)
      let pending = try await fixture.message("kitchen/period/result", after: mark) {
        $0.text.contains("pending")
      }
      try await Self.crash(fixture, after: "second change")
      try fixture.startGateway()
      try await fixture.bridgeOnline(after: pending.number)
      try await fixture.simulator.control("return", 0)
      try await fixture.message("kitchen/period", "80", after: pending.number)
      #expect(try await fixture.setPeriod("kitchen", "60")["status"]?.string == "applied")
      let last = try fixture.observer.messages(on: "microbit/kitchen/period/result", after: pending.number)
      #expect(try last.map { try $0.json()["requested"]?.int } == [80, 60], "\(last.map(\.text))")
      return true
    }
  }
}
