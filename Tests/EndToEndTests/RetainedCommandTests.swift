import TestSupport
import Testing

/// Retained commands that are rejected: for a state with MQTT 3.1.1, for an event with either version.
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

  @Test("With MQTT 3.1.1, a retained command for a state is rejected once per run of the gateway")
  func state() async throws {
    try await withFixture(Self.plan("3.1.1")) { fixture in
      let payload = #"{"value":70,"transaction":"kept"}"#
      try await fixture.observer.publish("microbit/kitchen/period/set", payload, retain: true)
      try await fixture.observer.synchronize()
      try fixture.startGateway()
      func expectRejection(after mark: Int = 0) async throws {
        let result = try await fixture.message("kitchen/period/result", after: mark).json()
        #expect(result["status"]?.string == "rejected" && result["transaction"]?.string == "kept")
        #expect(
          result["reason"]?.string
            == "retained commands require MQTT 5: publish it without the retain flag")
      }
      try await expectRejection()
      try await fixture.online("kitchen")
      try await fixture.restartSubscriptions()
      #expect(try await fixture.setPeriod("kitchen", "60")["status"]?.string == "applied")
      #expect(try fixture.observer.messages(on: "microbit/kitchen/period/result").count == 2)
      #expect(try await fixture.simulator.device(0).period == 60)
      let mark = try fixture.observer.mark
      try await fixture.restartGateway()
      try await expectRejection(after: mark)
    }
  }

  @Test("A retained command for an event is rejected once and never written", arguments: ["5", "3.1.1"])
  func event(version: String) async throws {
    try await withFixture(Self.plan(version)) { fixture in
      try await fixture.observer.publish("microbit/kitchen/led_text/set", "kept", retain: true)
      try await fixture.observer.synchronize()
      try fixture.startGateway()
      let rejected = try await fixture.message("kitchen/led_text/result").json()
      #expect(rejected["status"]?.string == "rejected")
      #expect(rejected["reason"]?.string?.contains("retained") == true)
      try await fixture.restartSubscriptions()
      try await fixture.online("kitchen")
      try await fixture.observer.publish("microbit/kitchen/led_text/set", "live")
      try await fixture.message("kitchen/led_text/result") { $0.text.contains("accepted") }
      #expect(try fixture.observer.messages(on: "microbit/kitchen/led_text/result").count == 2)
      let writes = try await fixture.simulator.control(
        #"{"op":"writes","i":0,"characteristic":"e95d93ee-251d-470a-a062-fa1922dfa9a8"}"#)
      #expect(writes["writes"]?.array?.compactMap(\.string) == ["6c697665"])
    }
  }
}
