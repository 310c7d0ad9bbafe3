import TestSupport
import Testing

/// Devices that are connected on demand, and the request `device/sequence`, over MQTT.
@Suite struct OnDemandTests {
  private static let first = #"{"match":{"identifier":"D0:5A:00:00:C0:DE"},"id":"meter""#

  private static func plan(every: Int, devices: Int = 1) -> Plan {
    var plan = Plan(devices: devices)
    plan.entries =
      first + #","connect":"on_demand","every":\#(every)},{"match":{"name_prefix":"BBC micro:bit"}}"#
    return plan
  }

  private static func waitForFirstVisit(_ fixture: Fixture) async throws {
    try await fixture.online("meter")
    try await fixture.simulator.waitUntil(0, "the link has ended") { !$0.isConnected }
  }

  @Test("A device is visited regularly, stays online in between, and does not disturb a permanent link")
  func visits() async throws {
    try await withFixture(Self.plan(every: 5, devices: 2)) { fixture in
      let other = try await fixture.id(1)
      try await fixture.online(other)
      try await Self.waitForFirstVisit(fixture)
      let mark = try fixture.observer.mark
      for number in 1...2 {
        // A visit reads the temperature once.
        let count = try fixture.observer.messages(on: "microbit/meter/readings").count
        try await fixture.message("meter/readings", after: mark) { message in
          (try? message.json())?["sequence"]?.int == count + 1
        }
        try await fixture.simulator.waitUntil(0, "visit \(number) is over") { !$0.isConnected }
      }
      #expect(try fixture.stayedOnline("meter", after: mark) && fixture.stayedOnline(other, after: mark))
      let sequence = try fixture.observer.messages(on: "microbit/\(other)/readings", after: mark)
        .compactMap { try? $0.json()["sequence"]?.int }
      let lowest = try #require(sequence.first)
      #expect(sequence == Array(lowest..<(lowest + sequence.count)) && sequence.count > 20, "\(sequence)")
      #expect(try await fixture.perform("health")["devices"]?["online"]?.int == 2)
    }
  }

  @Test("A command and a get between two visits connect at once")
  func commands() async throws {
    var plan = Self.plan(every: 3600)
    plan.simulator = ["--disconnect-ms", "2000"]
    try await withFixture(plan) { fixture in
      try await Self.waitForFirstVisit(fixture)
      try await eventually("the visit has ended") {
        try await fixture.listed("meter")?["session"]?.string == "idle"
      }
      let mark = try fixture.observer.mark
      try await fixture.observer.publish("microbit/meter/period/set", "700")
      let result = try await fixture.message("meter/period/result", after: mark) {
        !$0.text.contains("pending")
      }
      #expect(try result.json()["status"]?.string == "applied")
      #expect(try await fixture.simulator.device(0).period == 700)
      try await fixture.simulator.waitUntil(0, "the link has ended") { !$0.isConnected }
      try await fixture.observer.publish("microbit/meter/period/get", #"{"transaction":"g1"}"#)
      let read = try await fixture.message("meter/period/result", after: result.number).json()
      #expect(read["status"]?.string == "read" && read["actual"]?.int == 700)
      #expect(read["transaction"]?.string == "g1")
      try await fixture.simulator.waitUntil(0, "the link has ended") { !$0.isConnected }
      // By the command line, also while the link of the first ends.
      for _ in 1...2 {
        let (status, text) = try await fixture.command(["read", "meter", "period"])
        #expect(status == 0 && text == "700 ms", "\(text)")
      }
      #expect(try fixture.stayedOnline("meter", after: mark))
    }
  }

  @Test("A sequence has one answer with the results of its steps, or the reason why it is refused")
  func sequence() async throws {
    var plan = Self.plan(every: 3600)
    plan.entries = plan.entries.replacing(
      #""every""#, with: #""properties":["temperature","period","led_text"],"every""#)
    try await withFixture(plan) { fixture in
      try await Self.waitForFirstVisit(fixture)
      let steps = #"[{"write":{"property":"period","value":700}},{"read":"temperature"},{"read":"period"}]"#
      let data = try await fixture.perform("device/sequence", #"{"id":"meter","steps":\#(steps)}"#)
      #expect(data.array?.map { $0["status"]?.string } == ["applied", "read", "read"])
      #expect(data.array?.last?["actual"]?.int == 700)
      try await fixture.simulator.waitUntil(0, "the link has ended") { !$0.isConnected }

      #expect(
        try await fixture.refusal("device/sequence", #"{"id":"metre","steps":\#(steps)}"#)
          == "no device is called metre: did you mean meter?")
      #expect(
        try await fixture.refusal("device/sequence", #"{"id":"meter","steps":[{"read":"button_a"}]}"#)
          .hasPrefix("steps[0]: meter does not use button_a"))

      // A step that fails ends the sequence.
      let answer = try await fixture.request(
        "device/sequence",
        #"{"id":"meter","steps":[{"read":"temperature"},"#
          + #"{"write":{"property":"led_text","value":"Hi"}},{"read":"period"}]}"#)
      #expect(answer["error"]?.string == "step 2 of 3, led_text: the device does not offer led_text")
      #expect(answer["data"]?.array?.map { $0["status"]?.string } == ["read", "failed"])
      try await fixture.simulator.waitUntil(0, "the link has ended") { !$0.isConnected }

      // Out of range: it cannot be connected in time.
      try await fixture.simulator.control("vanish", 0)
      #expect(
        try await fixture.refusal("device/sequence", #"{"id":"meter","steps":\#(steps),"timeout":1}"#)
          .hasPrefix("meter: the device could not be connected within 1 s"))
    }
  }
}
