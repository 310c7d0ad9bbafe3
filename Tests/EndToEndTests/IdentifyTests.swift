import TestSupport
import Testing

/// Which one is it?
@Suite struct IdentifyTests {
  private static func writes(_ fixture: Fixture) async throws -> JSON? {
    try await fixture.simulator.control(
      #"{"op":"writes","i":0,"characteristic":"e95d93ee-251d-470a-a062-fa1922dfa9a8"}"#)["writes"]
  }

  @Test("A micro:bit shows its name by request and at the terminal")
  func identify() async throws {
    var plan = Plan(entries: #"{"match":{"identifier":"D0:5A:00:00:C0:DE"},"id":"kitchen","name":"Kitchen"}"#)
    plan.simulator = ["--services", "temperature,led"]
    try await withFixture(plan) { fixture in
      try await fixture.online("kitchen")
      let data = try await fixture.perform("device/identify", #"{"id":"kitchen"}"#)
      #expect(data["property"]?.string == "led_text" && data["value"]?.string == "Kitchen")
      let name = JSON.string("4b69746368656e")
      #expect(try await Self.writes(fixture) == .array([name]))
      let document = try await fixture.observer.message(
        "homeassistant/device/ble_d05a0000c0de/config", within: Fixture.patience
      ) { $0.text.contains("Identify") }
      let button = try document.json()["cmps"]?["identify"]
      #expect(button?["pl_prs"]?.string == #"{"id":"kitchen"}"# && button?["dev_cla"]?.string == "identify")
      #expect(try await fixture.command(["identify", "Kitchen"]).text.contains("kitchen shows Kitchen"))
      let unknown = try await fixture.refusal("device/identify", #"{"id":"kitchn"}"#)
      #expect(unknown == "no device is called kitchn: did you mean kitchen?")
      _ = try await fixture.stopGateway()
      let (status, text) = try await fixture.command(["identify", "D0:5A:00:00:C0:DE"])
      #expect(status == 69 && text.contains("is running: start it with"), "\(text)")
      #expect(try await Self.writes(fixture) == .array([name, name]))
    }
  }
}
