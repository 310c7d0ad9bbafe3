import TestSupport
import Testing

/// More presses of a button during a broker outage than the gateway queues.
@Suite struct PressCrowdTests {
  private static let button = "e95dda90-251d-470a-a062-fa1922dfa9a8"
  /// The maximum number of messages queued for the broker (docs/mqtt.md).
  private static let queueLimit = 10_000

  @Test(
    "The latest readings of an outage are replayed in order up to the limit, and no event is published late"
  )
  func outage() async throws {
    var plan = Plan()
    plan.simulator = ["--services", "buttons"]
    // By default mosquitto queues 1000 messages for a slow subscriber, and drops the others.
    plan.access = { _ in "allow_anonymous true\nmax_queued_messages 0" }
    plan.entries =
      #"{"match":{"identifier":"D0:5A:00:00:C0:DE"},"id":"kitchen","properties":["button_a"]}"#
    try await withFixture(plan) { fixture in
      try await fixture.online("kitchen")
      try await fixture.press(Self.button, 1...1)
      let first = try await fixture.message("kitchen/button_a")
      let reading = try await fixture.message("kitchen/readings")
      let sequence = try #require(try reading.json()["sequence"]?.int)
      #expect(try first.json()["sequence"]?.int == sequence)

      try await fixture.broker.kill()
      try await fixture.logged("trying again")
      let memory = try fixture.anonymousKilobytes
      let mark = try fixture.observer.mark
      let count = Self.queueLimit + 1000
      try await fixture.press(Self.button, 2...(count + 1))
      // The gateway is notified of this after the last press.
      try await fixture.simulator.control("disconnect", 0)
      try await fixture.logged("offline")
      try await fixture.restartBroker()
      let end = sequence + count
      // Without parsing JSON, as each of the 10 000 messages is compared.
      let last = Array(#""sequence":\#(end),"#.utf8)
      try await fixture.message("kitchen/readings", after: mark) { $0.payload.contains(last) }
      #expect(try fixture.anonymousKilobytes - memory < 16 << 10)

      let replayed = try fixture.observer.messages(on: "microbit/kitchen/readings", after: mark)
        .map { try $0.json() }
      let sequences = replayed.compactMap { $0["sequence"]?.int }
      #expect(sequences == Array((end - Self.queueLimit + 1)...end))
      #expect(replayed.allSatisfy { $0["replayed"]?.bool == true })
      // The first was a press, the next its release.
      let types = sequences.map { ($0 - sequence) % 2 == 0 ? "press_start" : "press_end" }
      #expect(replayed.compactMap { $0["value"]?.string } == types)
      let info = try await fixture.message("bridge/\(Fixture.gatewayID)/info", after: mark) {
        (try? $0.json())?["counters"]?["lost"]?.int ?? 0 > 0
      }
      // Plus messages from before the outage that the broker had not acknowledged.
      let lost = try #require(try info.json()["counters"]?["lost"]?.int)
      #expect((count - Self.queueLimit...count - Self.queueLimit + 3).contains(lost), "\(lost)")
      // The next press is an event again, and the only one since.
      try await fixture.online("kitchen", after: mark)
      try await fixture.press(Self.button, (count + 2)...(count + 2))
      let next = try await fixture.message("kitchen/button_a", after: mark)
      #expect(try next.json()["sequence"]?.int == end + 1)
      #expect(try fixture.observer.messages(on: "microbit/kitchen/button_a", after: mark).count == 1)
    }
  }
}

extension Fixture {
  /// Presses (odd numbers) and releases (even ones) a button of the first micro:bit, all over one connection.
  fileprivate func press(_ characteristic: String, _ numbers: ClosedRange<Int>) async throws {
    let simulator = try LineClient(folder.path + "/control")
    for start in stride(from: numbers.lowerBound, through: numbers.upperBound, by: 100) {
      let batch = start...min(start + 99, numbers.upperBound)
      let lines = batch.map {
        #"{"op":"value","i":0,"characteristic":"\#(characteristic)","hex":"0\#($0 % 2)"}"# + "\n"
      }
      simulator.send(lines.joined())
      for _ in batch {
        guard try await simulator.line() != nil else { throw Failure("the simulator does not answer") }
      }
    }
  }
}
